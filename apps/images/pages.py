"""The pages of the catalogue: which images there are, for everyone; adding, changing and removing them for
administrators."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.administrators import require_administrator
from apps.accounts.selectors import user_of
from apps.api.paging import page_of
from apps.api.problems import show_in_form
from apps.errors import DomainError
from apps.images import services
from apps.images.models import Image
from apps.images.selectors import image_named, images_visible_to
from apps.namespaces.named import ForNamespaces, refs_in
from apps.namespaces.selectors import namespaces_visible
from yardmaster.job.spec_images import LONGEST_NAME, LONGEST_REFERENCE

AT_ONCE = 50
_LONGEST_LIST = 300_000
_LISTS = ("strategies", "packages", "namespaces")


def _text(label: str, most: int, hint: str = "", *, required: bool = False) -> forms.CharField:
    widget = forms.TextInput(attrs={"autocomplete": "off", "maxlength": most})
    return forms.CharField(label=label, max_length=most, required=required, widget=widget, help_text=hint)


class ImageForm(ForNamespaces):
    """What administrators say of an image. Lists are names between commas."""

    reference = _text(
        "Reference", LONGEST_REFERENCE, "registry/repository@sha256:…, with the digest.", required=True
    )  # fmt: skip
    python = _text("Python", 16, "Such as 3.11. Empty: not known.")
    tensorflow = _text("TensorFlow", 32, "Such as 2.19.0. Empty: it has none, or that is not known.")
    description = _text("Description", services.LONGEST_DESCRIPTION)
    strategies = _text("Strategies", 500, "Such as single, batch. Empty: all.")
    packages = _text("Packages", _LONGEST_LIST, "Modules or distributions that it has. Empty: not known.")
    pull_secret = _text("Pull secret", 128, "The name of the cluster's Secret with which it is pulled. Empty: none.")
    everyone = forms.BooleanField(label="Every namespace may use it", required=False)
    namespaces = _text("Only these namespaces", _LONGEST_LIST, "Such as vision-team, where not every one may.")
    gpus = forms.BooleanField(label="Scripts can use GPUs in it", required=False)
    enabled = forms.BooleanField(label="New jobs may use it", required=False)

    def facts(self) -> dict[str, Any]:
        """What was said, without the namespaces."""
        said = dict(self.cleaned_data)
        found = {name: refs_in(said.pop(name)) for name in _LISTS}
        said["strategies"], said["packages"] = found["strategies"], found["packages"] or None
        return said


class NewImageForm(ImageForm):
    name = _text(
        "Name", LONGEST_NAME, "What jobs call it, such as tensorflow-2.19. It cannot be changed.", required=True
    )
    field_order = ("name",)

    def facts(self) -> dict[str, Any]:
        return {name: value for name, value in super().facts().items() if name != "name"}


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def images(request: HttpRequest) -> HttpResponse:
    """Which there are; for administrators a form for a new one."""
    user, is_post = user_of(request), request.method == "POST"
    if is_post:
        require_administrator(user)
    form = NewImageForm(request.POST if is_post else None, initial={"everyone": True, "enabled": True})
    if is_post and form.is_valid():
        try:
            name, namespaces = form.cleaned_data["name"], form.namespaces_said(user)
            services.image_create(name=name, facts=form.facts(), namespaces=namespaces, actor=user)
            messages.success(request, f"Added {name}.")
            return redirect("images_page")
        except DomainError as problem:
            show_in_form(form, problem)
    page = page_of(images_visible_to(user), request.GET.get("cursor"), AT_ONCE)
    seen = set(namespaces_visible(user).values_list("pk", flat=True)) if page.rows and not user.is_staff else None
    rows = [(one, _shown_namespaces(one, seen)) for one in page.rows]
    context = {"page": page, "rows": rows, "form": form, "may_change": user.is_staff}
    return render(request, "images/images.html", context, status=400 if form.errors else 200)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def image(request: HttpRequest, name: str) -> HttpResponse:
    """A form to change one (administrators)."""
    user, is_post = user_of(request), request.method == "POST"
    require_administrator(user)
    found = image_named(user, name)
    form = ImageForm(request.POST if is_post else None, initial=_said_of(found))
    if is_post and form.is_valid():
        try:
            namespaces = form.namespaces_said(user)
            services.image_change(image=found, facts=form.facts(), namespaces=namespaces, actor=user)
            messages.success(request, f"Changed {found.name}. Jobs that are queued or running keep what they have.")
            return redirect("images_page")
        except DomainError as problem:
            show_in_form(form, problem)
    context = {"image": found, "form": form, "breadcrumbs": [(reverse("images_page"), "Images")]}
    return render(request, "images/image.html", context, status=400 if form.errors else 200)


@login_required
@require_POST
def delete(request: HttpRequest, name: str) -> HttpResponse:
    user = user_of(request)
    require_administrator(user)
    services.image_delete(image=image_named(user, name), actor=user)
    messages.success(request, f"Removed {name} from the catalogue.")
    return redirect("images_page")


def _shown_namespaces(image: Image, seen: set[Any] | None) -> list[str]:
    """Those that the reader may know of (`seen`; None: all)."""
    return sorted(one.slug for one in image.namespaces.all() if seen is None or one.pk in seen)


def _said_of(image: Image) -> dict[str, Any]:
    names = sorted(one.slug for one in image.namespaces.all())
    lists = {"strategies": image.strategies, "packages": image.packages or [], "namespaces": names}
    texts = ("reference", "python", "tensorflow", "description", "pull_secret", "gpus", "everyone", "enabled")
    return {name: getattr(image, name) for name in texts} | {name: ", ".join(one) for name, one in lists.items()}


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("images/", images, name="images_page"),
    path("images/<str:name>/", image, name="image_page"),
    path("images/<str:name>/delete/", delete, name="image_delete_page"),
]

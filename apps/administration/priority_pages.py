"""The page of priority classes: which there are, who may use them, and changing them."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.administrators import administrators_only
from apps.accounts.models import User
from apps.accounts.selectors import user_of
from apps.administration import priorities
from apps.api.problems import show_in_form
from apps.errors import DomainError, Invalid
from apps.namespaces.models import Namespace
from apps.namespaces.named import namespaces_named, refs_in
from apps.namespaces.share_models import LONGEST_NAME, Users
from yardmaster.errors import Problem

_TEXT = {"class": "form-control", "autocomplete": "off"}


class ClassForm(forms.Form):
    value = forms.IntegerField(
        label="Value", min_value=-1000, max_value=1000, widget=forms.NumberInput(attrs=_TEXT),
        help_text="-1000 to 1000. Jobs with a higher value come first, also before jobs of other namespaces.",
    )  # fmt: skip
    description = forms.CharField(
        label="Description", max_length=300, required=False, widget=forms.TextInput(attrs=_TEXT),
        help_text="Shown where jobs are launched.",
    )  # fmt: skip
    users = forms.ChoiceField(
        label="Who may use it", choices=Users.choices, widget=forms.Select(attrs={"class": "form-select"})
    )
    namespaces = forms.CharField(
        label="Named namespaces", required=False, max_length=60_000, widget=forms.TextInput(attrs=_TEXT),
        help_text="Only for “Named namespaces”: their slugs, separated by commas, such as vision-team.",
    )  # fmt: skip
    is_default = forms.BooleanField(
        label="Default for jobs without a priority", required=False,
        widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
    )  # fmt: skip

    preempts = forms.BooleanField(
        label="Its jobs can preempt running jobs of lower priority, where the engine allows preemption",
        required=False, widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
    )  # fmt: skip
    is_preemptible = forms.BooleanField(
        label="Its jobs may be preempted", required=False,
        widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
    )  # fmt: skip

    def facts(self) -> priorities.ClassFacts:
        return priorities.ClassFacts(
            **{name: self.cleaned_data[name] for name in priorities.ClassFacts.__annotations__}
        )

    def namespaces_said(self, user: User) -> list[Namespace]:
        """Raises `Invalid` for one that does not exist, and for too many."""
        return named_namespaces(user, refs_in(self.cleaned_data["namespaces"]))


class NewClassForm(ClassForm):
    name = forms.CharField(
        label="Name", max_length=LONGEST_NAME, widget=forms.TextInput(attrs=_TEXT),
        help_text="Such as urgent. Used in job files. Cannot be changed.",
    )  # fmt: skip
    field_order = ("name",)


def named_namespaces(user: User, refs: list[str]) -> list[Namespace]:
    """By slug or id. Raises `Invalid` for one that does not exist, and for too many."""
    if len(refs) > priorities.MOST_NAMESPACES:
        message = f"At most {priorities.MOST_NAMESPACES} namespaces may be named."
        raise Invalid([Problem("namespaces", "too_many", message, "Let everyone use the class, or name fewer.")])
    return namespaces_named(user, refs)


@administrators_only
@require_http_methods(["GET", "HEAD", "POST"])
def priorities_page(request: HttpRequest) -> HttpResponse:
    """All classes, and a form for a new one."""
    user, is_post = user_of(request), request.method == "POST"
    form = NewClassForm(request.POST if is_post else None, initial={"value": 0, "is_preemptible": True})
    if is_post and form.is_valid():
        try:
            name, namespaces = form.cleaned_data["name"], form.namespaces_said(user)
            priorities.class_create(name=name, facts=form.facts(), namespaces=namespaces, actor=user)
            messages.success(request, f"Added the class {name}.")
            return redirect("admin_priorities_page")
        except DomainError as problem:
            show_in_form(form, problem)
    context = {"classes": priorities.classes(), "form": form}
    return render(request, "administration/priorities.html", context, status=400 if form.errors else 200)


@administrators_only
@require_http_methods(["GET", "HEAD", "POST"])
def priority_page(request: HttpRequest, name: str) -> HttpResponse:
    """Change one class."""
    user, found = user_of(request), priorities.class_named(name)
    form = ClassForm(request.POST if request.method == "POST" else None, initial=_initial(found))
    if request.method == "POST" and form.is_valid():
        try:
            namespaces = form.namespaces_said(user)
            priorities.class_change(found=found, facts=form.facts(), namespaces=namespaces, actor=user)
            messages.success(request, f"Changed {name}. Jobs that were launched keep their priority.")
            return redirect("admin_priorities_page")
        except DomainError as problem:
            show_in_form(form, problem)
    crumbs = [(reverse("admin_priorities_page"), "Priority classes")]
    context = {"form": form, "name": name, "breadcrumbs": crumbs}
    return render(request, "administration/priority.html", context, status=400 if form.errors else 200)


@administrators_only
@require_POST
def priority_remove(request: HttpRequest, name: str) -> HttpResponse:
    priorities.class_remove(found=priorities.class_named(name), actor=user_of(request))
    messages.success(request, f"Removed the class {name}.")
    return redirect("admin_priorities_page")


def _initial(found: Any) -> dict[str, Any]:
    facts = {name: getattr(found, name) for name in priorities.ClassFacts.__annotations__}
    return {**facts, "namespaces": ", ".join(one.slug for one in found.namespaces.all())}


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/priority-classes/", priorities_page, name="admin_priorities_page"),
    path("admin/priority-classes/<slug:name>/", priority_page, name="admin_priority_page"),
    path("admin/priority-classes/<slug:name>/remove/", priority_remove, name="admin_priority_remove"),
]

"""The page of a namespace's secrets: names and facts, and forms that take values and never show one."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.selectors import user_of
from apps.administration.secret_uses import users_of_secret
from apps.api.paging import page_of
from apps.api.problems import show_in_form
from apps.errors import DomainError, words_of
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import may, namespace_for
from apps.secrets import services
from apps.secrets.models import Kind
from apps.secrets.selectors import secret_named, secrets_of
from apps.secrets.values import value_of

AT_ONCE = 50
_HIDDEN = {"autocomplete": "off", "spellcheck": "false"}


class ValueForm(forms.Form):
    """What is typed as a value. A form that is shown again has none of it."""

    value = forms.CharField(label="Value", required=False, strip=False, widget=forms.Textarea)
    access_key = forms.CharField(label="Access key", required=False, widget=forms.PasswordInput(attrs=_HIDDEN))
    secret_key = forms.CharField(label="Secret key", required=False, widget=forms.PasswordInput(attrs=_HIDDEN))

    def sent(self, kind: Kind) -> str:
        """The value of this kind. Raises `Invalid`."""
        names = ("value",) if kind is Kind.TEXT else ("access_key", "secret_key")
        data: dict[str, Any] = {name: self.cleaned_data.get(name) or "" for name in names}
        if kind is Kind.TEXT:  # a browser sends the lines of a text area with the ends of lines of another system
            data["value"] = data["value"].replace("\r\n", "\n")
        return value_of(kind, data)


class NewSecretForm(ValueForm):
    name = forms.CharField(
        label="Name", max_length=128, widget=forms.TextInput(attrs=_HIDDEN | {"maxlength": 128}),
        help_text="Letters, digits and _, such as AWS_SECRET_KEY.",
    )  # fmt: skip
    kind = forms.ChoiceField(choices=Kind.choices, initial=Kind.TEXT, required=False)
    description = forms.CharField(
        label="Description", max_length=500, required=False, widget=forms.TextInput(attrs={"maxlength": 500})
    )


@sensitive_post_parameters()
@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def secrets(request: HttpRequest, namespace_id: UUID) -> HttpResponse:
    """Which there are, and a form for a new one."""
    user = user_of(request)
    is_post = request.method == "POST"
    namespace = namespace_for(user, namespace_id, at_least=Role.MEMBER if is_post else Role.VIEWER)
    form = NewSecretForm(request.POST if is_post else None)
    if is_post and form.is_valid():
        kind = Kind(form.cleaned_data["kind"] or Kind.TEXT)
        name = form.cleaned_data["name"]
        try:
            if secrets_of(namespace).filter(name=name).exists():
                form.add_error("name", f"{name} already exists. Use Replace below to change its value.")
            else:
                services.secret_set(
                    namespace=namespace, name=name, value=form.sent(kind), actor=user, kind=kind,
                    description=form.cleaned_data["description"],
                )  # fmt: skip
                messages.success(request, f"Secret {name} created. Its value is not shown again.")
                return redirect("secrets_page", namespace.pk)
        except DomainError as problem:
            show_in_form(form, problem)
    return _page(request, namespace, form)


@sensitive_post_parameters()
@login_required
@require_POST
def secret_replace(request: HttpRequest, namespace_id: UUID, name: str) -> HttpResponse:
    user = user_of(request)
    namespace = namespace_for(user, namespace_id, at_least=Role.MEMBER)
    secret = secret_named(namespace, name)
    form = ValueForm(request.POST)
    form.is_valid()  # every field may be empty: what is missing is the service's matter
    try:
        kind = Kind(secret.kind)
        services.secret_set(namespace=namespace, name=secret.name, value=form.sent(kind), actor=user, kind=kind)
    except DomainError as problem:
        messages.error(request, f"{secret.name} was not replaced. {words_of(problem)}")
    else:
        messages.success(request, f"Secret {secret.name} replaced. Tasks that start from now on get the new value.")
    return redirect("secrets_page", namespace.pk)


@login_required
@require_POST
def secret_delete(request: HttpRequest, namespace_id: UUID, name: str) -> HttpResponse:
    user = user_of(request)
    namespace = namespace_for(user, namespace_id, at_least=Role.MEMBER)
    secret = secret_named(namespace, name)
    force = request.POST.get("force") == "1"
    try:
        services.secret_delete(secret=secret, actor=user, used_by=users_of_secret(secret), force=force)
    except DomainError as problem:
        messages.error(request, words_of(problem))
    else:
        messages.success(request, f"Secret {secret.name} deleted.")
    return redirect("secrets_page", namespace.pk)


def _page(request: HttpRequest, namespace: Namespace, form: NewSecretForm) -> HttpResponse:
    home = reverse("namespace_page", args=[namespace.pk])
    context = {
        "namespace": namespace,
        "breadcrumbs": [(reverse("namespaces_page"), "Namespaces"), (home, namespace.slug)],
        "page": page_of(secrets_of(namespace), request.GET.get("cursor"), AT_ONCE),
        "form": form,
        "is_credentials": form.is_bound and form.data.get("kind") in (Kind.S3, Kind.S3_ADMIN),
        "may_keep_for_administrators": user_of(request).is_staff,
        "may_change": may(user_of(request), namespace, Role.MEMBER) and namespace.closed_at is None,
    }
    return render(request, "namespaces/secrets.html", context)


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("namespaces/<uuid:namespace_id>/secrets/", secrets, name="secrets_page"),
    path("namespaces/<uuid:namespace_id>/secrets/<str:name>/replace/", secret_replace, name="secret_replace"),
    path("namespaces/<uuid:namespace_id>/secrets/<str:name>/delete/", secret_delete, name="secret_delete"),
]

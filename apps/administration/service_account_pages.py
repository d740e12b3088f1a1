"""The pages of a team's service accounts: which there are, and one of them with its tokens."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.forms import TokenForm
from apps.accounts.models import PersonalToken
from apps.accounts.selectors import user_of
from apps.api.paging import page_of
from apps.api.problems import show_in_form
from apps.client.versions import install_command, login_command
from apps.errors import DomainError, words_of
from apps.namespaces import service_accounts as services
from apps.namespaces.context import own_namespaces
from apps.namespaces.models import Namespace, Role, ServiceAccount
from apps.namespaces.selectors import may, namespace_for
from apps.webhooks.former_makers import managers_among

AT_ONCE = 50
ROLE_WORDS = {Role.VIEWER: "can view everything", Role.MEMBER: "can also launch, stop and upload"}
SCOPE_WORDS = {
    "read": "View everything that its role can view. Read-only.",
    "jobs": "Launch, stop, retry and delete jobs.",
    "data": "Upload, rename and delete datasets and code.",
}
_OVERLAPS = {"0": "at once", "3600": "after 1 hour", "86400": "after 1 day", "604800": "after 7 days"}


class ServiceAccountForm(forms.Form):
    name = forms.CharField(
        label="Name", max_length=40, help_text="Such as nightly-training. Cannot be changed.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "maxlength": 40}),
    )  # fmt: skip
    description = forms.CharField(label="Description", max_length=200, required=False)
    role = forms.ChoiceField(choices=[(one, one) for one in ROLE_WORDS], initial=Role.MEMBER)


class ServiceTokenForm(TokenForm):
    """Always with scopes, none of which is `admin`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        del self.fields["reach"]
        scopes = self.fields["scopes"]
        assert isinstance(scopes, forms.MultipleChoiceField)
        scopes.choices = list(SCOPE_WORDS.items())
        scopes.required = True
        scopes.error_messages["required"] = "Select at least one scope."

    def chosen_scopes(self) -> list[str]:
        return list(self.cleaned_data["scopes"])


class OverlapForm(forms.Form):
    overlap = forms.TypedChoiceField(choices=list(_OVERLAPS.items()), coerce=int)


class RoleForm(forms.Form):
    role = forms.ChoiceField(choices=[(one, one) for one in ROLE_WORDS])


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def service_accounts(request: HttpRequest, namespace_id: UUID) -> HttpResponse:
    """Which there are, and a form for a new one."""
    user = user_of(request)
    is_post = request.method == "POST"
    # Every page reads one's own namespaces: only an administrator who looks at another's asks for more.
    own = None if is_post else next((one for one in own_namespaces(request) if one.pk == namespace_id), None)
    namespace = own or namespace_for(user, namespace_id, at_least=Role.MANAGER if is_post else Role.VIEWER)
    form = ServiceAccountForm(request.POST if is_post else None)
    if is_post and form.is_valid():
        data = form.cleaned_data
        try:
            made = services.service_account_create(
                namespace=namespace, name=data["name"], role=Role(data["role"]), description=data["description"],
                actor=user,
            )  # fmt: skip
        except DomainError as problem:
            show_in_form(form, problem, otherwise="name")
        else:
            messages.success(request, f"{made.user.username} created. Now create a token for it.")
            return redirect("service_account_page", namespace.pk, made.pk)
    page = page_of(services.service_accounts_of(namespace), request.GET.get("cursor"), AT_ONCE)
    roles = services.roles_of(namespace)
    managers = managers_among(namespace, [one.made_by_id for one in page.rows if one.made_by_id])
    context = {
        "namespace": namespace,
        "breadcrumbs": _way(namespace),
        "page": page,
        "rows": [(one, roles.get(one.user_id, "")) for one in page.rows],
        "managers": managers,
        "roles": list(ROLE_WORDS.items()),
        "form": form,
        "is_team": namespace.owner_id is None,
        "may_change": may(user, namespace, Role.MANAGER) and namespace.owner_id is None,
    }
    return render(request, "namespaces/service_accounts.html", context)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def service_account(request: HttpRequest, namespace_id: UUID, account_id: UUID) -> HttpResponse:
    """One with its tokens. The secret of a new one is in the answer to the form and nowhere else."""
    user = user_of(request)
    is_post = request.method == "POST"
    namespace = namespace_for(user, namespace_id, at_least=Role.MANAGER if is_post else Role.VIEWER)
    account = services.service_account_in(namespace, account_id)
    form = ServiceTokenForm(request.POST if is_post else None)
    made = None
    if is_post and form.is_valid():
        try:
            made = services.service_token_create(
                account=account, name=form.cleaned_data["name"], scopes=form.chosen_scopes(),
                expires_in=form.expires_in(), actor=user,
            )  # fmt: skip
        except DomainError as problem:
            show_in_form(form, problem, otherwise="name")
        else:
            form = ServiceTokenForm()
    return _account_page(request, namespace, account, form, made)


@login_required
@never_cache
@require_POST
def service_token_rotate(request: HttpRequest, namespace_id: UUID, account_id: UUID, token_id: UUID) -> HttpResponse:
    user = user_of(request)
    namespace, account = _managed(request, namespace_id, account_id)
    token = services.service_token_in(account, token_id)
    form = OverlapForm(request.POST)
    made = None
    if form.is_valid():
        overlap = timedelta(seconds=form.cleaned_data["overlap"])
        try:
            made = services.service_token_rotate(
                account=account, token=token, overlap=overlap, actor=user, now=timezone.now()
            )
        except DomainError as problem:
            messages.error(request, words_of(problem))
    else:
        messages.error(request, "Choose when the old token ends.")
    return _account_page(request, namespace, account, ServiceTokenForm(), made)


@login_required
@require_POST
def service_token_revoke(request: HttpRequest, namespace_id: UUID, account_id: UUID, token_id: UUID) -> HttpResponse:
    namespace, account = _managed(request, namespace_id, account_id)
    token = services.service_token_in(account, token_id)
    services.service_token_revoke(token=token, actor=user_of(request), namespace=namespace)
    messages.success(request, f"Revoked {token.name}. It can no longer be used.")
    return redirect("service_account_page", namespace.pk, account.pk)


@login_required
@require_POST
def service_account_role(request: HttpRequest, namespace_id: UUID, account_id: UUID) -> HttpResponse:
    namespace, account = _managed(request, namespace_id, account_id)
    form = RoleForm(request.POST)
    if form.is_valid():
        role = Role(form.cleaned_data["role"])
        services.service_account_change(account=account, role=role, actor=user_of(request))
        messages.success(request, f"{account.user.username} is now a {role}.")
    else:
        messages.error(request, "A service account is a viewer or a member.")
    return redirect("service_account_page", namespace.pk, account.pk)


@login_required
@require_POST
def service_account_delete(request: HttpRequest, namespace_id: UUID, account_id: UUID) -> HttpResponse:
    namespace, account = _managed(request, namespace_id, account_id)
    name = account.user.username
    services.service_account_delete(account=account, actor=user_of(request))
    messages.success(request, f"{name} was deleted. Its tokens no longer work.")
    return redirect("service_accounts_page", namespace.pk)


def _managed(request: HttpRequest, namespace_id: UUID, account_id: UUID) -> tuple[Namespace, ServiceAccount]:
    namespace = namespace_for(user_of(request), namespace_id, at_least=Role.MANAGER)
    return namespace, services.service_account_in(namespace, account_id)


def _account_page(
    request: HttpRequest,
    namespace: Namespace,
    account: ServiceAccount,
    form: ServiceTokenForm,
    made: tuple[PersonalToken, str] | None,
) -> HttpResponse:
    may_change = may(user_of(request), namespace, Role.MANAGER)
    page = page_of(services.service_tokens_of(account), request.GET.get("cursor"), AT_ONCE) if may_change else None
    makers = [account.made_by_id, *(one.made_by_id for one in page.rows)] if page else [account.made_by_id]
    list_url = reverse("service_accounts_page", args=[namespace.pk])
    context = {
        "namespace": namespace,
        "account": account,
        "role": services.role_of_service(account),
        "roles": list(ROLE_WORDS.items()),
        "breadcrumbs": [*_way(namespace), (list_url, "Service accounts")],
        "may_change": may_change,
        "form": form,
        "scope_words": SCOPE_WORDS,
        "overlaps": list(_OVERLAPS.items()),
        "made": made[0] if made else None,
        "secret": made[1] if made else "",
        "use_command": f"export YARDMASTER_TOKEN={made[1]}" if made else "",
        "sign_in_command": f"{install_command()}\n{login_command()} --token {made[1]}" if made else "",
        "page": page,
        "managers": managers_among(namespace, [one for one in makers if one is not None]),
        "now": timezone.now(),
    }
    return render(request, "namespaces/service_account.html", context)


def _way(namespace: Namespace) -> list[tuple[str, str]]:
    return [
        (reverse("namespaces_page"), "Namespaces"),
        (reverse("namespace_page", args=[namespace.pk]), namespace.slug),
    ]


_ALL = "namespaces/<uuid:namespace_id>/service-accounts/"
_ONE = f"{_ALL}<uuid:account_id>/"
_TOKEN = f"{_ONE}tokens/<uuid:token_id>/"
pages_urlpatterns: list[URLPattern | URLResolver] = [
    path(_ALL, service_accounts, name="service_accounts_page"),
    path(_ONE, service_account, name="service_account_page"),
    path(f"{_ONE}role/", service_account_role, name="service_account_role"),
    path(f"{_ONE}delete/", service_account_delete, name="service_account_delete"),
    path(f"{_TOKEN}rotate/", service_token_rotate, name="service_token_rotate"),
    path(f"{_TOKEN}revoke/", service_token_revoke, name="service_token_revoke"),
]

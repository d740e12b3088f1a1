"""The page of removals, for administrators: what is under way, what is left and why; the form that begins one; and
whom they lock out, or let in again."""

from __future__ import annotations

from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe
from django.views.generic import RedirectView

from apps.accounts.administrators import administrators_only
from apps.accounts.models import User
from apps.accounts.selectors import user_by_name, user_of, users_locked
from apps.accounts.services import tokens_revoke_all, user_change
from apps.api.paging import page_of
from apps.api.problems import show_in_form
from apps.errors import DomainError
from apps.namespaces.models import Namespace
from apps.namespaces.selectors import namespace_for
from apps.removals.models import Data, Removal
from apps.removals.report import report_of
from apps.removals.services import namespace_remove, removal_by_id, removals, user_lock, user_remove

AT_ONCE = 50


class RemovalForm(forms.Form):
    """The name is typed, not chosen: an action that cannot be undone must not be one slip of the hand."""

    slug = forms.CharField(
        label="Namespace", max_length=63, help_text="The short name. For a personal namespace, the user is removed too."
    )
    delete = forms.BooleanField(
        label="Also delete all jobs, logs, models, datasets and code permanently", required=False
    )


class AccountForm(forms.Form):
    """Whose account, and what is to be done to it: the button that was pressed."""

    username = forms.CharField(label="User name", max_length=150)
    action = forms.ChoiceField(choices=[(one, one) for one in ("lock", "lock_and_stop", "revoke", "unlock")])


@administrators_only
@require_http_methods(["GET", "HEAD", "POST"])
def removals_page(request: HttpRequest) -> HttpResponse:
    user = user_of(request)
    form = RemovalForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        begun = _begin(form, user)
        if begun is not None:
            messages.success(request, f"{begun.slug} is being removed.")
            return redirect("removal_page", begun.pk)
    return _page(request, form, AccountForm())


@administrators_only
@require_POST
def account_action(request: HttpRequest) -> HttpResponse:
    """Lock a user out, with or without the jobs, revoke the tokens, or let the user in again."""
    user = user_of(request)
    form = AccountForm(request.POST)
    if form.is_valid():
        try:
            messages.success(request, _act(form, user))
        except DomainError as problem:
            show_in_form(form, problem, otherwise="username")
        else:
            return redirect("removals_page")
    return _page(request, RemovalForm(), form)


def _page(request: HttpRequest, form: RemovalForm, account_form: AccountForm) -> HttpResponse:
    context = {
        "page": page_of(removals(), request.GET.get("cursor"), AT_ONCE),
        "form": form,
        "account_form": account_form,
        "locked": users_locked()[:AT_ONCE],
    }
    return render(request, "removals/removals.html", context)


def _act(form: AccountForm, actor: User) -> str:
    """Do it, and say what was done."""
    user, action = user_by_name(form.cleaned_data["username"]), form.cleaned_data["action"]
    if action == "unlock":
        user_change(user=user, actor=actor, is_active=True)
        return f"{user.username} can sign in again."
    if action == "revoke":
        count = tokens_revoke_all(user=user, actor=actor)
        return f"Revoked {count} token{'s' if count != 1 else ''} of {user.username}."
    stopped = user_lock(user=user, actor=actor, stop_jobs=action == "lock_and_stop")
    jobs = f" {stopped} job{'s' if stopped != 1 else ''} are being stopped." if action == "lock_and_stop" else ""
    return f"{user.username} is locked.{jobs}"


def _begin(form: RemovalForm, actor: User) -> Removal | None:
    """None: what speaks against it is in the form."""
    data = Data.DELETE if form.cleaned_data["delete"] else Data.KEEP
    try:
        namespace = namespace_for(actor, form.cleaned_data["slug"])
        if namespace.owner is not None:
            return user_remove(user=namespace.owner, data=data, actor=actor)
        return namespace_remove(namespace=namespace, data=data, actor=actor)
    except DomainError as problem:
        show_in_form(form, problem, otherwise="slug")
        return None


@administrators_only
@require_safe
def removal_page(request: HttpRequest, removal_id: UUID) -> HttpResponse:
    """One removal: how far it is, and at its end what was removed and what is kept."""
    shown = removal_by_id(removal_id)
    is_there = Namespace.objects.filter(pk=shown.namespace_id).exists()
    context = {
        "shown": shown,
        "report": report_of(shown),
        "is_there": is_there,
        "breadcrumbs": [(reverse("removals_page"), "Removals")],
    }
    return render(request, "removals/removal.html", context)


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/removals/", removals_page, name="removals_page"),
    path("admin/removals/account/", account_action, name="account_action"),
    path("admin/removals/<uuid:removal_id>/", removal_page, name="removal_page"),
    path("removals/", RedirectView.as_view(pattern_name="removals_page"), name="removals_old"),  # its address before
]

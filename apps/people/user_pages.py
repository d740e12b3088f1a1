"""The pages of users for administrators: the list, a new user, and one user with everything that one can do about it.

Not here: removing (`removal_pages`).
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from apps.accounts.administrators import administrators_only
from apps.accounts.browsers import browsers_of
from apps.accounts.models import User
from apps.accounts.second_factor import second_factor_reset, second_factors_of
from apps.accounts.selectors import tokens_of, user_by_id, user_of
from apps.accounts.services import sign_in_link_create, tokens_revoke_all, user_change, user_create, user_sign_out
from apps.accounts.user_list import NEVER, users_found
from apps.api.paging import page_of
from apps.api.problems import show_in_form
from apps.errors import Conflict, DomainError, words_of
from apps.namespaces.selectors import shares_of
from apps.people.columns import columns
from apps.people.forms import STATE_WORDS, EmailForm, NewUserForm, UserFilterForm
from apps.people.mails import reset_mail_send
from apps.people.user_rows import user_rows, waiting_and_running
from apps.removals.services import removal_under_way, user_lock
from apps.uploads.selectors import storage_used

AT_ONCE = 50
MOST_TOKENS = 50
_COLUMNS = (
    ("username", "User"),
    ("joined", "Joined"),
    ("last_use", "Last use"),
    ("jobs", "Running jobs"),
    ("storage", "Storage"),
)


@administrators_only
@require_safe
def users_page(request: HttpRequest) -> HttpResponse:
    """All users: searched, filtered, sorted."""
    filters = UserFilterForm(request.GET)
    data = filters.cleaned_data if filters.is_valid() else {}
    search, state, order = data.get("search", ""), data.get("state") or "all", request.GET.get("order") or "-joined"
    context = {
        "page": page_of(user_rows(search, state, order), request.GET.get("cursor"), AT_ONCE),
        "columns": columns(request, _COLUMNS, order),
        "search": search,
        "state": state,
        "states": STATE_WORDS.items(),
        "order": order,
    }
    return render(request, "administration/users.html", context)


@administrators_only
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def user_new(request: HttpRequest) -> HttpResponse:
    """Make a user, and show the link by which they get in; or send them a mail."""
    actor = user_of(request)
    form = NewUserForm(request.POST if request.method == "POST" else None, initial={"sends_mail": False})
    if form.is_bound and form.is_valid():
        data = form.cleaned_data
        try:
            made = user_create(username=data["username"], email=data["email"], is_staff=data["is_staff"], actor=actor)
        except DomainError as problem:
            show_in_form(form, problem, otherwise="username")
        else:
            return _let_in(request, made, actor, by_mail=data["sends_mail"])
    return render(request, "administration/user_new.html", {"form": form, "sends_mail": settings.YARDMASTER_SENDS_MAIL})


def _let_in(request: HttpRequest, made: User, actor: User, *, by_mail: bool) -> HttpResponse:
    messages.success(request, f"User {made.username} created.")
    if not by_mail:
        return _user_page(request, made, link=sign_in_link_create(made, actor=actor))
    try:
        reset_mail_send(request, made, actor)
    except DomainError as problem:
        messages.error(request, words_of(problem))
    else:
        messages.success(request, f"An e-mail was sent to {made.email}.")
    return redirect("admin_user_page", made.pk)


@administrators_only
@never_cache
@require_safe
def user_page(request: HttpRequest, user_id: UUID) -> HttpResponse:
    return _user_page(request, user_by_id(user_id))


def _user_page(
    request: HttpRequest, shown: User, *, link: str = "", email_form: EmailForm | None = None
) -> HttpResponse:
    now = timezone.now()
    phases = waiting_and_running(shown)
    own = shown.personal_namespace
    context = {
        "shown": shown,
        "own": own,
        "last_use": getattr(users_found().filter(pk=shown.pk).first(), "last_use", NEVER),
        "teams": [one for one in shares_of(shown) if one.owner_id is None],
        "tokens": list(tokens_of(shown).order_by("-pk")[:MOST_TOKENS]),
        "browsers": browsers_of(shown, request.session.session_key, now),
        "factors": second_factors_of(shown),
        "phases": phases.items(),
        "unfinished": sum(phases.get(one, 0) for one in ("QUEUED", "STARTING", "RUNNING", "STOPPING")),
        "stored": storage_used(own).used,
        "removal": removal_under_way(own),
        "is_self": shown.pk == user_of(request).pk,
        "email_form": email_form or EmailForm(initial={"email": shown.email}),
        "sends_mail": settings.YARDMASTER_SENDS_MAIL,
        "link": link,
        "now": now,
    }
    return render(request, "administration/user.html", context)


@administrators_only
@never_cache
@require_POST
def user_link(request: HttpRequest, user_id: UUID) -> HttpResponse:
    """A new sign-in link, shown in this answer and nowhere else: no redirect could carry it."""
    shown = user_by_id(user_id)
    if not shown.is_active:
        messages.error(request, f"{shown.username} is locked. Unlock the user first.")
        return redirect("admin_user_page", shown.pk)
    return _user_page(request, shown, link=sign_in_link_create(shown, actor=user_of(request)))


@administrators_only
@require_POST
def user_email(request: HttpRequest, user_id: UUID) -> HttpResponse:
    shown = user_by_id(user_id)
    form = EmailForm(request.POST)
    if form.is_valid():
        try:
            user_change(user=shown, actor=user_of(request), email=form.cleaned_data["email"])
        except DomainError as problem:
            show_in_form(form, problem, otherwise="email")
        else:
            messages.success(request, "The address was changed.")
            return redirect("admin_user_page", shown.pk)
    return _user_page(request, shown, email_form=form)


def _promote(request: HttpRequest, shown: User, actor: User) -> str:
    user_change(user=shown, actor=actor, is_staff=True)
    return f"{shown.username} is now an administrator."


def _demote(request: HttpRequest, shown: User, actor: User) -> str:
    user_change(user=shown, actor=actor, is_staff=False)
    return f"{shown.username} is no longer an administrator."


def _suspend(request: HttpRequest, shown: User, actor: User) -> str:
    user_lock(user=shown, actor=actor, stop_jobs=False)
    return f"{shown.username} is locked. Jobs continue."


def _suspend_and_stop(request: HttpRequest, shown: User, actor: User) -> str:
    stopped = user_lock(user=shown, actor=actor, stop_jobs=True)
    return f"{shown.username} is locked. {_counted(stopped, 'job')} being stopped."


def _activate(request: HttpRequest, shown: User, actor: User) -> str:
    user_change(user=shown, actor=actor, is_active=True)
    return f"{shown.username} can sign in again."


def _sign_out(request: HttpRequest, shown: User, actor: User) -> str:
    user_sign_out(user=shown, actor=actor)
    return f"{shown.username} is signed out everywhere. All tokens are revoked."


def _revoke(request: HttpRequest, shown: User, actor: User) -> str:
    return f"Revoked {_counted(tokens_revoke_all(user=shown, actor=actor), 'token')} of {shown.username}."


def _reset_factor(request: HttpRequest, shown: User, actor: User) -> str:
    if not second_factor_reset(user=shown, actor=actor):
        return f"{shown.username} has not set up two-step sign-in."
    return f"Two-step sign-in of {shown.username} was reset. It can be set up again after signing in."


def _reset_mail(request: HttpRequest, shown: User, actor: User) -> str:
    reset_mail_send(request, shown, actor)
    return f"An e-mail was sent to {shown.email}."


_ACTIONS: dict[str, Callable[[HttpRequest, User, User], str]] = {
    "promote": _promote,
    "demote": _demote,
    "suspend": _suspend,
    "suspend-and-stop": _suspend_and_stop,
    "activate": _activate,
    "sign-out": _sign_out,
    "revoke-tokens": _revoke,
    "reset-mail": _reset_mail,
    "reset-second-factor": _reset_factor,
}
"""What one button does, and says afterwards."""


@administrators_only
@require_POST
def user_action(request: HttpRequest, user_id: UUID, action: str) -> HttpResponse:
    """One of `_ACTIONS`; what speaks against it is said on the user's page."""
    shown = user_by_id(user_id)
    try:
        if action not in _ACTIONS:
            raise Conflict("There is no such action.")
        messages.success(request, _ACTIONS[action](request, shown, user_of(request)))
    except DomainError as problem:
        messages.error(request, words_of(problem))
    return redirect("admin_user_page", shown.pk)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count != 1 else ''}"


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/users/", users_page, name="admin_users_page"),
    path("admin/users/new/", user_new, name="admin_user_new_page"),
    path("admin/users/<uuid:user_id>/", user_page, name="admin_user_page"),
    path("admin/users/<uuid:user_id>/link/", user_link, name="admin_user_link"),
    path("admin/users/<uuid:user_id>/email/", user_email, name="admin_user_email"),
    path("admin/users/<uuid:user_id>/do/<slug:action>/", user_action, name="admin_user_action"),
]

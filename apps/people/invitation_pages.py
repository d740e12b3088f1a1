"""The pages of invitations: of administrators, of a team's managers, and the one behind a link.

Not here: which invitations count (`apps.namespaces.invitations`).
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login as sign_in
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.administrators import administrators_only
from apps.accounts.models import User
from apps.accounts.selectors import user_of
from apps.api.paging import page_of
from apps.api.problems import show_in_form
from apps.errors import DomainError, Gone, Invalid, TooMany, words_of
from apps.namespaces.invitations import (
    invitation_create,
    invitation_for,
    invitation_join,
    invitation_look,
    invitation_revoke,
    invitations_visible,
    makes_accounts,
    state_of,
)
from apps.namespaces.many_invitations import invitations_create
from apps.namespaces.models import Invitation, Namespace, Role
from apps.namespaces.selectors import namespace_for
from apps.people.accepting import account_by_invitation
from apps.people.forms import AcceptForm, InvitationForm
from apps.people.mails import invitations_send, link_of

AT_ONCE = 50


@dataclass(frozen=True)
class Made:
    """A new invitation, as its maker sees it once. `email` empty: for anyone with the link."""

    email: str
    link: str
    is_sent: bool


@administrators_only
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def invitations_page(request: HttpRequest) -> HttpResponse:
    """Every invitation, and a form for another."""
    return _page(request, "administration/invitations.html", invitations_visible(user_of(request)), None)


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def team_invitations_page(request: HttpRequest, namespace_id: UUID) -> HttpResponse:
    """The same for one team, for its managers, too."""
    user = user_of(request)
    team = namespace_for(user, namespace_id, at_least=Role.MANAGER)
    return _page(request, "namespaces/invitations.html", invitations_visible(user).filter(namespace=team), team)


def _page(request: HttpRequest, template: str, rows: QuerySet[Invitation], team: Namespace | None) -> HttpResponse:
    """A new one's link is in the answer to the form and nowhere else."""
    form, made = InvitationForm(request.POST if request.method == "POST" else None), list[Made]()
    if form.is_bound and form.is_valid():
        try:
            made = _make(form, user_of(request), team)
        except DomainError as problem:
            _show(form, problem)
        else:
            form = InvitationForm()
    now = timezone.now()
    page = page_of(rows, request.GET.get("cursor"), AT_ONCE)
    context = {
        "form": form,
        "team": team,
        "made": made,
        "links": "\n".join(f"{one.email} {one.link}" for one in made) if len(made) > 1 else "",
        "page": page,
        "shown": [(one, state_of(one, now)) for one in page.rows],
        "sends_mail": settings.YARDMASTER_SENDS_MAIL,
        "is_closed": settings.YARDMASTER_SIGN_UP == "closed",
        "breadcrumbs": [(reverse("namespace_page", args=[team.pk]), team.slug)] if team else [],
    }
    return render(request, template, context)


def _make(form: InvitationForm, actor: User, team: Namespace | None) -> list[Made]:
    """One invitation for each address, or one for anyone with the link; and whether each was sent."""
    slug = form.cleaned_data["namespace"]
    if team is None and slug:
        team = namespace_for(actor, slug, at_least=Role.MANAGER)
    if not form.addresses:
        _, token = invitation_create(wish=form.wish(team), actor=actor)
        return [Made("", link_of(token), False)]
    emails = [one for _, one in form.addresses]
    found = [
        (one, link_of(token)) for one, token in invitations_create(wish=form.wish(team), emails=emails, actor=actor)
    ]
    sent = invitations_send(found)
    return [Made(one.email, link, one.pk in sent) for one, link in found]


def _show(form: InvitationForm, problem: DomainError) -> None:
    """Each address that will not do with its line."""
    addresses = form.addresses
    for error in problem.errors:
        name, _, at = error.field.partition(".")
        if name != "emails" or not at:
            continue
        line, address = addresses[int(at)]
        form.add_error("emails", f"Line {line}, {address[:100]}: {error.message} {error.remedy}")
    rest = [one for one in problem.errors if not one.field.startswith("emails.")]
    if rest or not problem.errors:
        show_in_form(form, problem if not rest else Invalid(rest))


@login_required
@require_POST
def invitation_end(request: HttpRequest, invitation_id: UUID) -> HttpResponse:
    """Revoke one; 404 for those of others."""
    user = user_of(request)
    invitation = invitation_for(user, invitation_id)
    invitation_revoke(invitation=invitation, actor=user)
    messages.success(request, "The invitation was revoked.")
    if "team" in request.POST and invitation.namespace_id is not None:
        return redirect("team_invitations_page", invitation.namespace_id)
    return redirect("admin_invitations_page" if user.is_staff else "namespaces_page")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def invitation_page(request: HttpRequest, token: str) -> HttpResponse:
    """Behind the link: choose a name and a password; or, signed in, join the team by a button. A program that only
    fetches the link uses nothing up. One that cannot be used looks like one that never was."""
    invitation = invitation_look(token, timezone.now())
    if invitation is None:
        return _answer(request, {"invitation": None}, 410)
    if isinstance(request.user, User):
        return _join(request, token, invitation, request.user)
    if not makes_accounts(invitation):
        return _answer(request, {"invitation": invitation, "needs_account": True})
    form = AcceptForm(request.POST if request.method == "POST" else None, initial={"email": invitation.email})
    if form.is_bound and form.is_valid():
        try:
            user = account_by_invitation(token, invitation, form.cleaned_data)
        except Gone:
            return _answer(request, {"invitation": None}, 410)
        except TooMany:
            raise
        except DomainError as problem:
            show_in_form(form, problem)
        else:
            sign_in(request, user)
            messages.success(request, f"Welcome, {user.username}.")
            return redirect("home")
    return _answer(request, {"invitation": invitation, "form": form})


def _join(request: HttpRequest, token: str, invitation: Invitation, user: User) -> HttpResponse:
    problem_words = ""
    if request.method == "POST":
        try:
            team = invitation_join(token=token, user=user)
        except Gone:
            return _answer(request, {"invitation": None}, 410)
        except DomainError as problem:
            problem_words = words_of(problem)
        else:
            messages.success(request, f"You are now a {invitation.role} of {team.slug}.")
            return redirect("namespace_page", team.pk)
    return _answer(request, {"invitation": invitation, "problem": problem_words})


def _answer(request: HttpRequest, context: dict[str, object], status: int = 200) -> HttpResponse:
    response = render(request, "accounts/invitation.html", context, status=status)
    response.headers["Referrer-Policy"] = "strict-origin"  # the address is the secret, as of the sign-in link
    return response


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/invitations/", invitations_page, name="admin_invitations_page"),
    path("namespaces/<uuid:namespace_id>/invitations/", team_invitations_page, name="team_invitations_page"),
    path("invitations/<uuid:invitation_id>/revoke/", invitation_end, name="invitation_revoke"),
    path("invitation/<str:token>/", invitation_page, name="invitation_page"),
]

"""The page of all teams for administrators, a new team with its members, and many members for a team at once.

Not here: one team's page (`apps.administration.namespace_pages`), removing it (`removal_pages`).
"""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_http_methods, require_safe

from apps.accounts.administrators import administrators_only
from apps.accounts.selectors import user_by_name, user_of
from apps.accounts.user_list import LONGEST_SEARCH
from apps.api.paging import page_of
from apps.api.problems import show_in_form
from apps.errors import DomainError, Forbidden, NotFound
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import namespace_for
from apps.namespaces.services import members_add, team_create
from apps.people.columns import columns
from apps.people.forms import MembersForm, NewTeamForm
from apps.people.user_rows import team_rows

AT_ONCE = 50
_COLUMNS = (
    ("name", "Team"),
    ("created", "Created"),
    ("members", "Members"),
    ("jobs", "Running jobs"),
    ("storage", "Storage"),
)


@administrators_only
@require_safe
def teams_page(request: HttpRequest) -> HttpResponse:
    """All teams: searched, sorted."""
    search, order = request.GET.get("search", "")[:LONGEST_SEARCH], request.GET.get("order") or "name"
    context = {
        "page": page_of(team_rows(search, order), request.GET.get("cursor"), AT_ONCE),
        "columns": columns(request, _COLUMNS, order),
        "search": search,
        "order": order,
    }
    return render(request, "administration/teams.html", context)


@administrators_only
@require_http_methods(["GET", "HEAD", "POST"])
def team_new(request: HttpRequest) -> HttpResponse:
    """Make a team with its manager and members: all of it or nothing, and every bad name is listed."""
    form = NewTeamForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        try:
            made = _make(form, request)
        except DomainError as problem:
            show_in_form(form, problem, otherwise="slug")
        else:
            messages.success(request, f"Team {made.slug} created.")
            return redirect("namespace_page", made.pk)
    return render(request, "administration/team_new.html", {"form": form})


def _make(form: NewTeamForm, request: HttpRequest) -> Namespace:
    data, actor = form.cleaned_data, user_of(request)
    manager = actor
    if data["manager"]:
        try:
            manager = user_by_name(data["manager"])
        except NotFound as problem:
            form.add_error("manager", problem.detail)
            raise
    role = Role(data["role"] or Role.MEMBER)
    return team_create(
        slug=data["slug"], title=data["title"], manager=manager, actor=actor, members=data["members"], role=role
    )


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def team_members(request: HttpRequest, namespace_id: UUID) -> HttpResponse:
    """Add many members in one go, for the team's managers, too."""
    user = user_of(request)
    team = namespace_for(user, namespace_id, at_least=Role.MANAGER)
    form = MembersForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        data = form.cleaned_data
        try:
            added = members_add(namespace=team, usernames=data["members"], role=Role(data["role"]), actor=user)
        except Forbidden:
            raise
        except DomainError as problem:
            show_in_form(form, problem, otherwise="members")
        else:
            messages.success(
                request, f"{len(added)} {'user is' if len(added) == 1 else 'users are'} now {data['role']}s."
            )
            return redirect("namespace_page", team.pk)
    crumbs = [(reverse("namespace_page", args=[team.pk]), team.slug)]
    return render(request, "namespaces/members_add.html", {"form": form, "team": team, "breadcrumbs": crumbs})


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/teams/", teams_page, name="admin_teams_page"),
    path("admin/teams/new/", team_new, name="admin_team_new_page"),
    path("namespaces/<uuid:namespace_id>/members/add-many/", team_members, name="members_add_page"),
]

"""The pages that remove a user or a team: first what would go and what is kept, then the name is typed, then the
report.

Not here: the list of removals (`apps.removals.pages`), and carrying them out.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_http_methods

from apps.accounts.administrators import administrators_only
from apps.accounts.models import User
from apps.accounts.selectors import user_by_id, user_of
from apps.api.problems import show_in_form
from apps.errors import DomainError, NotFound
from apps.namespaces.models import Namespace
from apps.namespaces.selectors import namespace_for
from apps.people.forms import RemovalForm
from apps.removals.models import Data, Removal
from apps.removals.preview import Preview, team_preview, user_preview
from apps.removals.report import counted
from apps.removals.services import namespace_remove, removal_under_way, user_remove

Remove = Callable[[Data], Removal]


@administrators_only
@require_http_methods(["GET", "HEAD", "POST"])
def user_remove_page(request: HttpRequest, user_id: UUID) -> HttpResponse:
    user, actor = user_by_id(user_id), user_of(request)
    crumbs = [(reverse("admin_users_page"), "Users"), (reverse("admin_user_page", args=[user.pk]), user.username)]
    preview = user_preview(user, actor)
    return _page(request, preview, crumbs, lambda data: user_remove(user=user, data=data, actor=actor))


@administrators_only
@require_http_methods(["GET", "HEAD", "POST"])
def team_remove_page(request: HttpRequest, namespace_id: UUID) -> HttpResponse:
    actor = user_of(request)
    team = _team(actor, namespace_id)
    crumbs = [(reverse("admin_teams_page"), "Teams"), (reverse("namespace_page", args=[team.pk]), team.slug)]
    preview = team_preview(team)
    return _page(request, preview, crumbs, lambda data: namespace_remove(namespace=team, data=data, actor=actor))


def _team(actor: User, namespace_id: UUID) -> Namespace:
    """404 for a personal namespace: that goes with its user."""
    found = namespace_for(actor, namespace_id)
    if found.owner_id is not None:
        raise NotFound("There is no such team.")
    return found


def _page(request: HttpRequest, preview: Preview, crumbs: list[tuple[str, str]], remove: Remove) -> HttpResponse:
    form = RemovalForm(preview.name, request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        try:
            begun = remove(Data(form.cleaned_data["data"]))
        except DomainError as problem:
            show_in_form(form, problem)
        else:
            return redirect("removal_page", begun.pk)
    keep, delete = preview.fates
    choices = [
        {"value": fate.data, "fate": fate, "removed": counted(fate.removed), "kept": counted(fate.kept)}
        for fate in (keep, delete)
    ]
    context = {
        "preview": preview,
        "choices": choices,
        "breadcrumbs": crumbs,
        "form": form,
        "chosen": form["data"].value() or Data.KEEP,
        "under_way": removal_under_way(preview.namespace),
    }
    return render(request, "administration/remove.html", context)


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/users/<uuid:user_id>/remove/", user_remove_page, name="admin_user_remove_page"),
    path("admin/teams/<uuid:namespace_id>/remove/", team_remove_page, name="admin_team_remove_page"),
]

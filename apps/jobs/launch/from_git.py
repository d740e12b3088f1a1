"""Code from Git on the launch page: a button has it fetched, a part of the page says how far that is, and then the form
takes the version as if it had been chosen.

Not here: what the form proposes from the code (`proposals`), and the fetching (`apps.code`).
"""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, path
from django.views.decorators.http import require_GET, require_POST

from apps.accounts.selectors import user_of
from apps.code.git_imports import import_begin, import_for
from apps.code.models import CodeImport
from apps.errors import DomainError, Invalid
from apps.namespaces.models import Role
from apps.namespaces.selectors import namespace_for

FIELDS = {"address": "git_address", "ref": "git_ref", "folder": "git_folder", "git_token": "git_token"}
_LONGEST = 1_000


def hosts_shown() -> list[str]:
    """The hosts that the form names, with the scheme where it is not https."""
    return [one.origin.removeprefix("https://") for one in settings.YARDMASTER_GIT_HOSTS]


@login_required
@require_POST
def fetch(request: HttpRequest) -> HttpResponse:
    """Begin, and show how far it is; or what is wrong with the address."""
    said = {name: request.POST.get(field, "").strip()[: _LONGEST + 1] for name, field in FIELDS.items()}
    try:
        namespace = namespace_for(user_of(request), request.POST.get("namespace") or None, at_least=Role.MEMBER)
        made = import_begin(namespace=namespace, user=user_of(request), **said)
    except DomainError as error:
        return _shown(request, problem=error)
    return _shown(request, made)


@login_required
@require_GET
def state(request: HttpRequest, import_id: UUID) -> HttpResponse:
    """How far it is."""
    return _shown(request, import_for(user_of(request), import_id))


def _shown(request: HttpRequest, one: CodeImport | None = None, problem: DomainError | None = None) -> HttpResponse:
    problems: list[str] = []
    if problem is not None:
        errors = problem.errors if isinstance(problem, Invalid) else ()
        problems = [f"{each.message} {each.remedy}" for each in errors] or [f"{problem.detail} {problem.remedy}"]
    elif one is not None and one.problem:
        problems = [f"{one.problem['detail']} {one.problem['remedy']}"]
    return render(
        request, "jobs/launch/git_state.html", {"one": one, "problems": problems, "is_taken": "taken" in request.GET}
    )


urlpatterns: list[URLPattern | URLResolver] = [
    path("jobs/launch/git/", fetch, name="launch_git"),
    path("jobs/launch/git/<uuid:import_id>/", state, name="launch_git_state"),
]

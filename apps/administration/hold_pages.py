"""Holding and releasing from pages that show what is held: the page of a namespace, and the overview.

Not here: what a hold does (`apps.jobs.state.holds`), and the queue with its jobs (`queue_pages`).
"""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_POST

from apps.accounts.administrators import administrators_only
from apps.accounts.selectors import user_of
from apps.administration.queue_actions import Action, queue_act
from apps.errors import DomainError, words_of
from apps.jobs.models import Cause, Hold
from apps.jobs.state.holds import LONGEST_REASON
from apps.namespaces.selectors import namespace_for


@administrators_only
@require_POST
def namespace_hold(request: HttpRequest, namespace_id: UUID) -> HttpResponse:
    """Hold it, for a reason, or release it."""
    shown = namespace_for(user_of(request), namespace_id)
    action = Action.RELEASE if request.POST.get("action") == Action.RELEASE else Action.HOLD
    reason = request.POST.get("reason", "")[: LONGEST_REASON + 1]
    done = f"{shown.slug} is held." if action is Action.HOLD else f"{shown.slug} may start jobs again."
    _act(request, done, action=action, namespaces=[str(shown.pk)], reason=reason)
    return redirect("namespace_page", shown.pk)


@administrators_only
@require_POST
def hold_release(request: HttpRequest, hold_id: UUID) -> HttpResponse:
    """Release what this holds. That of a budget ends with the budget."""
    found = Hold.objects.select_related("namespace", "job").filter(pk=hold_id, cause=Cause.ADMINISTRATOR).first()
    if found is None:
        messages.info(request, "This hold was released already.")
    elif found.engine:
        _act(request, f"{found.engine} starts jobs again.", action=Action.UNDRAIN, engine=found.engine)
    elif found.namespace is not None:
        done = f"{found.namespace.slug} may start jobs again."
        _act(request, done, action=Action.RELEASE, namespaces=[str(found.namespace_id)])
    elif found.job is not None:
        _act(request, f"{found.job.name} may start.", action=Action.RELEASE, jobs=[found.job.pk])
    return redirect(f"{reverse('admin_page')}#holds-title")


def _act(
    request: HttpRequest, done: str, *, action: Action, namespaces: list[str] | None = None,
    jobs: list[UUID] | None = None, engine: str = "", reason: str = "",
) -> None:  # fmt: skip
    """Do it, and say what came of it on the next page."""
    try:
        count = queue_act(
            action=action, actor=user_of(request), namespaces=namespaces or (), jobs=jobs or (), engine=engine,
            reason=reason,
        )  # fmt: skip
    except DomainError as problem:
        said = [f"{one.message} {one.remedy}" for one in problem.errors]
        messages.error(request, " ".join(said) or words_of(problem))
        return
    if count:
        messages.success(request, done)
    else:
        messages.info(request, "It was released already.")


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("namespaces/<uuid:namespace_id>/hold/", namespace_hold, name="namespace_hold"),
    path("admin/holds/<uuid:hold_id>/release/", hold_release, name="admin_hold_release"),
]

"""The pages of engines for administrators: all of them side by side, and each with its machines and a drain."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.administrators import administrators_only
from apps.accounts.selectors import user_of
from apps.administration.engine_plots import SPANS, plot_of
from apps.administration.engine_table import EngineShown, engines_shown, jobs_on, machines_of
from apps.administration.queue_actions import WORDS, Action, queue_act
from apps.administration.queue_table import named
from apps.api.offsets import numbered
from apps.errors import DomainError, NotFound, words_of
from apps.jobs.engines.snapshots import MOST_JOBS, MOST_MACHINES
from apps.jobs.state.holds import LONGEST_REASON
from yardmaster.engines.base import MachineState

AT_ONCE = 50
STATES = {
    MachineState.READY: "Ready",
    MachineState.CORDONED: "Cordoned",
    MachineState.UNDER_PRESSURE: "Under pressure",
    MachineState.NOT_READY: "Not ready",
}
_LONGEST_SEARCH = 100


@administrators_only
@require_safe
def engines(request: HttpRequest) -> HttpResponse:
    return render(request, "administration/engines.html", {"engines": engines_shown(timezone.now())})


@administrators_only
@require_safe
def engine(request: HttpRequest, engine_name: str) -> HttpResponse:
    now = timezone.now()
    shown = _named(engine_name, now)
    search = request.GET.get("search", "").strip()[:_LONGEST_SEARCH]
    state = request.GET.get("state", "")
    state = state if state in STATES else ""
    page = numbered(machines_of(engine_name, search, state), request.GET.get("page", ""), AT_ONCE)
    context: dict[str, Any] = {
        "engine": shown, "page": page, "machines": _rows(shown, page.rows), "search": search, "state": state,
        "states": list(STATES.items()), "most": MOST_MACHINES,
        "before": page.before and _url(engine_name, search, state, page.before),
        "after": page.after and _url(engine_name, search, state, page.after),
        "breadcrumbs": [(reverse("admin_engines_page"), "Engines")],
        **_plot(request, engine_name, now),
    }  # fmt: skip
    return render(request, "administration/engine.html", context)


@administrators_only
@require_POST
def engine_drain(request: HttpRequest, engine_name: str) -> HttpResponse:
    """Drain it, or end the drain: as on the page of its queue."""
    action = Action.UNDRAIN if request.POST.get("action") == Action.UNDRAIN else Action.DRAIN
    reason = request.POST.get("reason", "")[: LONGEST_REASON + 1]
    try:
        queue_act(action=action, actor=user_of(request), engine=engine_name, reason=reason)
    except DomainError as problem:
        said = [f"{one.message} {one.remedy}" for one in problem.errors]
        messages.error(request, " ".join(said) or words_of(problem))
        if isinstance(problem, NotFound):
            return redirect("admin_engines_page")
    else:
        messages.success(request, f"{WORDS[action]}: done.")
    return redirect("admin_engine_page", engine_name)


def _named(name: str, now: datetime) -> EngineShown:
    found = engines_shown(now, name)
    if not found:
        raise NotFound("There is no such engine.")
    return found[0]


def _plot(request: HttpRequest, engine_name: str, now: datetime) -> dict[str, Any]:
    span = request.GET.get("span", "day")
    span = span if span in SPANS else "day"
    asked = request.GET.get("resource", "")
    plot = plot_of(engine_name, asked, SPANS[span][1], now)
    return {"plot": plot, "span": span, "spans": [(key, words) for key, (words, _) in SPANS.items()]}


def _rows(shown: EngineShown, machines: Any) -> list[dict[str, Any]]:
    """The machines of a page, with the names of the jobs on them. An engine that is one machine, and leaves it to the
    portal to know its jobs, runs all of them there."""
    rows = [dict(one) for one in machines]
    if shown.machine_count == 1 and rows and not rows[0]["tasks"]:
        held = {one.name: one.reserved for one in shown.amounts}
        left = {name: max(0, amount - held.get(name, 0)) for name, amount in rows[0]["free"].items()}
        rows[0] |= {
            "jobs": jobs_on(shown.name, MOST_JOBS), "job_count": shown.running_jobs, "tasks": shown.running_tasks,
            "held": held, "free": left,
        }  # fmt: skip
    names = named({UUID(key) for one in rows for key in one["jobs"]})
    for one in rows:
        one["named"] = [names[UUID(key)] for key in one["jobs"] if UUID(key) in names]
        one["more"] = max(0, one["job_count"] - len(one["named"]))
        one["state_words"] = STATES.get(one["state"], one["state"])
    return rows


def _url(name: str, search: str, state: str, page: int) -> str:
    values = {"search": search, "state": state, "page": page}
    query = urlencode({key: value for key, value in values.items() if value})
    return f"{reverse('admin_engine_page', args=[name])}?{query}#machines-title"


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/engines/", engines, name="admin_engines_page"),
    path("admin/engines/<str:engine_name>/", engine, name="admin_engine_page"),
    path("admin/engines/<str:engine_name>/drain/", engine_drain, name="admin_engine_drain"),
]

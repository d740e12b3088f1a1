"""The pages of sweeps: which there are, one with its trials and plots, and what is done with it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.accounts.selectors import user_of
from apps.api.paging import page_of
from apps.errors import Conflict, DomainError, words_of
from apps.jobs.pages.comparison import MOST_JOBS
from apps.namespaces.context import current_namespace, role_within
from apps.namespaces.models import Namespace, Role
from apps.sweeps import services
from apps.sweeps.models import Sweep
from apps.sweeps.new_page import sweep_new
from apps.sweeps.selectors import Standing, bests_of, counts_of, plan_of, standing, sweep_for, sweeps_visible
from apps.sweeps.shown import ROWS, STATE_WORDS, SWEEP_WORDS, number_words, plots_of, rows_of
from yardmaster.sweeps.decision import ENDED
from yardmaster.sweeps.space import text_of
from yardmaster.sweeps.space import words_of as parameter_words

AT_ONCE = 25


@login_required
@require_GET
def sweeps(request: HttpRequest) -> HttpResponse:
    """Those of the current namespace, the newest first."""
    namespace = current_namespace(request)
    page = page_of(sweeps_visible(user_of(request), namespace.slug), request.GET.get("cursor"), AT_ONCE)
    counts, bests = counts_of(page.rows), bests_of(page.rows)
    context = {
        "page": page,
        "rows": [_list_row(one, counts[one.pk], bests.get(one.pk)) for one in page.rows],
        "namespace": namespace,
    }
    return render(request, "sweeps/sweeps.html", context)


def _list_row(sweep: Sweep, counts: Any, best: float | None) -> dict[str, Any]:
    plan = plan_of(sweep)
    ended = sum(counts[one.value] for one in ENDED)
    return {
        "sweep": sweep,
        "state": SWEEP_WORDS[sweep.state],
        "parameters": ", ".join(one.name for one in plan.space),
        "ended": ended,
        "percent": 100 * ended // max(1, sweep.count),
        "metric": plan.metric,
        "best": number_words(best),
    }


@login_required
@require_GET
def sweep_page(request: HttpRequest, sweep_id: UUID) -> HttpResponse:
    """One sweep; for htmx only the parts that change."""
    sweep = sweep_for(user_of(request), sweep_id)
    found = standing(sweep)
    order, first = request.GET.get("order", ""), _first(request.GET.get("from", ""))
    rows, columns = rows_of(found, order, first)
    context = {
        "sweep": sweep,
        "found": found,
        "state": SWEEP_WORDS[sweep.state],
        "counts": [(STATE_WORDS[name], found.counts[name]) for name in STATE_WORDS if name in found.counts],
        "rows": rows,
        "columns": columns,
        "plots": plots_of(found),
        "best": _best(found),
        "space": [(one.name, parameter_words(one)) for one in found.plan.space],
        "compare_url": _compare_url(found),
        "newer_url": _part_url(order, first - ROWS) if first > 0 else "",
        "older_url": _part_url(order, first + ROWS) if first + ROWS < len(found.trials) else "",
        "may_change": _may_change(request, sweep.namespace),
        "breadcrumbs": [(reverse("sweeps_page"), "Sweeps")],
    }
    template = "sweeps/live.html" if "HX-Request" in request.headers else "sweeps/sweep.html"
    response = render(request, template, context)
    patch_vary_headers(response, ["HX-Request"])
    return response


def _may_change(request: HttpRequest, namespace: Namespace) -> bool:
    return role_within(request, namespace) not in (None, Role.VIEWER)


def _first(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 6 else 0


def _part_url(order: str, first: int) -> str:
    said = {"order": order} if order else {}
    return f"?{urlencode(said | {'from': max(0, first)})}#trials"


def _best(found: Standing) -> dict[str, Any] | None:
    trial = found.best
    if trial is None:
        return None
    values = [(one.name, text_of(trial.values[one.name])) for one in found.plan.space if one.name in trial.values]
    has_job = trial.job is not None and trial.job.deleted_at is None
    return {"trial": trial, "values": values, "value": number_words(trial.best), "has_job": has_job}


def _compare_url(found: Standing) -> str:
    """The best of its jobs side by side."""
    jobs = [one.job_id for one in found.ranked if one.job is not None and one.job.deleted_at is None][:MOST_JOBS]
    if len(jobs) < 2:
        return ""
    tag = [("tag", found.metric.tag)] if found.metric else []
    return f"{reverse('job_compare_page')}?{urlencode([*(('job', str(one)) for one in jobs), *tag])}"


@login_required
@require_POST
def sweep_stop(request: HttpRequest, sweep_id: UUID) -> HttpResponse:
    user = user_of(request)
    services.sweep_stop(user=user, sweep=sweep_for(user, sweep_id))
    messages.success(request, "Stopping. The sweep ends when its trials have ended.")
    return redirect("sweep_page", sweep_id)


@login_required
@require_POST
def sweep_pause(request: HttpRequest, sweep_id: UUID) -> HttpResponse:
    user = user_of(request)
    services.sweep_pause(user=user, sweep=sweep_for(user, sweep_id))
    messages.success(request, "Paused. Trials that run continue.")
    return redirect("sweep_page", sweep_id)


@login_required
@require_POST
def sweep_resume(request: HttpRequest, sweep_id: UUID) -> HttpResponse:
    user = user_of(request)
    try:
        services.sweep_resume(user=user, sweep=sweep_for(user, sweep_id))
    except Conflict as problem:
        messages.error(request, words_of(problem))
    else:
        messages.success(request, "Resumed.")
    return redirect("sweep_page", sweep_id)


@login_required
@require_http_methods(["GET", "POST"])
def sweep_delete(request: HttpRequest, sweep_id: UUID) -> HttpResponse:
    """GET asks whether its jobs are to go with it; POST deletes."""
    user = user_of(request)
    sweep = sweep_for(user, sweep_id, at_least=Role.MEMBER)
    error = ""
    if request.method == "POST":
        try:
            services.sweep_delete(user=user, sweep=sweep, with_jobs=request.POST.get("jobs") == "delete")
        except DomainError as problem:
            error = words_of(problem)
        else:
            messages.success(request, f"Deleted the sweep {sweep.name}.")
            return redirect("sweeps_page")
    way = [(reverse("sweeps_page"), "Sweeps"), (reverse("sweep_page", args=[sweep_id]), sweep.name)]
    jobs = sweep.trials.filter(job__isnull=False, job__deleted_at__isnull=True).count()
    context = {"sweep": sweep, "jobs": jobs, "error": error, "breadcrumbs": way}
    return render(request, "sweeps/delete.html", context, status=409 if error else 200)


_ONE = "sweeps/<uuid:sweep_id>/"
pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("sweeps/", sweeps, name="sweeps_page"),
    path("sweeps/new/", sweep_new, name="sweep_new_page"),
    path(_ONE, sweep_page, name="sweep_page"),
    path(f"{_ONE}stop/", sweep_stop, name="sweep_stop_page"),
    path(f"{_ONE}pause/", sweep_pause, name="sweep_pause_page"),
    path(f"{_ONE}resume/", sweep_resume, name="sweep_resume_page"),
    path(f"{_ONE}delete/", sweep_delete, name="sweep_delete_page"),
]

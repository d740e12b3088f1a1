"""The dashboard of administrators: use, waste, failures and waiting times over the last hours or months, as pictures
and tables, each to be kept as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from django.views.decorators.http import require_safe

from apps.accounting.bars import Bars, bars
from apps.accounting.dashboards import idle_servers, title_of
from apps.accounting.report_file import csv_response
from apps.accounting.trends import (
    BY,
    PERIODS,
    Figures,
    Scope,
    Waited,
    failures_over_time,
    idle_over_time,
    is_unknown,
    measured,
    scope_of,
    use_over_time,
    waits_over_time,
)
from apps.accounts.administrators import administrators_only
from apps.api.plots import Lines, lines
from apps.errors import NotFound
from apps.jobs.engines.configured import engine_names
from yardmaster.accounting.amounts import CPU, GPUS, MEMORY
from yardmaster.accounting.calendar import begin_of

NAMES = {CPU: "CPU hours", MEMORY: "GiB hours of memory", GPUS: "GPU hours"}
MOST_ROWS = 50
MOST_LINES = 20_000
"""Of a file."""
HALF_DAY = timedelta(hours=12)


class ScopeForm(forms.Form):
    """What the dashboard shows; without anything the last 7 days of all, by namespace."""

    period = forms.ChoiceField(choices=[(key, words) for key, (words, _) in PERIODS.items()], required=False)
    space = forms.CharField(max_length=63, required=False)
    """The short name of a namespace. Not called so: a page's `namespace` chooses the one that its reader works in."""
    engine = forms.CharField(max_length=63, required=False)
    by = forms.ChoiceField(choices=list(BY.items()), required=False)
    resource = forms.CharField(max_length=253, required=False)

    def clean(self) -> dict[str, Any]:
        said = dict(super().clean() or self.cleaned_data)
        defaults = {"period": "week", "by": "namespace", "resource": CPU, "engine": "", "space": ""}
        return {**said, **{name: said.get(name) or value for name, value in defaults.items()}}

    def scope(self, now: datetime) -> Scope:
        said = self.cleaned_data
        return scope_of(said["period"], now, said["space"], said["engine"])


@administrators_only
@require_safe
def dashboard(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    form = ScopeForm(request.GET)
    choices = {
        "form": form, "periods": [(key, words) for key, (words, _) in PERIODS.items()], "ways": list(BY.items()),
        "engines": engine_names(),
    }  # fmt: skip
    if not form.is_valid():
        return render(request, "accounting/dashboards.html", {**choices, "is_wrong": True}, status=400)
    scope, said = form.scope(now), form.cleaned_data
    found = use_over_time(scope, said["by"], (said["resource"], CPU))
    if is_unknown(scope, found):
        form.add_error("space", f"There is no namespace {scope.namespace}. Enter its short name.")
        return render(request, "accounting/dashboards.html", {**choices, "is_wrong": True}, status=400)
    resources = list(dict.fromkeys([*NAMES, *sorted(found)]))
    resource = said["resource"] if said["resource"] in resources else CPU
    waste, by_day = measured(scope)
    waits, idle_hours = waits_over_time(scope), idle_over_time(scope)
    context = {
        **choices, "said": said, "scope": scope, "query": request.GET.urlencode(),
        "resources": [(name, _words(name)) for name in resources], "resource": resource, "words": _words(resource),
        "use": _picture(found.get(resource, {}), scope, _words(resource)), "totals": _totals(found.get(resource, {})),
        "waste": waste[:MOST_ROWS], "days": by_day, "waste_lines": _waste_lines(scope, by_day),
        "failures": _failures(scope), "waits": waits, "wait_lines": _wait_lines(scope, waits),
        "wait_count": sum(one.count for one in waits),
        # Servers that are held count as use.
        "idle": idle_servers(now, scope.only()) if found else [],
        "idle_after": settings.YARDMASTER_IDLE_SERVERS_AFTER, "idle_totals": _totals(idle_hours),
        "idle_bars": _picture(idle_hours, scope, "idle CPU hours"),
    }  # fmt: skip
    return render(request, "accounting/dashboards.html", context)


def _words(resource: str) -> str:
    return NAMES.get(resource, f"{resource} hours")


def _picture(figures: Figures, scope: Scope, words: str) -> Bars:
    return bars(figures, scope.steps, words, scope.label)


def _totals(figures: Figures) -> list[tuple[str, Decimal]]:
    sums = [(name, sum(steps.values(), Decimal())) for name, steps in figures.items()]
    return sorted(sums, key=lambda one: (-one[1], one[0]))[:MOST_ROWS]


def _waste_lines(scope: Scope, by_day: Sequence[Any]) -> Lines:
    points = [(begin_of(date.fromisoformat(one.name)) + HALF_DAY, one) for one in by_day]
    series = {
        "held": [(at, float(one.held_cpu)) for at, one in points],
        "used": [(at, float(one.used_cpu)) for at, one in points],
    }
    return lines(series, scope.begin, max(scope.end, *(at for at, _ in points)) if points else scope.end)


def _wait_lines(scope: Scope, waits: Sequence[Waited]) -> Lines:
    points = [
        (one.step if isinstance(one.step, datetime) else begin_of(one.step) + HALF_DAY, one) for one in waits
    ]  # fmt: skip
    series = {
        "median": [(at, one.median.total_seconds()) for at, one in points],
        "90 %": [(at, one.ninth.total_seconds()) for at, one in points],
    }
    return lines(series, scope.begin, max([scope.end, *(at for at, _ in points)]))


@dataclass(frozen=True)
class Failed:
    """`causes`: title, code and count, the most frequent first; the picture has them over time."""

    causes: list[tuple[str, str, int]]
    picture: Bars
    count: int


def _failures(scope: Scope) -> Failed:
    found = failures_over_time(scope)
    causes = [(title_of(reason), reason, sum(steps.values())) for reason, steps in found.items()]
    causes.sort(key=lambda one: (-one[2], one[0]))
    figures: Figures = {}
    for reason, steps in found.items():
        series = figures.setdefault(title_of(reason), {})
        for step, count in steps.items():
            series[step] = series.get(step, Decimal()) + count
    picture = bars(figures, scope.steps, "attempts", scope.label)
    return Failed(causes[:MOST_ROWS], picture, sum(one[2] for one in causes))


@administrators_only
@require_safe
def dashboard_csv(request: HttpRequest, what: str) -> HttpResponse:
    """One table of the dashboard, for the same time, as a file of so many lines at most."""
    now, form = timezone.now(), ScopeForm(request.GET)
    if what not in _FILES or not form.is_valid():
        raise NotFound()
    scope = form.scope(now)
    head, *rows = _FILES[what](scope, form.cleaned_data["by"], now)
    return csv_response(f"dashboard-{what}", [head, *rows[:MOST_LINES]])


Rows = list[Sequence[Any]]


def _use_rows(scope: Scope, by: str, _: datetime) -> Rows:
    found = use_over_time(scope, by)
    lines_of = [
        [_at(step), name, resource, f"{value:f}"]
        for resource, figures in found.items()
        for name, steps in figures.items()
        for step, value in steps.items()
    ]
    return [["begin", by, "resource", "hours"], *sorted(lines_of)]


def _waste_rows(scope: Scope, *_: Any) -> Rows:
    names = ("held_cpu", "used_cpu", "held_memory", "used_memory")
    head = ["namespace", "cpu_hours_held", "cpu_hours_used", "memory_gib_hours_held", "memory_gib_hours_used"]
    return [head, *([one.name, *(f"{getattr(one, name):f}" for name in names)] for one in measured(scope)[0])]


def _failure_rows(scope: Scope, *_: Any) -> Rows:
    found = failures_over_time(scope)
    counts = [
        [_at(step), reason, title_of(reason), count] for reason, steps in found.items() for step, count in steps.items()
    ]
    return [["begin", "reason", "title", "attempts"], *sorted(counts)]


def _wait_rows(scope: Scope, *_: Any) -> Rows:
    head = ["begin", "attempts", "median_seconds", "ninetieth_percentile_seconds", "longest_seconds"]
    seconds = ("median", "ninth", "longest")
    return [
        head,
        *(
            [_at(one.step), one.count, *(getattr(one, name).total_seconds() for name in seconds)]
            for one in waits_over_time(scope)
        ),
    ]


def _idle_rows(scope: Scope, _: str, now: datetime) -> Rows:
    head = ["namespace", "user", "job", "job_name", "cpu", "memory_bytes", "without_progress_since"]
    return [
        head,
        *(
            [one.namespace, one.owner, str(one.job_id), one.job_name, str(one.cpu), one.memory, one.since.isoformat()]
            for one in idle_servers(now, scope.only())
        ),
    ]


def _idle_hour_rows(scope: Scope, *_: Any) -> Rows:
    found = idle_over_time(scope)
    lines_of = [[_at(step), name, f"{value:f}"] for name, steps in found.items() for step, value in steps.items()]
    return [["begin", "namespace", "idle_cpu_hours"], *sorted(lines_of)]


def _at(step: date) -> str:
    return step.isoformat()


_FILES = {
    "use": _use_rows, "waste": _waste_rows, "failures": _failure_rows, "waits": _wait_rows, "idle": _idle_rows,
    "idle-hours": _idle_hour_rows,
}  # fmt: skip

pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/dashboard/", dashboard, name="admin_dashboard_page"),
    path("admin/dashboard/<slug:what>.csv", dashboard_csv, name="admin_dashboard_csv"),
]

"""The dashboards of use, and the report of a month: for administrators. Each can be kept as CSV."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from apps.accounting.bars import bars
from apps.accounting.dashboards import failures, idle_servers, waits, waste
from apps.accounting.forms import BY, RangeForm
from apps.accounting.month_file import HOURS_HEAD, NAMESPACE, USER, hours_cells, month_file
from apps.accounting.month_report import MOST_ROWS, month_begun, month_of_use
from apps.accounting.priced import Use, price_list, priced_use, total_of
from apps.accounting.report_file import csv_response
from apps.accounts.administrators import administrators_only
from apps.errors import NotFound
from yardmaster.accounting.amounts import CPU, GPUS, MEMORY, hours, others
from yardmaster.accounting.calendar import (
    day_of,
    earlier_months,
    month_of,
    steps_between,
)

MONTHS_LISTED = 12
NAMES = {CPU: "CPU hours", MEMORY: "GiB hours of memory", GPUS: "GPU hours"}


@administrators_only
@require_safe
def dashboard(request: HttpRequest) -> HttpResponse:
    """Use over time, and beside it what is wasted, fails and waits."""
    now = timezone.now()
    form = RangeForm(request.GET, now)
    if not form.is_valid():
        return render(request, "accounting/dashboard.html", {"form": form, "is_wrong": True}, status=400)
    begin, end = form.times()
    by, step, resource = (form.cleaned_data[name] for name in ("by", "step", "resource"))
    found = priced_use(begin, end, [by], step=step)
    steps = steps_between(form.cleaned_data["since"], day_of(end) if end > begin else day_of(begin), step)
    steps = sorted({*steps, *(_day(key[-1]) for key in found)})
    totals = _totals(found)
    context = {
        "form": form, "by": BY[by], "resource": resource, "resources": _resources(found, resource),
        "bars": bars(_figures(found, resource), steps, _words(resource)), "words": _words(resource),
        "totals": totals[:MOST_ROWS], "total": total_of(found.values()), "prices": price_list(),
        "waste": waste(begin, end), "idle": idle_servers(now), "failures": failures(begin, end),
        "waits": waits(begin, end), "months": earlier_months(day_of(now), MONTHS_LISTED),
        "query": request.GET.urlencode(),
    }  # fmt: skip
    return render(request, "accounting/dashboard.html", context)


@administrators_only
@require_safe
def dashboard_csv(request: HttpRequest, what: str) -> HttpResponse:
    """One table of the dashboard, for the same time, as a file."""
    now = timezone.now()
    form = RangeForm(request.GET, now)
    if not form.is_valid():
        raise NotFound()
    begin, end = form.times()
    by, step = form.cleaned_data["by"], form.cleaned_data["step"]
    rows: list[Sequence[Any]]
    if what == "use":
        found = sorted(priced_use(begin, end, [by], step=step).items(), key=lambda one: (str(one[0][-1]), repr(one[0])))
        rows = [["begin", by, *HOURS_HEAD]]
        rows += [[str(_day(key[-1])), _name(key[:-1]), *hours_cells(one)] for key, one in found]
    elif what == "waste":
        rows = [["namespace", "cpu_hours_held", "cpu_hours_used", "memory_gib_hours_held", "memory_gib_hours_used"]]
        rows += [
            [one.namespace, *map(str, (one.held_cpu, one.used_cpu, one.held_memory, one.used_memory))]
            for one in waste(begin, end)
        ]
    elif what == "failures":
        rows = [["reason", "title", "attempts"]]
        rows += [[one.reason, one.words, one.count] for one in failures(begin, end)]
    else:
        rows = [["namespace", "user", "job", "job_name", "cpu", "memory_bytes", "without_progress_since"]]
        rows += [
            [one.namespace, one.owner, str(one.job_id), one.job_name, str(one.cpu), one.memory, one.since.isoformat()]
            for one in idle_servers(now)
        ]
    return csv_response(what, rows)


@administrators_only
@require_safe
def month_report(request: HttpRequest, month: str) -> HttpResponse:
    """A month by namespace and by user, with totals and how far budgets are used up."""
    now = timezone.now()
    first = month_begun(month, now)
    found = month_of_use(first, now)
    context = {
        "month": first, "name": month, "total": found.total, "prices": price_list(),
        "rows": found.namespaces[:MOST_ROWS], "users": found.users[:MOST_ROWS],
        "left_out": max(0, len(found.namespaces) - MOST_ROWS), "users_left_out": max(0, len(found.users) - MOST_ROWS),
        "has_budgets": any(one.standing.lines for one in found.namespaces[:MOST_ROWS]),
        "is_running": first == month_of(day_of(now)), "devices": others(found.total.amounts),
        "breadcrumbs": [(reverse("admin_usage_page"), "Usage")],
    }  # fmt: skip
    return render(request, "accounting/month.html", context)


@administrators_only
@require_safe
def month_csv(request: HttpRequest, month: str) -> HttpResponse:
    """By namespace, with how much of its budget is used; with `by=user` by namespace and user."""
    now = timezone.now()
    first = month_begun(month, now)
    found = month_of_use(first, now)
    return month_file(first, found, USER if request.GET.get("by") == USER else NAMESPACE)


def _day(step: Any) -> date:
    found: date = step
    return found


def _name(key: tuple[Any, ...]) -> str:
    return str(key[-1] or "unknown")


def _totals(found: dict[Any, Use]) -> list[tuple[str, Use]]:
    """By the name that the keys end with, before their step, the most cores first."""
    sums: dict[str, Use] = {}
    for key, one in found.items():
        name = _name(key[:-1] if isinstance(key[-1], date) else key)
        sums.setdefault(name, Use()).add(one)
    return sorted(sums.items(), key=lambda one: (-one[1].amounts[CPU], one[0]))


def _figures(found: dict[Any, Use], resource: str) -> dict[str, dict[date, Decimal]]:
    figures: dict[str, dict[date, Decimal]] = {}
    for key, one in found.items():
        amount = one.amounts.get(resource, 0)
        if amount:
            steps = figures.setdefault(_name(key[:-1]), {})
            steps[key[-1]] = steps.get(key[-1], Decimal()) + hours(resource, amount)
    return figures


def _resources(found: dict[Any, Use], chosen: str) -> list[tuple[str, str]]:
    names = dict.fromkeys([*NAMES, *others(total_of(found.values()).amounts), chosen])
    return [(name, _words(name)) for name in names]


def _words(resource: str) -> str:
    return NAMES.get(resource, f"{resource} hours")


_FILES = ("use", "waste", "failures", "idle")

pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/usage/", dashboard, name="admin_usage_page"),
    *[path(f"admin/usage/{one}.csv", dashboard_csv, {"what": one}, name=f"admin_usage_{one}_csv") for one in _FILES],
    path("admin/usage/<str:month>/", month_report, name="admin_month_page"),
    path("admin/usage/<str:month>/use.csv", month_csv, name="admin_month_csv"),
]

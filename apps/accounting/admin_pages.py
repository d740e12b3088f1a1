"""What was held in any period, and the report of a month: for administrators. Each can be kept as CSV.

Not here: waste, failures and waiting times (`dashboard_pages`).
"""

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
    """Use over time, and the months that have a report."""
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
        "months": earlier_months(day_of(now), MONTHS_LISTED), "query": request.GET.urlencode(),
    }  # fmt: skip
    return render(request, "accounting/dashboard.html", context)


@administrators_only
@require_safe
def use_csv(request: HttpRequest) -> HttpResponse:
    """The use of the page, for the same time, as a file."""
    form = RangeForm(request.GET, timezone.now())
    if not form.is_valid():
        raise NotFound()
    begin, end = form.times()
    by, step = form.cleaned_data["by"], form.cleaned_data["step"]
    found = sorted(priced_use(begin, end, [by], step=step).items(), key=lambda one: (str(one[0][-1]), repr(one[0])))
    rows: list[Sequence[Any]] = [["begin", by, *HOURS_HEAD]]
    rows += [[str(_day(key[-1])), _name(key[:-1]), *hours_cells(one)] for key, one in found]
    return csv_response("use", rows)


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


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/usage/", dashboard, name="admin_usage_page"),
    path("admin/usage/use.csv", use_csv, name="admin_usage_use_csv"),
    path("admin/usage/<str:month>/", month_report, name="admin_month_page"),
    path("admin/usage/<str:month>/use.csv", month_csv, name="admin_month_csv"),
]

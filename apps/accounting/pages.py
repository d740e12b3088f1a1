"""Use for people themselves, and the budgets that administrators give. Not here: the dashboards (`admin_pages`)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from apps.accounting.budgets import budget_set, standing_of
from apps.accounting.forms import BudgetForm
from apps.accounting.limits import limits_by_namespace, standings
from apps.accounting.models import Budget
from apps.accounting.priced import Use, price_list, priced_use, total_of
from apps.accounting.report import Asked, usage_report, used_this_month
from apps.accounting.shown import job_hours
from apps.accounts.administrators import administrators_only
from apps.accounts.selectors import user_of
from apps.api.paging import page_of
from apps.api.problems import show_in_form
from apps.errors import DomainError, NotFound
from apps.jobs.explanations.kept import kept_shown
from apps.jobs.selectors import job_for
from apps.jobs.state.windows import reserved_for
from apps.namespaces.models import Membership, Namespace
from apps.namespaces.selectors import namespace_for
from yardmaster.accounting.budgets import NAMES, Standing
from yardmaster.accounting.calendar import begin_of, day_of, earlier_months, month_named, month_of, next_month

MONTHS = 12
MOST_JOBS = 10
MOST_BUDGETS = 50
AT_ONCE = 50


@dataclass(frozen=True)
class MonthUse:
    month: date
    use: Use


@login_required
@require_safe
def usage(request: HttpRequest) -> HttpResponse:
    """What one's own jobs used: by month, and of one month by namespace, role and job."""
    user, now = user_of(request), timezone.now()
    months = earlier_months(day_of(now), MONTHS)
    chosen = month_named(request.GET.get("month", "")) or months[0]
    if not months[-1] <= chosen <= months[0]:
        raise NotFound()
    only = {"owner_id": user.pk}
    begin, end = begin_of(chosen), min(now, begin_of(next_month(chosen)))
    by_month: dict[date, Use] = {}
    found: dict[tuple[Any, ...], Use] = {}
    for (*key, first), one in priced_use(begin_of(months[-1]), now, ("namespace", "role"), only, "month").items():
        by_month.setdefault(month_of(first), Use()).add(one)
        if month_of(first) == chosen:
            found.setdefault(tuple(key), Use()).add(one)
    jobs = usage_report(user, Asked(mine=True, by=("namespace", "job"), begin=begin, end=end), now) if found else None
    context = {
        "months": [MonthUse(one, by_month.get(one, Use())) for one in months],
        "chosen": chosen,
        "total": total_of(found.values()),
        "by_namespace": _by(found, 1),
        "by_role": _by(found, 2),
        "jobs": jobs.rows[:MOST_JOBS] if jobs else [],
        "budgets": _budgets(user.pk),
        "prices": price_list(),
    }
    return render(request, "accounting/usage.html", context)


@login_required
@require_safe
def job_part(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """A part of a job's page, fetched by it: the job's hours by role, and how long the job is kept."""
    job, now = job_for(user_of(request), job_id), timezone.now()
    context = {"found": job_hours(job, now), "prices": price_list(), **kept_shown(job, now)}
    return render(request, "accounting/job_use.html", context)


@login_required
@require_safe
def namespace_part(request: HttpRequest, namespace_id: UUID) -> HttpResponse:
    """A part of a namespace's page, fetched by it: the month so far, and where its budget stands."""
    shown, now = namespace_for(user_of(request), namespace_id), timezone.now()
    context = {
        "namespace": shown, "month": used_this_month(shown, now), "prices": price_list(),
        "reserved": reserved_for(shown), **_notice(shown, standing_of(shown, now), now),
    }  # fmt: skip
    return render(request, "accounting/budget_card.html", context)


@login_required
@require_safe
def notice_part(request: HttpRequest, namespace_id: UUID) -> HttpResponse:
    """A banner for pages of the namespace where a level of its budget is reached; else nothing."""
    shown, now = namespace_for(user_of(request), namespace_id), timezone.now()
    return render(request, "accounting/budget_notice.html", _notice(shown, standing_of(shown, now), now))


def _notice(shown: Namespace, found: Standing, now: datetime) -> dict[str, Any]:
    levels = settings.YARDMASTER_BUDGET_WARNINGS
    return {
        "slug": shown.slug, "standing": found, "line": found.fullest,
        "is_near": bool(levels) and found.percent >= min(levels), "next_month": next_month(day_of(now)),
    }  # fmt: skip


def _by(found: dict[tuple[Any, ...], Use], place: int) -> list[tuple[str, Use]]:
    """Summed by one part of the keys, the most cores first."""
    sums: dict[str, Use] = {}
    for key, one in found.items():
        sums.setdefault(key[place], Use()).add(one)
    return sorted(sums.items(), key=lambda one: (-one[1].amounts["cpu"], one[0]))


def _budgets(user_id: UUID) -> list[tuple[Namespace, Any]]:
    """The namespaces of the user that have a budget, with where they stand in this month."""
    ids = Membership.objects.filter(user=user_id).values("namespace_id")
    mine = list(Namespace.objects.filter(pk__in=ids).order_by("slug")[:MOST_BUDGETS])
    found = standings(limits_by_namespace([one.pk for one in mine]), timezone.now())
    return [(one, found[one.pk]) for one in mine if found[one.pk].lines]


@administrators_only
@require_safe
def budgets(request: HttpRequest) -> HttpResponse:
    """All namespaces with where they stand in this month."""
    rows = Namespace.objects.filter(closed_at=None)
    name = request.GET.get("name", "")[:63]
    page = page_of(rows.filter(slug__contains=name) if name else rows, request.GET.get("cursor"), AT_ONCE)
    limits = limits_by_namespace([one.pk for one in page.rows])
    found = standings(limits, timezone.now())
    context = {"page": page, "rows": [(one, found[one.pk]) for one in page.rows], "name": name}
    return render(request, "accounting/budgets.html", context)


@administrators_only
@require_http_methods(["GET", "HEAD", "POST"])
def budget(request: HttpRequest, namespace_id: UUID) -> HttpResponse:
    """The budget of one namespace, and a form to change it."""
    user = user_of(request)
    shown = namespace_for(user, namespace_id)
    own = Budget.objects.filter(namespace=shown).first()
    initial = {"is_default": own is None, **{name: getattr(own, name, None) for name in NAMES}}
    form = BudgetForm(request.POST if request.method == "POST" else None, initial=initial)
    if form.is_bound and form.is_valid():
        try:
            budget_set(namespace=shown, limits=form.limits(), actor=user)
            messages.success(request, "The budget was saved. Running jobs continue.")
            return redirect("admin_budget_page", shown.pk)
        except DomainError as problem:
            show_in_form(form, problem)
    context = {
        "namespace": shown,
        "form": form,
        "standing": standings(limits_by_namespace([shown.pk]), timezone.now())[shown.pk],
        "prices": price_list(),
        "breadcrumbs": [(reverse("admin_budgets_page"), "Budgets")],
    }
    return render(request, "accounting/budget.html", context, status=400 if form.errors else 200)


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("usage/", usage, name="usage_page"),
    path("namespaces/<uuid:namespace_id>/use/", namespace_part, name="namespace_use_part"),
    path("namespaces/<uuid:namespace_id>/budget-notice/", notice_part, name="budget_notice_part"),
    path("jobs/<uuid:job_id>/hours/", job_part, name="job_use_part"),
    path("admin/budgets/", budgets, name="admin_budgets_page"),
    path("admin/budgets/<uuid:namespace_id>/", budget, name="admin_budget_page"),
]

"""The page of all quotas: one table, and a change of many at once, which is shown before it is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from apps.accounts.administrators import administrators_only
from apps.accounts.selectors import user_of
from apps.administration.quota_bulk import MOST, quotas_change, quotas_plan
from apps.administration.quota_forms import BulkForm
from apps.administration.quota_names import MOST_SHOWN as MOST_NAMES
from apps.administration.quota_names import offered
from apps.administration.quota_schedules import schedules_create, times_check
from apps.administration.quota_table import KINDS, Cell, Column, Row, Table, Wanted, quota_table, wanted_of
from apps.api.offsets import numbered
from apps.api.problems import show_in_form
from apps.errors import DomainError
from apps.namespaces.models import is_uuid

AT_ONCE = 50
MOST_SHOWN = 200
"""Namespaces that a preview shows one by one."""
_WAYS = ("search", "kind", "sort")


_SORTS = (("used", "used", "+"), ("reserved", "reserved", "/"), ("hard", "limit", "·"), ("share", "part", ""))
"""What a column is sorted by, how the page calls it, and what stands behind it."""


@dataclass(frozen=True)
class Sort:
    """An address that sorts by it. `way`: how it is sorted now, or empty."""

    words: str
    after: str
    url: str
    way: str


@dataclass(frozen=True)
class Heading:
    """A column and what sorts by it."""

    column: Column
    sorts: tuple[Sort, ...]

    @property
    def aria_sort(self) -> str:
        return next((one.way for one in self.sorts if one.way), "none")


@administrators_only
@require_safe
def quotas(request: HttpRequest) -> HttpResponse:
    return _page(request, request.GET, BulkForm())


@administrators_only
@require_POST
def quotas_edit(request: HttpRequest) -> HttpResponse:
    """Shows what would change; with `apply`, changes it."""
    form = BulkForm(request.POST)
    if not form.is_valid():
        return _page(request, request.POST, form)
    try:
        chosen = _chosen(request.POST)
        if "apply" not in request.POST:
            return _preview(request, chosen, form)
        messages.success(request, _apply(request, chosen, form))
        return redirect(f"{reverse('admin_quotas_page')}?{urlencode(_ways(request.POST))}")
    except DomainError as problem:
        show_in_form(form, problem)
        return _page(request, request.POST, form)


def _apply(request: HttpRequest, chosen: list[UUID], form: BulkForm) -> str:
    """Make the change, or schedule it. Returns what was done, in words."""
    said, actor, seen = form.cleaned_data, user_of(request), request.POST.get("seen", "")[:64]
    if said["ends"]:
        made = schedules_create(
            namespace_ids=chosen, changes=form.changes, starts=said["starts"], ends=said["ends"],
            reason=said["reason"], actor=actor, seen=seen,
        )  # fmt: skip
        return f"Changes scheduled: {len(made)}. Running jobs continue at the start and at the end."
    count = quotas_change(
        namespace_ids=chosen, changes=form.changes, reason=said["reason"], actor=actor, seen=seen
    )  # fmt: skip
    return f"Quotas changed: {count}. Running jobs continue."


def _preview(request: HttpRequest, chosen: list[UUID], form: BulkForm) -> HttpResponse:
    plan, said = quotas_plan(chosen, form.changes), form.cleaned_data
    if said["ends"]:
        times_check(said["starts"], said["ends"], timezone.now())
    context = {
        "starts": said["starts"],
        "ends": said["ends"],
        "plan": plan,
        "shown": plan.planned[:MOST_SHOWN],
        "more": max(0, len(plan.planned) - MOST_SHOWN),
        "kept": [(name, form.data[name]) for name, value in said.items() if value],
        "reason": form.cleaned_data["reason"],
        "ways": _ways(request.POST),
        "everything": "everything" in request.POST,
        "namespaces": request.POST.getlist("namespace"),
        "breadcrumbs": [(reverse("admin_quotas_page"), "Quotas")],
    }
    return render(request, "administration/quotas_preview.html", context)


def _page(request: HttpRequest, values: QueryDict, form: BulkForm) -> HttpResponse:
    wanted, problem = Wanted(), ""
    try:
        wanted = wanted_of(values)
        table = quota_table(wanted)
    except DomainError as error:
        table, problem = quota_table(Wanted()), str(error.detail)
    page = numbered(table.rows, values.get("page", ""), AT_ONCE)
    ways = _ways(values)
    context = {
        "wanted": wanted,
        "problem": problem,
        "kinds": KINDS.items(),
        "headings": [_heading(one, wanted, ways) for one in table.columns],
        "name": _sorted_by("name", wanted, ways),
        "rows": [(row, _cells(row, table)) for row in page.rows],
        "page": page,
        "urls": {way: _url({**ways, "page": number}) for way, number in _neighbours(page.before, page.after)},
        "ways": ways,
        "form": form,
        "chosen": set(values.getlist("namespace")),
        "everything": "everything" in values,
        "most": MOST,
        "names_offered": offered().names[:MOST_NAMES],
    }
    return render(request, "administration/quotas.html", context)


def _neighbours(before: int | None, after: int | None) -> list[tuple[str, int]]:
    return [(name, number) for name, number in (("before", before), ("after", after)) if number is not None]


def _cells(row: Row, table: Table) -> list[tuple[Column, Cell | None]]:
    return [(column, row.cells.get(column.key)) for column in table.columns]


def _heading(column: Column, wanted: Wanted, ways: Mapping[str, str]) -> Heading:
    found = (
        Sort(words, after, *_sorted_by(f"{column.key}.{measure}", wanted, ways)) for measure, words, after in _SORTS
    )
    return Heading(column, tuple(found))


def _sorted_by(key: str, wanted: Wanted, ways: Mapping[str, str]) -> tuple[str, str]:
    """The address that sorts by this, the other way round where it is sorted so already; and the way it is now."""
    is_amount = key != "name"
    now = {key: "ascending", f"-{key}": "descending"}.get(wanted.sort, "")
    sort = f"-{key}" if (now == "ascending" or (is_amount and now == "")) else key
    return _url({**ways, "sort": sort}), now


def _url(ways: Mapping[str, Any]) -> str:
    return f"{reverse('admin_quotas_page')}?{urlencode(ways)}"


def _ways(values: Mapping[str, Any]) -> dict[str, str]:
    """The filters and the order of an address, without what is not set."""
    return {name: str(values[name])[:100] for name in _WAYS if values.get(name)}


def _chosen(values: QueryDict) -> list[UUID]:
    """The namespaces that are ticked, or all that match the filters."""
    if "everything" in values:
        return [row.pk for row in quota_table(wanted_of(values)).rows]
    return [UUID(one) for one in dict.fromkeys(values.getlist("namespace")) if is_uuid(one)]


pages_urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/quotas/", quotas, name="admin_quotas_page"),
    path("admin/quotas/edit/", quotas_edit, name="admin_quotas_edit"),
]

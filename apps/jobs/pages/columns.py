"""The further columns of the list of jobs: the page on which they are chosen, and what the list shows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import URLPattern, URLResolver, path, reverse
from django.views.decorators.http import require_http_methods

from apps.accounts.selectors import user_of
from apps.errors import Invalid
from apps.jobs.columns import Chosen, Offered, columns_choose, columns_chosen, columns_offered, known_ordering
from apps.namespaces.context import current_namespace
from apps.namespaces.models import Namespace
from yardmaster.job.list_columns import (
    FIXED,
    MOST_COLUMNS,
    NEWEST,
    OF_METRICS,
    ORDER_ONLY,
    PARAMETER,
    Column,
    Condition,
    Ordering,
    column_of,
)

EVERYWHERE = "all"
_OF_METRICS = {"metric": "latest", "min": "lowest", "max": "highest"}


@dataclass(frozen=True)
class Head:
    """The head of one column: the address that sorts by it, and how the list is sorted by it now (`ascending`,
    `descending`, or empty)."""

    column: Column
    url: str
    sorted: str


@dataclass(frozen=True)
class Choice:
    """One box to tick."""

    key: str
    words: str
    is_on: bool


def columns_shown(
    chosen: Sequence[Column], order: Ordering | None, conditions: Sequence[Condition]
) -> tuple[Column, ...]:  # fmt: skip
    """The chosen columns, and after them what the list is sorted and filtered by while it is: a reader sees why jobs
    stand where they do."""
    asked = [order.column] if order is not None and order.column.kind not in ORDER_ONLY else []
    return tuple(dict.fromkeys([*chosen, *asked, *(one.column for one in conditions)]))


def heads_of(query: QueryDict, columns: Sequence[Column], order: Ordering | None) -> list[Head]:
    """The heads of the list's further columns. What is sorted by already is turned around."""
    heads = []
    for column in columns:
        is_mine = order is not None and order.column == column
        descending = not (is_mine and order is not None and order.descending)
        changed = query.copy()
        changed.pop("cursor", None)
        changed["ordering"] = Ordering(column, descending).key
        state = "" if not is_mine else "ascending" if descending else "descending"
        heads.append(Head(column, f"?{changed.urlencode()}", state))
    return heads


def orders_of(columns: Sequence[Column], order: Ordering | None) -> list[tuple[str, str]]:
    """What the list can be sorted by: the key and its words."""
    found = [(NEWEST, "Newest first"), ("created", "Oldest first"), ("name", "Name")]
    sortable = [*columns, *(Column(kind) for kind in FIXED)]
    if order is not None and order.column.kind not in ORDER_ONLY:
        sortable.append(order.column)
    for column in dict.fromkeys(sortable):
        title = column.title[:1].upper() + column.title[1:]
        found += [(f"-{column.key}", f"{title}, highest first"), (column.key, f"{title}, lowest first")]
    return found


def order_asked(query: QueryDict, chosen: Chosen) -> Ordering | None:
    """What the address asks for, else what the user has chosen; what is no order is passed over."""
    asked = query.get("ordering", "")
    return known_ordering(asked) if asked else chosen.ordering


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def columns(request: HttpRequest) -> HttpResponse:
    """Choose the columns of the list, of the current namespace or of all."""
    user = user_of(request)
    within = scope_of(request)
    back = reverse("jobs_page") + ("" if within else f"?where={EVERYWHERE}")
    chosen, problem = columns_chosen(user, within), ""
    if request.method == "POST":
        more = [one.strip() for one in request.POST.get("more", "").split(",") if one.strip()]
        try:
            columns_choose(user, within, [*request.POST.getlist("column"), *more], request.POST.get("ordering", ""))
        except Invalid as error:
            problem = " ".join(f"{one.message} {one.remedy}" for one in error.errors)
        else:
            messages.success(request, "Columns saved.")
            return redirect(back)
    context = {
        **_choices(chosen, columns_offered(user, within)),
        "problem": problem,
        "typed": request.POST.get("more", ""),
        "orders": orders_of(chosen.columns, chosen.ordering),
        "ordering": chosen.ordering.key if chosen.ordering else NEWEST,
        "within": within,
        "back": back,
        "most": MOST_COLUMNS,
        "breadcrumbs": [(back, "Jobs")],
    }
    return render(request, "jobs/columns.html", context, status=422 if problem else 200)


def _choices(chosen: Chosen, offered: Offered) -> dict[str, object]:
    """Every column with whether it is chosen; what is chosen and no newest job has is offered all the same."""
    keys = {one.key for one in chosen.columns}
    metrics = sorted({*offered.metrics, *(one.name for one in chosen.columns if one.field)})
    parameters = sorted({*offered.parameters, *(one.name for one in chosen.columns if one.kind == PARAMETER)})
    rows = [
        (name, [Choice(f"{kind}:{name}", _OF_METRICS[kind], f"{kind}:{name}" in keys) for kind in OF_METRICS])
        for name in metrics
    ]
    return {
        "fixed": [Choice(kind, words, kind in keys) for kind, words in FIXED.items()],
        "metrics": rows,
        "parameters": [
            Choice(key, column_of(key).title, key in keys) for key in (f"parameter:{n}" for n in parameters)
        ],
    }


def scope_of(request: HttpRequest) -> Namespace | None:
    """The namespace whose columns the list shows; None: those of all."""
    return None if request.GET.get("where") == EVERYWHERE else current_namespace(request)


urlpatterns: list[URLPattern | URLResolver] = [path("jobs/columns/", columns, name="job_columns_page")]

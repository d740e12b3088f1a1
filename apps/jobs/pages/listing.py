"""The list of jobs: its filters lie in the address, its rows are fetched again when they change, and what is chosen in
it is stopped or deleted together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar
from urllib.parse import quote, unquote

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import path, reverse
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_GET, require_POST

from apps.accounts.selectors import user_of
from apps.api.paging import page_of
from apps.errors import DomainError, words_of
from apps.jobs.columns import columns_chosen, known_columns
from apps.jobs.explanations.row_words import STRATEGY_WORDS, rows_of
from apps.jobs.explanations.waiting_words import NEVER, WAITING
from apps.jobs.job_list import JobFilters, job_list
from apps.jobs.labels import LONGEST_TAG, MOST_TAGS, pinned, pins_of
from apps.jobs.models import Job
from apps.jobs.pages.bulk import Outcome, jobs_archive, jobs_chosen, jobs_delete, jobs_pin, jobs_stop, why_not_deleted
from apps.jobs.pages.columns import columns_shown, heads_of, order_asked, orders_of, scope_of
from apps.jobs.state.list_values import values_of
from apps.namespaces.models import Namespace
from yardmaster.job.list_columns import MOST_CONDITIONS, MOST_SHOWN, NEWEST, Condition, NotAColumn, condition_of
from yardmaster.job.spec import Strategy
from yardmaster.lifecycle.phases import Phase

ROWS = 25
LONGEST_SEARCH = 200
LONGEST_REASON = 63

Word = TypeVar("Word", bound=StrEnum)


@dataclass(frozen=True)
class Chip:
    """One phase to filter by: the address with it switched on or off."""

    phase: str
    url: str
    is_on: bool


@login_required
@require_GET
def jobs(request: HttpRequest) -> HttpResponse:
    """The page; for htmx only the list."""
    within, user, now = scope_of(request), user_of(request), timezone.now()
    everywhere = within is None
    filters = filters_of(request.GET, within.slug if within else None)
    chosen = columns_chosen(user, within)
    order = order_asked(request.GET, chosen)
    columns = columns_shown(chosen.columns, order, filters.conditions)
    listed = job_list(user, filters, within, order, columns)
    page = page_of(listed, request.GET.get("cursor"), ROWS)
    on_top = [] if listed.is_sorted else _pinned(request, filters, within)
    pins = {job.pk for job in on_top}
    shown = [*on_top, *(job for job in page.rows if job.pk not in pins)]
    where = request.GET.get("where_metric", "")
    context: dict[str, Any] = {
        "page": page,
        "rows": rows_of(shown, now, values_of(shown, columns, now)),
        "heads": heads_of(request.GET, columns, order),
        "column_keys": ",".join(quote(one.key, safe=":/ ") for one in columns),  # a name may have a comma
        "orders": orders_of(chosen.columns, order),
        "ordering": order.key if order else NEWEST,
        "condition": where,
        "is_condition_wrong": bool(where.strip()) and not filters.conditions,
        "pins": pins,
        "known_tags": sorted({tag for job in shown for tag in job.tags}),
        "filters": filters,
        "everywhere": everywhere,
        "chips": chips_of(request.GET, filters),
        "is_filtered": filters != JobFilters(namespace=filters.namespace),
        "is_first": not request.GET.get("cursor"),
        "here": request.get_full_path(),
        "strategies": STRATEGY_WORDS,
    }
    template = "jobs/parts/list.html" if _wants_part(request) else "jobs/jobs.html"
    return _varying(render(request, template, context))


def _pinned(request: HttpRequest, filters: JobFilters, within: Namespace | None) -> list[Job]:
    """What stands on top of the list: on its first page, where nothing is filtered, the user's pinned jobs."""
    if request.GET.get("cursor") or filters != JobFilters(namespace=filters.namespace):
        return []
    return pinned(user_of(request), within.pk if within else None)


@login_required
@require_GET
def rows(request: HttpRequest) -> HttpResponse:
    """Rows that have changed, to be put in the place of the old ones; a job that is gone takes its row with it."""
    asked = request.GET.getlist("job")
    found = jobs_chosen(user_of(request), asked)
    gone = {one for one in asked if _is_plain_id(one)} - {str(job.pk) for job in found}
    pins = set(pins_of(user_of(request)).values_list("job_id", flat=True))
    asked_columns = map(unquote, request.GET.get("columns", "").split(","))
    now, columns = timezone.now(), known_columns(asked_columns)[:MOST_SHOWN]
    values = values_of(found, columns, now)
    context = {"rows": rows_of(found, now, values), "pins": pins, "gone": sorted(gone)}
    return render(request, "jobs/parts/rows.html", context)


@login_required
@require_POST
def bulk(request: HttpRequest) -> HttpResponse:
    """Stop, delete or compare the chosen jobs. Deleting asks first, and says which of them it cannot delete."""
    user, back = user_of(request), _back(request)
    chosen = jobs_chosen(user, request.POST.getlist("job"))
    if not chosen:
        messages.warning(request, "No jobs selected. Select the checkbox of a row first.")
        return redirect(back)
    match request.POST.get("action"):
        case "compare":
            query = QueryDict(mutable=True)
            query.setlist("job", [str(job.pk) for job in reversed(chosen)])
            return redirect(f"{reverse('job_compare_page')}?{query.urlencode()}")
        case "stop":
            _tell(request, "Stopping", jobs_stop(user, chosen))
        case "archive" | "unarchive" as action:
            verb = "Archived" if action == "archive" else "Restored to the list:"
            _tell(request, verb, jobs_archive(user, chosen, archived=action == "archive"))
        case "pin":
            try:
                messages.success(request, jobs_pin(user, chosen))
            except DomainError as problem:
                messages.error(request, words_of(problem))
        case "delete":
            return _delete(request, chosen, back)
    return redirect(back)


def _delete(request: HttpRequest, chosen: list[Job], back: str) -> HttpResponse:
    """Delete the chosen jobs once their words have been typed: the name of one, the number of several."""
    reasons = [(job, why_not_deleted(job)) for job in chosen]
    deletable = [job for job, reason in reasons if not reason]
    words = deletable[0].name if len(deletable) == 1 else _count(deletable)
    typed = request.POST.get("typed")
    if deletable and typed is not None and typed.strip() == words.strip():
        _tell(request, "Deleted", jobs_delete(user_of(request), chosen))
        return redirect(back)
    context = {
        "deletable": deletable,
        "kept": [(job, reason) for job, reason in reasons if reason],
        "back": back,
        "words": words,
        "error": "" if typed is None else "The confirmation text does not match. Nothing was deleted.",
    }
    return render(request, "jobs/bulk_delete.html", context, status=200 if typed is None else 422)


def filters_of(query: QueryDict, namespace: str | None) -> JobFilters:
    """The filters that an address holds, in this namespace (None: in all). What is no filter is passed over: an old
    link shows more, not an error."""
    phases = {phase for phase in (_word(Phase, text) for text in query.getlist("phase")) if phase}
    return JobFilters(
        namespace=namespace,
        phases=tuple(phase for phase in Phase if phase in phases),
        strategy=_word(Strategy, query.get("strategy", "")),
        owner=query.get("owner", "").strip()[:LONGEST_SEARCH] or None,
        search=query.get("search", "").strip()[:LONGEST_SEARCH] or None,
        queue_state=query.get("queue_state") if query.get("queue_state") in (NEVER, WAITING) else None,
        reason=query.get("reason", "").strip()[:LONGEST_REASON] or None,
        tags=_tags(query.getlist("tag")),
        archived=query.get("archived") == "yes",
        conditions=_conditions(query.get("where_metric", "")),
    )


def _conditions(text: str) -> tuple[Condition, ...]:
    """`loss < 0.3`, several with commas between them. One that is none: none of them."""
    try:
        return tuple(condition_of(one) for one in text.split(",") if one.strip())[:MOST_CONDITIONS]
    except NotAColumn:
        return ()


def _tags(asked: list[str]) -> tuple[str, ...]:
    """Each once, and no more than a job can have."""
    found = (one.strip().casefold()[:LONGEST_TAG] for one in asked)
    return tuple(dict.fromkeys(one for one in found if one))[:MOST_TAGS]


def chips_of(query: QueryDict, filters: JobFilters) -> list[Chip]:
    """Each phase with the address that switches it, on the newest page. The address names the namespace, so that it
    shows others the same."""
    chips = []
    for phase in Phase:
        is_on = phase in filters.phases
        wanted = [one for one in filters.phases if one is not phase] if is_on else [*filters.phases, phase]
        changed = query.copy()
        changed.pop("cursor", None)
        if filters.namespace:
            changed["namespace"] = filters.namespace
        changed.setlist("phase", [one.value for one in wanted])
        chips.append(Chip(phase.value, f"?{changed.urlencode()}", is_on))
    return [*chips, _never_chip(query, filters)]


def _never_chip(query: QueryDict, filters: JobFilters) -> Chip:
    """The queued jobs that can never start: after the phases, of which they are no further one."""
    is_on = filters.queue_state == NEVER
    changed = query.copy()
    for name in ("cursor", "queue_state"):
        changed.pop(name, None)
    if filters.namespace:
        changed["namespace"] = filters.namespace
    if not is_on:
        changed["queue_state"] = NEVER
    return Chip("NEVER_FITS", f"?{changed.urlencode()}", is_on)


def _tell(request: HttpRequest, verb: str, outcome: Outcome) -> None:
    if outcome.done:
        messages.success(request, f"{verb} {_count(outcome.done)}.")
    for reason, number in outcome.reasons():
        left = "1 job was skipped" if number == 1 else f"{number} jobs were skipped"
        messages.warning(request, f"{left}: {reason}.".replace("..", "."))


def _count(jobs: Sequence[object]) -> str:
    return "1 job" if len(jobs) == 1 else f"{len(jobs)} jobs"


def _back(request: HttpRequest) -> str:
    """Where the form was, if that is in this portal."""
    asked = request.POST.get("back", "")
    return asked if url_has_allowed_host_and_scheme(asked, allowed_hosts=None) else reverse("jobs_page")


def _word(words: type[Word], text: str) -> Word | None:
    try:
        return words(text)
    except ValueError:
        return None


def _wants_part(request: HttpRequest) -> bool:
    return "HX-Request" in request.headers and "HX-History-Restore-Request" not in request.headers


def _varying(response: HttpResponse) -> HttpResponse:
    patch_vary_headers(response, ["HX-Request"])  # the part must not be kept in the page's place
    return response


def _is_plain_id(text: str) -> bool:
    return len(text) == 36 and all(sign in "0123456789abcdef-" for sign in text)


urlpatterns = [
    path("jobs/", jobs, name="jobs_page"),
    path("jobs/rows/", rows, name="job_rows"),
    path("jobs/bulk/", bulk, name="jobs_bulk"),
]

"""What namespaces have used, from the ledger: for their managers, of all of them for administrators, and for users
what they used themselves.

It also tells of jobs, users and namespaces that are no more. Reads only.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from apps.accounting.priced import Use, price_list, priced_use, total_of
from apps.accounting.sums import Key, Only, ledger_sums, overlapping
from apps.accounting.use import FIELDS, columns_of, jobs_held
from apps.accounts.models import User
from apps.errors import Forbidden, Invalid
from apps.jobs.models import Reservation
from apps.namespaces.models import Membership, Namespace, Role
from apps.namespaces.selectors import may, namespace_for
from yardmaster.accounting.amounts import CPU
from yardmaster.accounting.calendar import begin_of, day_of
from yardmaster.accounting.calendar import month_of as month_of_day
from yardmaster.accounting.prices import cost
from yardmaster.errors import Problem

LONGEST = timedelta(days=366)
FIRST_YEAR, LAST_YEAR = 1970, 9990
MOST_ROWS = 200_000
"""Of the ledger, read one by one or counted for one answer."""
MOST_SHOWN = 1_000
JOB = "job"
STEPS = ("day", "month")
GROUPS = (*FIELDS, JOB, *STEPS)
"""What a report can be grouped by: any of `FIELDS`, and one of `job`, `day` and `month`."""
USUAL = ("namespace", "user", "engine")
_JOB_COLUMNS = ("job_id", "job_name")


@dataclass(frozen=True)
class Row:
    """`keys` by column (`namespace_id`, `owner_name`, …). `jobs` None: not counted."""

    keys: dict[str, Any]
    use: Use
    jobs: int | None


@dataclass(frozen=True)
class UsageReport:
    """`rows`: the largest first, or by time. `left_out` of them are only in `total`."""

    begin: datetime
    end: datetime
    by: tuple[str, ...]
    rows: list[Row]
    total: Row
    left_out: int


@dataclass(frozen=True)
class Asked:
    """What a report shall be of. Without times: this month so far."""

    namespace: str = ""
    mine: bool = False
    by: tuple[str, ...] = USUAL
    begin: datetime | None = None
    end: datetime | None = None


def usage_report(user: User, asked: Asked, now: datetime) -> UsageReport:
    """The usage that the user may see. Raises Invalid for times and groups that make no sense, Forbidden and NotFound
    for namespaces of others."""
    end = asked.end or now
    begin = asked.begin or month_of(end)
    _refuse_window(begin, end)
    _refuse_groups(asked.by)
    only = visible(user, asked.namespace, mine=asked.mine)
    if JOB in asked.by:
        rows = _by_job(asked.by, only, begin, end)
        jobs = len({row.keys["job_id"] for row in rows})
    else:
        rows, jobs = _rows(asked.by, only, begin, end)
    total = Row({}, total_of(row.use for row in rows), jobs)
    return UsageReport(begin, end, asked.by, rows[:MOST_SHOWN], total, max(0, len(rows) - MOST_SHOWN))


def visible(user: User, namespace: str = "", *, mine: bool = False) -> Only:
    """Which rows the user may see, of one namespace (id or slug) or of all. Administrators also see what was removed,
    by the name or id that it had; with `mine` everyone sees their own, wherever that was."""
    own = {"owner_id": user.pk} if mine else {}
    if user.is_staff:
        return own | (_called(namespace) if namespace else {})
    if namespace:
        found = namespace_for(user, namespace)
        if not mine and not may(user, found, Role.MANAGER):
            raise Forbidden(f"This needs the manager role in {found.slug}.", "Ask a manager of the namespace.")
        return own | {"namespace_id": found.pk}
    if mine:
        return own
    managed = Membership.objects.filter(user=user, role=Role.MANAGER).values_list("namespace_id", flat=True)
    return {"namespace_id__in": list(managed)}


def used_this_month(namespace: Namespace, now: datetime) -> Use:
    """All that the namespace has used since the month began (UTC)."""
    found = priced_use(month_of(now), now, (), {"namespace_id": namespace.pk})
    return total_of(found.values())


def month_of(moment: datetime) -> datetime:
    """When the month (UTC) of this moment began."""
    return begin_of(month_of_day(day_of(moment)))


def _refuse_window(begin: datetime, end: datetime) -> None:
    for name, one in (("from", begin), ("to", end)):
        if not FIRST_YEAR <= one.year <= LAST_YEAR:
            message = f"Not between the years {FIRST_YEAR} and {LAST_YEAR}."
            raise Invalid([Problem(name, "out_of_range", message, "Choose another time.", one.isoformat())])
    if begin >= end:
        raise Invalid([Problem("to", "out_of_range", "The end must be later than `from`.", "Choose a later time.")])
    if end - begin > LONGEST:
        raise Invalid(
            [Problem("from", "out_of_range", "More than 366 days before `to`.", "Request at most one year at a time.")]
        )


def _refuse_groups(by: Sequence[str]) -> None:
    wrong = next((one for one in by if one not in GROUPS), None)
    several = sum(one in (JOB, *STEPS) for one in by) > 1 or len(set(by)) < len(by)
    if wrong is not None or several:
        message = (
            f"{wrong} is not a way to group use." if wrong is not None else "Use cannot be grouped by these together."
        )
        remedy = f"Choose among {', '.join(GROUPS)}; at most one of job, day and month."
        raise Invalid([Problem("group_by", "invalid", message, remedy, ",".join(by))])


def _called(namespace: str) -> dict[str, Any]:
    try:
        return {"namespace_id": uuid.UUID(namespace)}
    except ValueError:
        return {"namespace_slug": namespace}


def _rows(by: Sequence[str], only: Only, begin: datetime, end: datetime) -> tuple[list[Row], int]:
    """And how many jobs they are of together."""
    step = next((one for one in by if one in STEPS), "")
    fields = [one for one in by if one != step]
    columns = (*columns_of(fields), *([step] if step else []))
    found = priced_use(begin, end, fields, only, step)
    jobs = {} if step else jobs_held(begin, end, fields, only)
    rows = [Row(dict(zip(columns, key, strict=True)), one, None if step else jobs.get(key, 0))
            for key, one in found.items()]  # fmt: skip
    # A job has several roles, and one of all else.
    total = jobs_held(begin, end, (), only).get((), 0) if step or "role" in fields else sum(jobs.values())
    return sorted(rows, key=lambda row: (row.keys.get(step, date.min), -row.use.amounts[CPU], repr(row.keys))), total


def _within(only: Only, begin: datetime, end: datetime) -> Any:
    return Reservation.objects.filter(overlapping(begin, end), **only).order_by()


def _by_job(by: Sequence[str], only: Only, begin: datetime, end: datetime) -> list[Row]:
    """From the ledger itself: jobs are in no sums."""
    rows = _within(only, begin, end)
    if rows[: MOST_ROWS + 1].count() > MOST_ROWS:
        remedy = "Request a shorter period, or one namespace."
        raise Invalid([Problem("from", "too_much", f"There are more than {MOST_ROWS} entries in this period.", remedy)])
    columns = (*columns_of(one for one in by if one != JOB), *_JOB_COLUMNS)
    sums: dict[Key, Use] = {}
    for first, last in price_list().parts(day_of(begin), day_of(end) + timedelta(days=1)):
        since, until = max(begin, begin_of(first)), min(end, begin_of(last))
        for key, amounts in (ledger_sums([rows], since, until, columns) if since < until else {}).items():
            sums.setdefault(key, Use()).add(Use(amounts, cost(amounts, price_list().at(first))))
    found = [Row(dict(zip(columns, key, strict=True)), one, 1) for key, one in sums.items()]
    return sorted(found, key=lambda row: (-row.use.amounts[CPU], repr(row.keys)))

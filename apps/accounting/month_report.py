"""The report of a month: what each namespace and each user held, and how far budgets are used up.

Budgets are those in force now, also for a month that is over. Not here: how it is shown (`admin_pages`,
`month_views`) and kept (`month_file`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime
from uuid import UUID

from apps.accounting.limits import limits_by_namespace, standing_by
from apps.accounting.priced import Use, priced_use, total_of
from apps.errors import NotFound
from yardmaster.accounting.amounts import CPU
from yardmaster.accounting.budgets import Standing
from yardmaster.accounting.calendar import begin_of, month_named, next_month

UNKNOWN = "unknown"
MOST_ROWS = 1_000
"""Of a list, that are shown; files have all."""


@dataclass
class Row:
    """A namespace's or a user's part. `standing`: of a namespace's budget; without one it has no lines."""

    name: str
    use: Use = field(default_factory=Use)
    standing: Standing = field(default_factory=lambda: Standing(()))
    user: str = ""


@dataclass(frozen=True)
class Month:
    """Each list has the most cores first. `pairs`: by namespace and user."""

    total: Use
    namespaces: list[Row]
    users: list[Row]
    pairs: list[Row]


def month_begun(text: str, now: datetime) -> date:
    """The first day of the month `2026-11`. Raises `NotFound` for one that has not begun, and what is none."""
    first = month_named(text)
    if first is None or begin_of(first) > now or first.year < 1970 or first == date(1970, 1, 1):
        raise NotFound("There is no such month.", remedy="Enter a month that has begun, such as 2026-11.")
    return first


def month_of_use(first: date, now: datetime) -> Month:
    """The month that begins on `first`, until `now` where it is not over."""
    end = min(now, begin_of(next_month(first)))
    found = priced_use(begin_of(first), end, ["namespace", "user"])
    spaces: dict[tuple[UUID | None, str], Row] = {}
    users: dict[tuple[UUID | None, str], Row] = {}
    pairs: list[Row] = []
    for (space_id, slug, user_id, username), one in found.items():
        names = str(slug or UNKNOWN), str(username or UNKNOWN)
        spaces.setdefault((space_id, names[0]), Row(names[0])).use.add(one)
        users.setdefault((user_id, names[1]), Row(names[1], user=names[1])).use.add(one)
        pairs.append(Row(names[0], one, user=names[1]))
    limits = limits_by_namespace([pk for pk, _ in spaces if pk is not None])
    for (pk, _), row in spaces.items():
        if pk is not None:
            row.standing = standing_by(limits[pk], row.use)
    lists = (_sorted(spaces.values()), _sorted(users.values()), _sorted(pairs))
    return Month(total_of(found.values()), *lists)


def _sorted(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (-row.use.amounts[CPU], row.name, row.user))

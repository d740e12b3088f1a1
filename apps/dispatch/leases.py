"""The right to work on a row for a while. One process has it at a time: it is claimed by one conditional update, and
ends by release or by time. Two forms, over any model:

- `Leases`: one column names the holder, another the end. For work that is renewed, or that must be distinguished from a
  later holder's.
- `claim_due`: the time at which a row is due is itself the lease. A claim moves that time on, and the holder writes to
  the row only while it is unmoved: a row that was marked as due in the meantime is worked on again.

A lease saves work and is no lock: a holder that is slower than its lease meets a second one. So what is done under one
may be repeated, and what is written re-checks that the lease is still held.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.db.models import Model, Q, QuerySet

M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class Leases:
    """The two columns of a model that say who holds a row and until when. `none` is the holder of a free row."""

    holder: str
    until: str
    none: Any = ""

    def claim(
        self, rows: QuerySet[M], holder: object, now: datetime, lasts: timedelta, **also: Any
    ) -> QuerySet[M] | None:
        """Take the free ones of these rows, or renew them for who holds them, and write `also` with it. Returns the
        rows as long as they are held; None where another holds them or there are none."""
        free = Q(**{self.holder: holder}) | Q(**{f"{self.until}__isnull": True}) | Q(**{f"{self.until}__lte": now})
        if not rows.filter(free).update(**{self.holder: holder, self.until: now + lasts}, **also):
            return None
        return self.held(rows, holder)

    def held(self, rows: QuerySet[M], holder: object) -> QuerySet[M]:
        """Those of the rows that this holder has, also after the end of the lease if no other took them."""
        return rows.filter(**{self.holder: holder})

    def renew(self, rows: QuerySet[M], holder: object, until: datetime, /, **also: Any) -> bool:
        """Hold them until then and write `also`. False: another has them."""
        return bool(self.held(rows, holder).update(**{self.until: until}, **also))

    def release(self, rows: QuerySet[M], holder: object, /, **also: Any) -> bool:
        """Give them up and write `also`. False, and nothing is written: another has them."""
        return bool(self.held(rows, holder).update(**{self.holder: self.none, self.until: None}, **also))


def due(rows: QuerySet[M], column: str, now: datetime) -> QuerySet[M]:
    """Those whose time in this column has come, the oldest first: what a sweep wakes."""
    return rows.filter(**{f"{column}__lte": now}).order_by(column)


def claim_due(rows: QuerySet[M], column: str, now: datetime, lasts: timedelta, **also: Any) -> QuerySet[M] | None:
    """Take the due ones of these rows and write `also` with it. Returns the rows as long as their time is unmoved;
    None where none is due."""
    until = now + lasts
    if not rows.filter(**{f"{column}__lte": now}).update(**{column: until}, **also):
        return None
    return rows.filter(**{column: until})

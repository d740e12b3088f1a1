"""Sums of the ledger within a time, made by the database: exact, in whole numbers.

Not here: which rows those are, and what is summed already (`rollup`, `use`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db.models import BigIntegerField, F, Func, Q, QuerySet, Sum, Value
from django.db.models.functions import Cast, Coalesce, Greatest, Least

from apps.jobs.models import Reservation
from apps.jobs.state.whole_seconds import WholeSeconds
from yardmaster.accounting.amounts import CPU, GPUS, KIB, MEMORY, THOUSANDTHS, Amounts

Key = tuple[Any, ...]
Sums = dict[Key, Amounts]
Only = Mapping[str, Any]
"""Which rows: lookups of the columns of names, which the ledger and its sums have."""


class Thousandths(Func):
    """A number with three places as a whole number of thousandths."""

    template = f"CAST(ROUND(%(expressions)s * {THOUSANDTHS}) AS bigint)"
    output_field = BigIntegerField()


class Kib(Func):
    """Bytes as whole KiB."""

    template = f"(%(expressions)s / {KIB})"
    output_field = BigIntegerField()


def seconds_of(moment: datetime) -> int:
    """The same as `WholeSeconds`, for times from 1970 on."""
    return int(moment.timestamp() // 1)


def seconds_within(begin: datetime, end: datetime) -> Any:
    """For how long a row of the ledger was held in [begin, end). A clock that was set back makes none negative."""
    first, last = (Value(seconds_of(one), output_field=BigIntegerField()) for one in (begin, end))
    until = Least(Coalesce(WholeSeconds(F("released_at")), last), last)
    since = Greatest(WholeSeconds(F("reserved_at")), first)
    zero = Value(0, output_field=BigIntegerField())
    return Greatest(Cast(until - since, BigIntegerField()), zero)


def ledger_sums(
    rows: Sequence[QuerySet[Reservation]], begin: datetime, end: datetime, keys: Iterable[str]
) -> Sums:  # fmt: skip
    """What these rows, no row in two of them, held in [begin, end), by the values of `keys`. One statement."""
    return sums_of_parts(rows, [(begin, end)], keys)[0]


def sums_of_parts(
    rows: Sequence[QuerySet[Reservation]], parts: Sequence[tuple[datetime, datetime]], keys: Iterable[str]
) -> list[Sums]:
    """The same of each of several times. One statement."""
    keys = tuple(keys)
    of_parts: dict[str, Any] = {}
    for number, part in enumerate(parts):
        held = seconds_within(*part)
        of_parts |= {
            f"held_{number}": Sum(held), f"cpu_{number}": Sum(held * Thousandths(F("cpu"))),
            f"memory_{number}": Sum(held * Kib(F("memory"))),
            f"gpus_{number}": Sum(held * Cast(F("gpus"), BigIntegerField())),
        }  # fmt: skip
    # The same devices are one group: their pieces are multiplied here, for the database cannot sum what is in JSON.
    grouped = combined([one.order_by().values(*keys, "extended").annotate(**of_parts) for one in rows])
    found: list[defaultdict[Key, Amounts]] = [defaultdict(Counter) for _ in parts]
    for row in grouped.iterator(chunk_size=2_000):
        for number, sums in enumerate(found):
            amounts = {name: int(row[f"{name}_{number}"]) for name in (CPU, MEMORY, GPUS)}
            amounts |= {name: int(pieces) * int(row[f"held_{number}"]) for name, pieces in row["extended"].items()}
            key = tuple(row[key] for key in keys)
            sums[key].update({name: amount for name, amount in amounts.items() if amount})
    return [{key: amounts for key, amounts in sums.items() if amounts} for sums in found]


def combined(several: Sequence[QuerySet[Any, Any]]) -> QuerySet[Any, Any]:
    """Read in one statement, each by its own index: a condition of two parts would read the whole ledger."""
    first, *others = several
    return first.union(*others, all=True) if others else first


def overlapping(begin: datetime, end: datetime) -> Q:
    """Rows that were held at some time in [begin, end)."""
    return Q(released_at__isnull=True, reserved_at__lt=end) | Q(released_at__gt=begin, reserved_at__lt=end)


def present(begin: datetime, end: datetime) -> Q:
    """Rows that began in [begin, end), or began before and were held in it. What is present in a time is present in a
    part of it, whatever its parts are."""
    held = Q(released_at__isnull=True) | Q(released_at__gt=begin)
    return Q(reserved_at__lt=end) & (Q(reserved_at__gte=begin) | held)

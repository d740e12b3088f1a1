"""Which further columns a list of jobs can have, how they and its order are written, and what a condition says. Pure.

metric:loss          the latest value of a metric      min:loss, max:accuracy     its lowest, its highest
parameter:lr         what the job was given by name    duration, queue_time, …    one of `FIXED`
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from yardmaster.errors import Problem
from yardmaster.job.metrics import LONGEST_NAME
from yardmaster.job.named_values import is_name

FIXED = {
    "duration": "Duration",
    "queue_time": "Time in the queue",
    "steps_per_second": "Steps/s",
    "gpu_hours": "GPU-hours",
    "tags": "Tags",
}
ORDER_ONLY = ("created", "name")
"""What a list can be sorted by that is no further column: each row has it."""
OF_METRICS = {"metric": "latest", "min": "lowest", "max": "highest"}
"""Which value of a metric: the prefix of a column, and the field that has it."""
PARAMETER = "parameter"
MOST_COLUMNS = 12
MOST_CONDITIONS = 5
MOST_SHOWN = MOST_COLUMNS + 1 + MOST_CONDITIONS
"""The chosen columns, and those that a list is sorted and filtered by."""
NEWEST = "-created"
SIGNS = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte", "=": "exact"}
_CONDITION = re.compile(r"\s*(\S(?:.*?\S)?)\s*(<=|>=|<|>|=)\s*([-+0-9.eE]{1,40})\s*")


@dataclass(frozen=True)
class Column:
    """One column. `name` is empty for those of `FIXED`."""

    kind: str
    name: str = ""

    @property
    def key(self) -> str:
        """As it is written in addresses."""
        return f"{self.kind}:{self.name}" if self.name else self.kind

    @property
    def title(self) -> str:
        """What people read."""
        if self.kind in ("min", "max"):
            return f"{'lowest' if self.kind == 'min' else 'highest'} {self.name}"
        return self.name or FIXED.get(self.kind, self.kind.capitalize())

    @property
    def field(self) -> str:
        """Of a metric: which of its values. Empty: it is no metric."""
        return OF_METRICS.get(self.kind, "")


GPU_HOURS = Column("gpu_hours")


@dataclass(frozen=True)
class Ordering:
    """What a list is sorted by. Jobs without a value come last, either way."""

    column: Column
    descending: bool

    @property
    def key(self) -> str:
        return ("-" if self.descending else "") + self.column.key

    @property
    def is_newest(self) -> bool:
        return self.key == NEWEST


@dataclass(frozen=True)
class Condition:
    """`loss < 0.3`: the column is of a metric, the sign one of `SIGNS`."""

    column: Column
    sign: str
    value: float

    @property
    def words(self) -> str:
        name = self.column.name if self.column.kind == "metric" else self.column.key
        return f"{name} {self.sign} {self.value:g}"


class NotAColumn(ValueError):
    """The text names no column, order or condition. `problem` says so to a user."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def column_of(text: str, field: str = "columns") -> Column:
    """Raises `NotAColumn`."""
    kind, colon, name = text.partition(":")
    name = name.strip()
    if not colon and kind in FIXED:
        return Column(kind)
    if kind in OF_METRICS and 0 < len(name) <= LONGEST_NAME and name.isprintable():
        return Column(kind, name)
    if kind == PARAMETER and is_name(name):  # a database takes digits for a place in a list
        return Column(kind, name)
    known = ", ".join([*FIXED, "metric:NAME", "min:NAME", "max:NAME", "parameter:NAME"])
    raise NotAColumn(Problem(field, "unknown_column", "There is no such column.", f"One of: {known}.", text[:120]))


def columns_of_texts(texts: Iterable[str]) -> tuple[Column, ...]:
    """Each once, in their order. Raises `NotAColumn`, also for too many."""
    found = tuple(dict.fromkeys(column_of(text) for text in texts))
    if len(found) > MOST_COLUMNS:
        message = f"A list has {MOST_COLUMNS} further columns at most, and {len(found)} are asked for."
        raise NotAColumn(Problem("columns", "too_many", message, "Leave some out.", str(len(found))))
    return found


def ordering_of(text: str) -> Ordering:
    """Empty: the newest first. Raises `NotAColumn`."""
    text = text.strip() or NEWEST
    name = text.removeprefix("-")
    column = Column(name) if name in ORDER_ONLY else column_of(name, "ordering")
    return Ordering(column, text.startswith("-"))


def condition_of(text: str) -> Condition:
    """`loss < 0.3`, `max:accuracy >= 0.9`. Raises `NotAColumn`."""
    found = _CONDITION.fullmatch(text) if len(text) <= 2 * LONGEST_NAME else None
    value = _finite(found[3]) if found else None
    if found is None or value is None:
        raise NotAColumn(_no_condition(text))
    kind, colon, _ = found[1].partition(":")
    column = column_of(found[1] if colon and kind in (*OF_METRICS, PARAMETER) else f"metric:{found[1]}", "where")
    if not column.field:
        raise NotAColumn(_no_condition(text))
    return Condition(column, found[2], value)


def _no_condition(text: str) -> Problem:
    message = "A condition compares a metric with a number."
    return Problem(
        "where", "bad_condition", message, "Write for instance: loss < 0.3 or max:accuracy >= 0.9", text[:120]
    )


def _finite(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None

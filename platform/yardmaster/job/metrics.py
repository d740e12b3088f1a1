"""What is kept of a job's scalars for lists: of each the latest value, the lowest and the highest. Pure.

The curves themselves are kept elsewhere, in full; these few numbers are what a list shows, sorts and filters by.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

MOST_METRICS = 50
"""Of one job; further ones are in its curves alone."""
LONGEST_NAME = 100
_MEMORY = 60.0
"""Seconds after which what a job's speed was before counts for little."""


@dataclass(frozen=True)
class Kept:
    """What is known of one metric. `latest` None with a `step`: the last point is no finite number, as `not_finite`
    says (`nan`, `inf`, `-inf`). `lowest` and `highest` are of finite values alone."""

    step: int | None = None
    latest: float | None = None
    not_finite: str = ""
    lowest: float | None = None
    highest: float | None = None

    def with_point(self, step: int, value: float | None, not_finite: str = "") -> Kept:
        """With one more point. Of two points at one step the later one counts; the order of others does not matter."""
        found = self
        if self.step is None or step >= self.step:
            found = replace(found, step=step, latest=value, not_finite="" if value is not None else not_finite or "nan")
        if value is not None:
            lowest = value if found.lowest is None else min(found.lowest, value)
            highest = value if found.highest is None else max(found.highest, value)
            found = replace(found, lowest=lowest, highest=highest)
        return found

    def of_next_attempt(self) -> Kept:
        """As a run that continues from a checkpoint begins with it: its steps may begin before the last one."""
        return Kept(lowest=self.lowest, highest=self.highest)


def metric_name(run: str, tag: str) -> str:
    """The tag, after the run where there is one; empty: it is too long to be kept."""
    name = tag if run in ("", ".") else f"{run}/{tag}"
    return name if len(name) <= LONGEST_NAME else ""


def points_by_name(points: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """The points of each metric that can be kept, in their order."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for one in points:
        if name := metric_name(one["run"], one["tag"]):
            found.setdefault(name, []).append(one)
    return found


def with_points(kept: Kept, points: Iterable[Mapping[str, Any]]) -> Kept:
    """What is known with all of these points."""
    for one in points:
        kept = kept.with_point(one["step"], one["value"], one.get("not_finite", ""))
    return kept


def steps_per_second(before: float | None, from_step: Any, to_step: Any, seconds: float | None) -> float | None:
    """How fast the steps go, smoothed over the last minute or so. A step that went back, as after a restart, and a
    time that is not known change nothing. `before` None: nothing was known."""
    if not _is_number(from_step) or not _is_number(to_step) or not seconds or seconds <= 0 or to_step < from_step:
        return before
    now: float = (to_step - from_step) / seconds
    if before is None:
        return now
    weight = 1 - math.exp(-seconds / _MEMORY)
    return before + weight * (now - before)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)

"""Which running jobs would have to return to the queue so that a waiting one starts. Pure.

A job is taken only where that is allowed (`Running.may_go`: it keeps checkpoints, and an administrator allows it on its
engine), when it has run long enough, and not more than a few times a day. The one that waits takes from jobs of lower
priority, where its class may; and back what borrowers hold of its own guarantee. A job that stays within a guarantee of
its namespace is taken by no other namespace, whatever the priority: else two jobs could take the place of each other
without end. Whole jobs only, never single tasks.

The order in which they are taken: the lowest priority, whose namespace is most over its share, what started last. Then
those are spared again without which there is still enough, the best of them first. Nothing is taken where all together
would not be enough.

Not here: which of those that wait may take a place (`takings`), and taking it (`apps.jobs.worker.preempting`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from yardmaster.queueing.resources import Units


@dataclass(frozen=True)
class Rules:
    """What an administrator allows."""

    least_run: timedelta = timedelta(minutes=10)
    """A job runs at least so long before it is taken; and for one that waits nothing more is taken before so long."""
    most_a_day: int = 3
    """A job is taken at most so often in 24 hours."""


@dataclass(frozen=True)
class Running:
    """A job that runs. `over`: by how much its namespace is over its fair share, as `ShareOf.used - fair`."""

    job_id: uuid.UUID
    namespace_id: uuid.UUID
    priority: int
    """As it counts between namespaces."""
    started_at: datetime
    holds: Units
    over: float = 0
    borrows: bool = True
    """It does not stay within a guarantee of its namespace, or of a group above that."""
    may_go: bool = False
    taken_today: int = 0


@dataclass(frozen=True)
class Preemptor:
    """A job that waits. `lacks`: what it needs beyond what is free. `by_priority`: its class may take from lower ones;
    `within_guarantee`: it stays within a guarantee, and may take that back."""

    namespace_id: uuid.UUID
    priority: int
    lacks: Units = field(default_factory=dict)
    by_priority: bool = False
    within_guarantee: bool = False


Taken = Sequence[Running]


def _as_said(one: Running, taken: Taken) -> bool:
    return one.borrows


def victims(
    one: Preemptor,
    running: Iterable[Running],
    now: datetime,
    rules: Rules = Rules(),
    *,
    borrows: Callable[[Running, Taken], bool] = _as_said,
    has_space: Callable[[Taken], bool] = lambda taken: True,
) -> list[Running]:
    """Those that would go, the first taken first; none where nothing lacks, or it would not be enough. No one of them
    can be left out.

    `borrows`: whether a job borrows once others are taken: of two that exceed a guarantee together, one may stay within
    it alone. `has_space`: whether it would start then, asked where the sums suffice: single nodes may not.
    """
    lacks = {name: units for name, units in one.lacks.items() if units > 0}
    if not lacks:
        return []

    def is_enough(taken: Taken) -> bool:
        return _suffices(lacks, taken) and has_space(taken)

    taken: list[Running] = []
    for each in sorted(running, key=_place):
        if _may_take(one, each, borrows(each, taken), now, rules) and any(
            each.holds.get(name, 0) > 0 for name in lacks
        ):
            taken.append(each)
            if is_enough(taken):
                return _without_spare(taken, is_enough)
    return []


def _without_spare(taken: list[Running], is_enough: Callable[[Taken], bool]) -> list[Running]:
    for each in reversed(taken.copy()):
        rest = [other for other in taken if other is not each]
        if is_enough(rest):
            taken = rest
    return taken


def _place(one: Running) -> tuple[int, float, float, uuid.UUID]:
    return one.priority, -one.over, -one.started_at.timestamp(), one.job_id


def _may_take(one: Preemptor, each: Running, borrows: bool, now: datetime, rules: Rules) -> bool:
    if not each.may_go or each.taken_today >= rules.most_a_day or now - each.started_at < rules.least_run:
        return False
    is_own = each.namespace_id == one.namespace_id
    if one.by_priority and each.priority < one.priority:
        return borrows or is_own
    return one.within_guarantee and borrows and not is_own


def _suffices(lacks: Mapping[str, int], taken: Taken) -> bool:
    return all(sum(each.holds.get(name, 0) for each in taken) >= units for name, units in lacks.items())

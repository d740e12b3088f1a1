"""Before a launch: would this job start now, later or never, and which smaller shape of it would start now?

A dry run of `admission`: it promises nothing, and the answer may be old a moment later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from yardmaster.job.spec import NOTHING, Resources, Role, TrainingSpec
from yardmaster.job.spec_spark import elsewhere
from yardmaster.queueing.admission import DEFAULT_PATIENCE, Decision, Fit, Line, admit, answer
from yardmaster.queueing.ledger import Candidate, Ledger
from yardmaster.queueing.needs import total_of
from yardmaster.queueing.placement import Tasks, tasks_of
from yardmaster.queueing.pools import Needs
from yardmaster.queueing.resources import units_of

_SHRINKING = frozenset({Role.WORKER, Role.PS})
"""Roles that a smaller shape has fewer of; every other role has one task, or none."""


def check(
    spec: TrainingSpec,
    candidate: Candidate,
    queue: Iterable[Candidate],
    ledger: Ledger,
    now: datetime,
    patience: timedelta = DEFAULT_PATIENCE,
) -> Decision:
    """What would become of the job if it were launched now, with its largest fit. `candidate` is the one that `spec`
    makes."""
    queue = tuple(queue)
    decision = admit(candidate, queue, ledger, now, patience)
    if decision.fit is Fit.FITS_NOW:
        asked = {role: one.replicas for role, one in spec.roles.items()}
        return replace(decision, message="The job would start immediately.", largest_fit=asked)
    shape = largest_fit(spec, candidate, queue, ledger, now, patience)
    if decision.fit is Fit.NEVER_FITS:
        return replace(decision, largest_fit=shape)
    remedy = "Launch it and let it queue" + (", or launch the smaller shape." if shape else ".")
    return replace(decision, remedy=remedy, largest_fit=shape)


def largest_fit(
    spec: TrainingSpec,
    candidate: Candidate,
    queue: Iterable[Candidate],
    ledger: Ledger,
    now: datetime,
    patience: timedelta = DEFAULT_PATIENCE,
) -> dict[Role, int] | None:
    """The largest shape, at most the asked one, that would start now, or None: as many workers as possible, beside them
    as many parameter servers as possible, every other role as asked. More capacity never gives a smaller shape."""
    queue = tuple(queue)
    fewest = {role: 1 if role in _SHRINKING else one.replicas for role, one in spec.roles.items()}
    smallest = replace(candidate, total=_total_of(spec, fewest), tasks=_tasks_of(spec, fewest, candidate))
    # If not even this would start, nothing would: a job that is barred from a resource is so in any number.
    line = Line(smallest, queue, ledger, now, patience)
    if answer(smallest, line, ledger).fit is not Fit.FITS_NOW:
        return None
    ends_by = line.pools.end_of(candidate)
    left = line.pools.left_for(candidate.namespace_id, units_of(total_of(spec)), ends_by)

    def starts(shape: Mapping[Role, int]) -> bool:
        asked = units_of(_total_of(spec, shape))
        in_sum = all(need <= left.get(name, 0) for name, need in asked.items() if need)
        return in_sum and line.pools.are_placed(Needs({}, _tasks_of(spec, shape, candidate)))

    shape = fewest
    for role in (Role.WORKER, Role.PS):
        if role in shape:
            shape = _as_many(shape, role, spec.replicas(role), starts)
    return shape


def _as_many(
    shape: dict[Role, int], role: Role, most: int, starts: Callable[[Mapping[Role, int]], bool]
) -> dict[Role, int]:
    """The same shape with as many of the role as would start. `shape` itself would."""
    least = shape[role]
    while least < most:
        middle = (least + most + 1) // 2
        if starts({**shape, role: middle}):
            least = middle
        else:
            most = middle - 1
    return {**shape, role: least}


def _tasks_of(spec: TrainingSpec, shape: Mapping[Role, int], candidate: Candidate) -> tuple[Tasks, ...]:
    """Those of this shape, which run where those of the candidate do."""
    return tuple(replace(one, only=candidate.only) for one in tasks_of(spec, shape))


def _total_of(spec: TrainingSpec, shape: Mapping[Role, int]) -> Resources:
    beside = replace(NOTHING, extended=elsewhere(spec.spark))
    return sum((spec.roles[role].resources * count for role, count in shape.items()), beside)

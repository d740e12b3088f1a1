"""Before a launch: would this job start now, later or never, and which smaller shape of it would start now?

A dry run of `admission`: it promises nothing, and the answer may be old a moment later.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from yardmaster.admission import DEFAULT_PATIENCE, Admitted, Line, Never, admit, answer
from yardmaster.ledger import Candidate, Code, Ledger
from yardmaster.pools import Shortage, units_of
from yardmaster.spec import Role, TrainingSpec

_SHRINKING = frozenset({Role.WORKER, Role.PS})
"""Roles that a smaller shape has fewer of; every other role has one task, or none."""


class Fit(StrEnum):
    """The answer's word."""

    FITS_NOW = "fits_now"
    WAITS = "waits"
    NEVER_FITS = "never_fits"


@dataclass(frozen=True)
class Check:
    """The answer, its reason and numbers; `largest_fit` is the largest shape that would start now, None: none."""

    verdict: Fit
    code: Code | None
    message: str
    remedy: str = ""
    numbers: tuple[Shortage, ...] = ()
    position: int = 0
    largest_fit: Mapping[Role, int] | None = None


def check(
    spec: TrainingSpec,
    candidate: Candidate,
    queue: Iterable[Candidate],
    ledger: Ledger,
    now: datetime,
    patience: timedelta = DEFAULT_PATIENCE,
) -> Check:
    """What would become of the job if it were launched now. `candidate` is the one that `spec` makes."""
    queue = tuple(queue)
    decision = admit(candidate, queue, ledger, now, patience)
    if isinstance(decision, Admitted):
        asked = {role: one.replicas for role, one in spec.roles.items()}
        return Check(Fit.FITS_NOW, None, "It would start now.", largest_fit=asked)
    shape = largest_fit(spec, candidate, queue, ledger, now, patience)
    if isinstance(decision, Never):
        return Check(
            Fit.NEVER_FITS, decision.code, decision.message, decision.remedy, decision.numbers, largest_fit=shape
        )
    remedy = "Launch it and let it wait" + (", or launch the smaller shape." if shape else ".")
    return Check(Fit.WAITS, decision.code, decision.message, remedy, decision.numbers, decision.position, shape)


def largest_fit(
    spec: TrainingSpec,
    candidate: Candidate,
    queue: Iterable[Candidate],
    ledger: Ledger,
    now: datetime,
    patience: timedelta = DEFAULT_PATIENCE,
) -> dict[Role, int] | None:
    """The largest shape, at most the asked one, that would start now, or None: as many workers as possible, beside them
    as many parameter servers as possible, every other role as asked. More room never gives a smaller shape."""
    queue = tuple(queue)
    least = spec.total(frozenset(spec.roles) - _SHRINKING)
    for role in _SHRINKING & spec.roles.keys():
        least += spec.roles[role].resources
    smallest = replace(candidate, total=least)
    # If not even this would start, nothing would: a job that is barred from a resource is so in any number.
    line = Line(smallest, queue, ledger, now, patience)
    if not isinstance(answer(smallest, line, ledger), Admitted):
        return None
    return _shape(spec, line.pools.left_for(candidate.namespace_id, units_of(spec.total())))


def _shape(spec: TrainingSpec, left: Mapping[str, int]) -> dict[Role, int] | None:
    each = {role: units_of(one.resources) for role, one in spec.roles.items()}
    fixed = {role: one.replicas for role, one in spec.roles.items() if role not in _SHRINKING}
    for role, count in fixed.items():
        left = _less(left, each[role], count)
    for workers in range(spec.replicas(Role.WORKER), 0, -1):
        rest = _less(left, each[Role.WORKER], workers)
        if min(rest.values(), default=0) < 0:
            continue
        shape = {**fixed, Role.WORKER: workers}
        if Role.PS in spec.roles:
            shape[Role.PS] = min(spec.replicas(Role.PS), _times(rest, each[Role.PS]))
        if shape.get(Role.PS) != 0:
            return {role: shape[role] for role in spec.roles}
    return None


def _less(left: Mapping[str, int], each: Mapping[str, int], count: int) -> dict[str, int]:
    return {name: amount - count * each.get(name, 0) for name, amount in left.items()}


def _times(left: Mapping[str, int], each: Mapping[str, int]) -> int:
    return min((left[name] // need for name, need in each.items() if need > 0), default=0)

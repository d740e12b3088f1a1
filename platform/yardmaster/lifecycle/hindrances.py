"""What keeps a run from going on that its engine took: which of it the job shows, when the job goes back to the queue
for it, and when it has failed of it. Pure. Not here: the step that follows (`plan`).

Going back. Admission counts, an engine places: between the two others may take the capacity, or what fits in sum
fits on no machine. Of several jobs that hold each other up in this way the one that was admitted last goes back first,
and for the others the time begins again: so one of them has the capacity in the end, and they never take turns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from yardmaster.job.spec import TrainingSpec
from yardmaster.lifecycle.failures import REASONS, Verdict, task_name, verdict_for
from yardmaster.lifecycle.image_words import NOT_PULLED
from yardmaster.lifecycle.phases import Observation, Phase, Refused, TaskPhase, TaskState
from yardmaster.lifecycle.placing_words import (
    NAMESPACE_INCOMPLETE,
    NODE_DRAINED,
    NODE_NOT_READY,
    SCALING_UP,
    VOLUME_PENDING,
)
from yardmaster.lifecycle.success import UNSCHEDULABLE, job_verdict

_MOST_TELLING = (
    *sorted(NOT_PULLED),
    NAMESPACE_INCOMPLETE,
    "QuotaRefused",
    "StartFailed",
    NODE_NOT_READY,
    NODE_DRAINED,
    VOLUME_PENDING,
    UNSCHEDULABLE,
)
_OF_MACHINES = frozenset({*_MOST_TELLING, SCALING_UP, "Evicted"})
"""What a job that runs shows: not the failure that a task is just being restarted after, which its log tells."""

OF_LOST_MACHINES = frozenset({NODE_NOT_READY, NODE_DRAINED, "Evicted"})
"""Reasons that say more of a stale task than its missing heartbeat does."""


@dataclass(frozen=True)
class Rivals:
    """The other jobs that the same engine has no place for now."""

    is_last: bool = True
    """None of them was admitted after this one."""
    capacity_freed_at: datetime | None = None
    """When the last of them went back since this one was admitted."""


NO_RIVALS = Rivals()


@dataclass(frozen=True)
class Hindrance:
    """What a job that has no verdict shows. All empty: nothing hinders it."""

    reason: str = ""
    message: str = ""
    remedy: str = ""


def shown_hindrance(phase: Phase, seen: Observation) -> Hindrance:
    """Of a job that starts, the most telling reason of its tasks that have not begun, else what its engine says of the
    whole run. Of one that runs, what the machines do to its tasks. No other phase shows any."""
    if phase is Phase.STARTING:
        found = _most_telling(task for task in seen.tasks if task.phase is TaskPhase.PENDING)
        if found is not None:
            return _words(found.reason, found.message)
        return Hindrance("Starting", seen.message) if seen.message else Hindrance()
    if phase is not Phase.RUNNING:
        return Hindrance()
    hindered = [one for one in seen.tasks if not one.phase.is_ended and one.reason in _OF_MACHINES]
    found = _most_telling(hindered)
    if found is None:
        return Hindrance()
    others = sum(one.reason == found.reason for one in hindered) - 1
    name = task_name(found.role, found.index) + (f" (and {others} more)" if others else "")
    return _words(found.reason, f"{name}: {found.message or REASONS[found.reason].title}")


def goes_back_at(refused: Refused, submitted_at: datetime, rivals: Rivals, patience: timedelta) -> datetime | None:
    """When the patience with a refused run is over; None while another is to go first. The engine's clock, which may be
    slow, counts only from when the portal knew that the run was there."""
    if not rivals.is_last:
        return None
    return max(refused.since, submitted_at, rivals.capacity_freed_at or submitted_at) + patience


def image_verdict(spec: TrainingSpec, phase: Phase, seen: Observation) -> Verdict | None:
    """The verdict, were those images never to be had that could not be pulled so far. Each task has to begin; after
    that the job may do without some."""
    stuck = [one for one in seen.tasks if one.phase is TaskPhase.PENDING and one.reason in NOT_PULLED]
    if phase is Phase.STARTING:
        return verdict_for(stuck[0]) if stuck else None
    failed = (replace(one, phase=TaskPhase.FAILED) if one in stuck else one for one in seen.tasks)
    return job_verdict(spec, replace(seen, tasks=tuple(failed))) if stuck else None


def _most_telling(tasks: Iterable[TaskState]) -> TaskState | None:
    """The first of those with the reason that says most."""
    known = [task for task in tasks if task.reason in REASONS]
    order = {reason: at for at, reason in enumerate(_MOST_TELLING)}
    return min(known, key=lambda task: order.get(task.reason, len(order)), default=None)


def _words(reason: str, message: str) -> Hindrance:
    known = REASONS[reason]
    return Hindrance(reason, message or known.title, known.remedy)

"""What administrators do with a queue: move, hold, release and stop jobs, hold namespaces, drain engines.

One function for the page and the API; the services that it calls record each change. Not here: what the queue looks
like (`queue_table`), and who may do this (the views).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from enum import StrEnum

from django.db import transaction

from apps.accounts.models import User
from apps.errors import Invalid, NotFound
from apps.jobs.engines.configured import engine_names
from apps.jobs.models import Job
from apps.jobs.services import job_stop
from apps.jobs.state import moves
from apps.jobs.state.holds import LONGEST_REASON, Target, hold, lift
from apps.namespaces.models import Namespace
from yardmaster.errors import Problem

MOST = 200
"""Jobs in one action."""


class Action(StrEnum):
    """In words: `WORDS`."""

    FRONT = "front"
    PRIORITY = "priority"
    HOLD = "hold"
    RELEASE = "release"
    HOLD_NAMESPACES = "hold_namespaces"
    RELEASE_NAMESPACES = "release_namespaces"
    STOP = "stop"
    DRAIN = "drain"
    UNDRAIN = "undrain"


WORDS = {
    Action.FRONT: "Move to the front",
    Action.PRIORITY: "Set the priority",
    Action.HOLD: "Hold",
    Action.RELEASE: "Release",
    Action.HOLD_NAMESPACES: "Hold their namespaces",
    Action.RELEASE_NAMESPACES: "Release their namespaces",
    Action.STOP: "Stop",
    Action.DRAIN: "Drain the engine",
    Action.UNDRAIN: "End the drain",
}
OF_JOBS = [one for one in Action if one not in (Action.DRAIN, Action.UNDRAIN)]
_NO_REASON = (Action.RELEASE, Action.RELEASE_NAMESPACES, Action.UNDRAIN)


def queue_act(
    *, action: Action, actor: User, jobs: Sequence[uuid.UUID] = (), engine: str = "", reason: str = "",
    priority: int | None = None,
) -> int:  # fmt: skip
    """Do this with these jobs (or, of a drain, with the engine), all or nothing. Returns with how many things.

    Raises `Invalid` where what it needs is missing, `NotFound` for a job or an engine that there is not, and `Conflict`
    for a job to move that does not wait. Holding and releasing may be repeated.
    """
    reason = _reason(action, reason)
    with transaction.atomic():
        if action in (Action.DRAIN, Action.UNDRAIN):
            return _of_targets(action is Action.DRAIN, [_engine(engine)], reason, actor)
        found = _jobs(jobs)
        if action is Action.FRONT:
            return moves.move_to_front(found, reason=reason, actor=actor)
        if action is Action.PRIORITY:
            if priority is None:
                raise _missing("priority", "A priority is required.", "Write a whole number.")
            return moves.priority_set(found, priority, reason=reason, actor=actor)
        if action is Action.STOP:
            for job in found:
                job_stop(user=actor, job=job, reason=reason)
            return len(found)
        targets: list[Target] = list(found)
        if action in (Action.HOLD_NAMESPACES, Action.RELEASE_NAMESPACES):
            targets = list(Namespace.objects.filter(pk__in={one.namespace_id for one in found}))
        return _of_targets(action in (Action.HOLD, Action.HOLD_NAMESPACES), targets, reason, actor)


def _of_targets(is_hold: bool, targets: Sequence[Target], reason: str, actor: User) -> int:
    if not is_hold:
        return sum(lift(one, actor=actor) for one in targets)
    for one in targets:
        hold(one, reason=reason, actor=actor)
    return len(targets)


def _jobs(ids: Sequence[uuid.UUID]) -> list[Job]:
    """These jobs, in this order."""
    if not ids:
        raise _missing("jobs", "No job is selected.", "Select at least one.")
    if len(ids) > MOST:
        message = f"{len(ids)} jobs are selected; {MOST} can be changed at once."
        raise Invalid([Problem("jobs", "too_many", message, "Select fewer.", str(len(ids)))])
    jobs = Job.objects.for_lists().select_related("namespace", "owner").filter(deleted_at__isnull=True).in_bulk(ids)
    if len(jobs) < len(set(ids)):
        raise NotFound("One of these jobs does not exist any more. Nothing was changed.")
    return [jobs[one] for one in dict.fromkeys(ids)]


def _engine(name: str) -> str:
    if name not in engine_names():
        raise NotFound("There is no such engine.", remedy=f"There are: {', '.join(engine_names())}.")
    return name


def _reason(action: Action, text: str) -> str:
    reason = text.strip()
    if len(reason) > LONGEST_REASON or not (reason or action in _NO_REASON):
        message = f"A reason of at most {LONGEST_REASON} characters is required."
        raise _missing("reason", message, "Write why. Owners and members see it.")
    return reason


def _missing(name: str, message: str, remedy: str) -> Invalid:
    return Invalid([Problem(name, "required", message, remedy)])

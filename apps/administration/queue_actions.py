"""What administrators do with a queue: move, hold, release and stop jobs, hold namespaces, drain engines.

A namespace is held by its name also where no job of it waits.

One function for the page and the API; the services that it calls record each change. Not here: what the queue looks
like (`queue_table`), and who may do this (the views).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from enum import StrEnum

from django.db import transaction
from django.db.models import Q

from apps.accounts.models import User
from apps.errors import Invalid, NotFound
from apps.jobs.engines.configured import engine_names
from apps.jobs.models import Hold, Job
from apps.jobs.services import job_stop
from apps.jobs.state import moves
from apps.jobs.state.holds import LONGEST_REASON, Target, hold, lift
from apps.namespaces.models import Namespace, is_uuid
from yardmaster.errors import Problem

MOST = 200
"""Jobs in one action, and namespaces."""


class Action(StrEnum):
    """In words: `WORDS`."""

    FRONT = "front"
    END = "end"
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
    Action.END: "Move to the end",
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
_HOLDS = (Action.HOLD, Action.HOLD_NAMESPACES)
_OF_NAMESPACES = (*_HOLDS, Action.RELEASE, Action.RELEASE_NAMESPACES)


def queue_act(
    *, action: Action, actor: User, jobs: Sequence[uuid.UUID] = (), namespaces: Sequence[str] = (), engine: str = "",
    reason: str = "", priority: int | None = None,
) -> int:  # fmt: skip
    """Do this with these jobs (of a drain, with the engine), all or nothing. Returns with how many things.

    `namespaces`: short names or ids; held or released beside the jobs. Raises `Invalid` where what it needs is missing
    and for a namespace that there is not, `NotFound` for such a job or engine, and `Conflict` for a job to move that
    does not wait. Holding and releasing may be repeated.
    """
    reason = _reason(action, reason)
    if namespaces and action not in _OF_NAMESPACES:
        message = "Namespaces can be held and released only."
        raise Invalid([Problem("namespaces", "invalid", message, "Omit them.", ", ".join(namespaces)[:100])])
    with transaction.atomic():
        if action in (Action.DRAIN, Action.UNDRAIN):
            return _of_targets(action is Action.DRAIN, [_engine(engine, action)], reason, actor)
        named = _namespaces(namespaces)
        found = _jobs(jobs) if jobs or not named else []
        if action in _OF_NAMESPACES:
            return _of_targets(action in _HOLDS, _targets(action, found, named), reason, actor)
        return _of_jobs(action, found, reason, priority, actor)


def _of_jobs(action: Action, jobs: list[Job], reason: str, priority: int | None, actor: User) -> int:
    if action is Action.FRONT:
        return moves.move_to_front(jobs, reason=reason, actor=actor)
    if action is Action.END:
        return moves.move_to_end(jobs, reason=reason, actor=actor)
    if action is Action.PRIORITY:
        if priority is None:
            raise _missing("priority", "A priority is required.", "Write a whole number.")
        return moves.priority_set(jobs, priority, reason=reason, actor=actor)
    for job in jobs:
        job_stop(user=actor, job=job, reason=reason)
    return len(jobs)


def _targets(action: Action, jobs: list[Job], named: list[Namespace]) -> list[Target]:
    """What is held or released: the jobs or the namespaces of the jobs, and the namespaces that were named."""
    if action in (Action.HOLD, Action.RELEASE):
        return [*jobs, *named]
    keys = {one.namespace_id for one in jobs} - {one.pk for one in named}
    return [*Namespace.objects.filter(pk__in=keys), *named]


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


def _namespaces(wanted: Sequence[str]) -> list[Namespace]:
    """The namespaces with these short names or ids. One statement."""
    if len(wanted) > MOST:
        message = f"{len(wanted)} namespaces are named; {MOST} can be changed at once."
        raise Invalid([Problem("namespaces", "too_many", message, "Name fewer.", str(len(wanted)))])
    if not wanted:
        return []
    keys = {one: uuid.UUID(one) if is_uuid(one) else one for one in wanted}
    ids = [key for key in keys.values() if isinstance(key, uuid.UUID)]
    found = list(Namespace.objects.filter(Q(slug__in=wanted) | Q(pk__in=ids)).order_by("slug"))
    known = {key for one in found for key in (one.slug, one.pk)}
    unknown = [one[:100] for one, key in keys.items() if key not in known]
    if unknown:
        remedy = "Use short names or ids, as the table of quotas has them. Nothing was changed."
        raise Invalid(Problem("namespaces", "unknown", f"There is no namespace {one}.", remedy, one) for one in unknown)
    return found


def _engine(name: str, action: Action) -> str:
    """The drain of an engine that is no longer in the settings can be ended, too."""
    if name not in engine_names() and not (action is Action.UNDRAIN and Hold.objects.filter(engine=name).exists()):
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

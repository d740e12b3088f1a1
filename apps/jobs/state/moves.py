"""Changing the place of jobs that wait: to the front or the end of their engine's queue, or to another priority.

The order itself is `yardmaster.queueing.turns`: a priority counts between namespaces up to the ceiling of the
namespace. A job at the front is before all that count equally, and before those of its own namespace that have no class
of priority; where shares are set up it is the first of its namespace, and whose turn is next still follows from
guarantees, priority and shares. The end is the mirror of that: a job there is behind all that count equally and wait
now, and behind those of its own namespace; what is queued later comes after it. What is changed here holds for the
present attempt's wait; a retry begins with the priority that the job was launched with. Not here: who may do this (the
callers).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Max, Min
from django.db.models.functions import Coalesce
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.services import record
from apps.errors import Conflict, Invalid
from apps.jobs.models import Job, JobEvent
from apps.jobs.state import queue
from yardmaster.errors import Problem

HIGHEST = 1000
_STEP = timedelta(milliseconds=1)


def move_to_front(jobs: Sequence[Job], *, reason: str, actor: User) -> int:
    """Put these jobs, in this order, before all that wait for their engines. Returns how many. Raises `Conflict` where
    one of them does not wait any more: then none is moved."""
    with transaction.atomic():
        moved = {one.pk for one in jobs}
        for job in reversed(_waiting(jobs)):
            others = Job.objects.queued().filter(engine=job.engine).exclude(pk=job.pk)
            first = others.aggregate(at=Min(Coalesce("turn_at", "queued_at")))["at"] or job.queued_at
            # A class counts between namespaces in full: its number is raised for no one.
            own = others.filter(namespace_id=job.namespace_id, priority_class="").exclude(pk__in=moved)
            highest = None if job.priority_class else own.aggregate(most=Max("priority"))["most"]
            priority = job.priority if highest is None else min(HIGHEST, max(job.priority, highest + 1))
            turn_at = min(first, job.turn_at or job.queued_at) - _STEP
            _write(job, {"turn_at": turn_at, "priority": priority}, "Moved to the front of the queue", reason, actor)
    return len(jobs)


def move_to_end(jobs: Sequence[Job], *, reason: str, actor: User) -> int:
    """Put these jobs, in this order, behind all that wait for their engines now. Returns how many; raises as
    `move_to_front` does."""
    with transaction.atomic():
        later = {one.pk for one in jobs}
        for job in _waiting(jobs):
            later.discard(job.pk)
            others = Job.objects.queued().filter(engine=job.engine).exclude(pk=job.pk)
            last = others.aggregate(at=Max(Coalesce("turn_at", "queued_at")))["at"] or job.queued_at
            own = others.filter(namespace_id=job.namespace_id, priority_class="").exclude(pk__in=later)
            lowest = None if job.priority_class else own.aggregate(least=Min("priority"))["least"]
            priority = job.priority if lowest is None else min(job.priority, lowest)
            turn_at = max(last, job.turn_at or job.queued_at) + _STEP
            # Jobs of one namespace may share turns out: among those of one priority, the place decides who has which.
            values = {"turn_at": turn_at, "place_at": turn_at, "priority": priority}
            _write(job, values, "Moved to the end of the queue", reason, actor)
    return len(jobs)


def priority_set(jobs: Sequence[Job], priority: int, *, reason: str, actor: User) -> int:
    """Give these jobs another priority while they wait. Returns how many; raises as `move_to_front` does."""
    if not -HIGHEST <= priority <= HIGHEST:
        message = f"A priority lies between -{HIGHEST} and {HIGHEST}."
        raise Invalid([Problem("priority", "invalid", message, "Choose another.", str(priority))])
    with transaction.atomic():
        for job in _waiting(jobs):
            words = f"The priority was changed from {job.priority} to {priority}"
            _write(job, {"priority": priority}, words, reason, actor)
    return len(jobs)


def _waiting(jobs: Sequence[Job]) -> list[Job]:
    """The same jobs as they are now, while no pass decides a queue."""
    queue.lock_admissions()
    found = Job.objects.queued().select_related("namespace").defer("spec", "waiting").in_bulk([one.pk for one in jobs])
    gone = [one.name for one in jobs if one.pk not in found]
    if gone:
        raise Conflict(
            f"{gone[0]} does not wait in the queue any more. Nothing was moved.",
            "not_waiting",
            remedy="Look at the queue again.",
        )
    return [found[one.pk] for one in jobs]


def _write(job: Job, values: dict[str, Any], words: str, reason: str, actor: User) -> None:
    before = {f"{name}_before": _json(getattr(job, name)) for name in values}
    facts = {name: _json(value) for name, value in values.items()}
    Job.objects.filter(pk=job.pk).update(**values)
    message = f"{words} by an administrator" + (f": {reason}" if reason else ".")
    JobEvent.objects.create(job=job, at=timezone.now(), attempt=job.attempt, kind="moved", message=message)
    record(actor, "job.move", f"job:{job.pk}", namespace=job.namespace, reason=reason, **facts, **before)
    queue.ask(job.engine)


def _json(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value

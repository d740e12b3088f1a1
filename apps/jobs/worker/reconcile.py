"""Bring one job forward: look at what is really there, ask `plan` for the next step, perform it, and look again.

Every step may be repeated, so that a worker killed anywhere loses nothing: its lease runs out, the sweep wakes the job
and the next look finds what was done. No network lies within a transaction, nothing sleeps: what must wait is written
as `next_look_at`. Not here: which step is next (`yardmaster.lifecycle.plan`) and how one is performed (`steps`).
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.db.models import Max, Q
from django.utils import timezone

from apps.jobs.engines.configured import engine_named
from apps.jobs.models import Job
from apps.jobs.state import leases, ledger, specs, task_facts
from apps.jobs.state.phase_gate import PhaseMoved
from apps.jobs.worker import removal, setbacks, steps
from yardmaster.engines.base import Keeps
from yardmaster.errors import YardmasterError
from yardmaster.job.spec import Role, TrainingSpec
from yardmaster.lifecycle.hindrances import NO_RIVALS, Rivals
from yardmaster.lifecycle.image_words import NOT_PULLED
from yardmaster.lifecycle.phases import ABSENT, Observation, Phase, Wanted
from yardmaster.lifecycle.placing_words import SCALING_UP
from yardmaster.lifecycle.plan import Remembered, Wait, plan
from yardmaster.lifecycle.success import UNSCHEDULABLE

log = logging.getLogger(__name__)

Clock = Callable[[], datetime]

MOST_LOOKS = 5
"""In one go, where wake-ups keep coming while the job is looked at."""
MOST_STEPS = 12
"""In one look. A whole life takes fewer; a job that would take more continues at the next look."""
SOON = timedelta(seconds=1)


def reconcile(job_id: uuid.UUID, *, clock: Clock = timezone.now) -> None:
    """Bring the job as far forward as it can be now. Returns within seconds; repeats harmlessly. Where another
    worker has it: returns at once, and that one looks again."""
    lease = leases.claim(job_id, clock())
    if lease is None:
        return
    for _ in range(MOST_LOOKS):
        try:
            next_look_at = _bring_forward(job_id, clock)
        except YardmasterError as error:
            setbacks.after_known(lease, error, clock())
            return
        except (DatabaseError, InterfaceError):
            setbacks.after_database(lease, clock())
            return
        except Exception:  # the top of the loop: one job's bug must not stop the others, nor this job for ever
            log.exception("Job %s could not be brought forward", job_id)
            setbacks.after_unknown(lease, clock())
            return
        if leases.release(lease, next_look_at=next_look_at):
            return
    leases.release_for_others(lease, now=clock())


def _bring_forward(job_id: uuid.UUID, clock: Clock) -> datetime | None:
    """Perform steps until there is nothing to do now. Returns when to look again (None: never)."""
    for _ in range(MOST_STEPS):
        job = Job.objects.filter(pk=job_id).first()
        if job is None:
            return None
        if job.deleted_at is not None:
            return None if removal.remove(job) else clock() + SOON
        try:
            until = _one_step(job, clock)
        except PhaseMoved:
            continue  # it was moved between our look and our write: look at what it is now
        if until is not None:
            return until.until
    return clock() + SOON


def _one_step(job: Job, clock: Clock) -> Wait | None:
    """Look, and perform one step. Returns the wait, where that is the step. A look that failed fails the whole, unless
    there is something to do all the same."""
    spec, unreadable = specs.spec_or_remains(job)
    seen, trouble = _look(job, clock) if _is_on_the_engine(job) else (ABSENT, None)
    now = clock()
    ending = None if unreadable is None else specs.step_without_spec(job, unreadable)
    known = replace(
        remembered(job, spec, _held(job)), rivals=rivals_of(job, seen), uploading_at=task_facts.uploading_at(job)
    )
    step = ending or plan(known, seen, now, settings.YARDMASTER_TIMING)
    if trouble is not None and isinstance(step, Wait):
        raise trouble
    if trouble is not None and not isinstance(trouble, YardmasterError):
        log.error("Job %s could not be observed; continuing without an observation", job.pk, exc_info=trouble)
    return steps.perform(step, job, spec, seen or ABSENT, now)


def _look(job: Job, clock: Clock) -> tuple[Observation | None, Exception | None]:
    """What the engine has of the job, written down; or None, and why that could not be. Whatever it was, even a bug:
    the job's clocks must continue, so that a stop and the limits still end it and return its quota."""
    try:
        engine = engine_named(job.engine)
        seen = engine.observe([job.key])[job.key]
        if seen == ABSENT and job.phase == Phase.RUNNING.value and isinstance(engine, Keeps):
            seen = replace(seen, message=engine.missing(job.key))
        if seen.exists and job.submitted_at is None:
            steps.taken(job, clock())
        return task_facts.record(job, seen, clock()), None
    except Exception as error:  # noqa: BLE001 - given to the caller, which raises or logs it
        return None, error


def _is_on_the_engine(job: Job) -> bool:
    """Whether the engine can have anything of the attempt: not before admission, not after it was removed there."""
    return job.phase != Phase.QUEUED.value and not job.is_over


def _held(job: Job) -> frozenset[Role]:
    return frozenset() if job.phase == Phase.QUEUED.value else ledger.held_roles(job)


def remembered(job: Job, spec: TrainingSpec, reserved: frozenset[Role]) -> Remembered:
    """The job's row as the value that `plan` reads, with the roles that still hold quota."""
    return Remembered(
        spec=spec,
        phase=Phase(job.phase),
        wanted=Wanted(job.wanted),
        queued_at=job.queued_at,
        admitted_at=job.admitted_at,
        started_at=job.started_at,
        stop_sent_at=job.stop_sent_at,
        preempted_at=job.preempted_at,
        decided_at=job.decided_at,
        released_at=job.released_at,
        cleaned_up_at=job.cleaned_up_at,
        submitted_at=job.submitted_at,
        failing_since=job.failing_since,
        returns=job.returns,
        held_back_until=job.held_back_until,
        refusals=job.refusals,
        image_failing_since=job.hindered_since if job.reason in NOT_PULLED else None,
        reserved=reserved,
    )


def rivals_of(job: Job, seen: Observation | None) -> Rivals:
    """Of a job that starts and is refused; nothing is read for any other."""
    if job.phase != Phase.STARTING.value or job.admitted_at is None or seen is None or seen.refused is None:
        return NO_RIVALS
    others = Job.objects.filter(engine=job.engine).exclude(pk=job.pk)
    refused = others.filter(phase=Phase.STARTING.value, reason__in=(UNSCHEDULABLE, SCALING_UP))
    same = Q(admitted_at=job.admitted_at)
    later = Q(admitted_at__gt=job.admitted_at) | same & (
        Q(queued_at__gt=job.queued_at) | Q(queued_at=job.queued_at, pk__gt=job.pk)
    )
    made = others.filter(refused_at__gte=job.admitted_at).aggregate(at=Max("refused_at"))["at"]
    return Rivals(is_last=not refused.filter(later).exists(), capacity_freed_at=made)

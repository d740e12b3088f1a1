"""What follows a failed look at a job: the reason where people see it, and a later look. Never a job that sticks."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db import DatabaseError, InterfaceError, connection

from apps.jobs.models import Job
from apps.jobs.state import phase_gate
from apps.jobs.state.leases import Lease, release_after_setback
from apps.jobs.state.nudges import job_changed
from yardmaster.backoff import delay
from yardmaster.errors import Misconfigured, Problem, SpecRejected, YardmasterError
from yardmaster.lifecycle.failures import Blame, Verdict
from yardmaster.lifecycle.phases import MOVES, Phase
from yardmaster.storable import storable

log = logging.getLogger(__name__)

SHORTEST = timedelta(seconds=2)
LONGEST = timedelta(minutes=2)
FOR_THE_OPERATOR = timedelta(minutes=1)
"""No retry helps before a setting is changed; once it is, jobs shall not wait long."""


def after_known(lease: Lease, error: YardmasterError, now: datetime) -> None:
    """An engine said why. What the user must change ends the job; everything else is shown and tried again."""
    job = Job.objects.filter(pk=lease.job_id).first()
    if job is None:
        return
    log.warning("Job %s: %s", job.pk, error)
    if isinstance(error, SpecRejected) and Phase.FAILED in MOVES[Phase(job.phase)]:
        _reject(job, error, now)
        release_after_setback(lease, now=now, next_look_at=now)
        return
    if not Phase(job.phase).is_final:  # a final job's reason is its verdict
        Job.objects.filter(pk=job.pk, phase=job.phase, attempt=job.attempt).update(**shown_of(error))
        job_changed(job)
    wait = FOR_THE_OPERATOR if isinstance(error, Misconfigured) else pause_after(job.setbacks)
    release_after_setback(lease, now=now, next_look_at=now + wait)


def shown_of(error: YardmasterError) -> dict[str, str]:
    """What an engine said, as columns of a job that has no verdict."""
    code = _CODES.get(error.code, "EngineUnavailable")
    return {"reason": code, "message": storable(error.message), "remedy": storable(error.remedy)}


_CODES = {"unavailable": "EngineUnavailable", "quota_full": "EngineQuotaFull", "misconfigured": "Misconfigured"}


def after_database(lease: Lease, now: datetime) -> None:
    """The database failed in the middle. Give the job back where that works; else its lease runs out by itself."""
    log.exception("The database failed while job %s was looked at", lease.job_id)
    if connection.in_atomic_block:
        return
    try:
        connection.close_if_unusable_or_obsolete()
        release_after_setback(lease, now=now, next_look_at=now + SHORTEST)
    except (DatabaseError, InterfaceError) as error:
        log.warning("Job %s keeps its lease until it runs out: %s", lease.job_id, error)


def after_unknown(lease: Lease, now: datetime) -> None:
    """A bug. The caller has logged it."""
    job = Job.objects.filter(pk=lease.job_id).first()
    if job is not None:
        release_after_setback(lease, now=now, next_look_at=now + pause_after(job.setbacks))


def pause_after(setbacks: int) -> timedelta:
    """2 s, 4 s, 8 s, … never more than two minutes."""
    return delay(setbacks, SHORTEST, LONGEST)


def _reject(job: Job, error: SpecRejected, now: datetime) -> None:
    remedies = [problem.remedy for problem in error.problems if problem.remedy]
    verdict = Verdict("SpecRejected", error.message, " ".join(remedies) or error.remedy, Blame.USER)
    try:
        phase_gate.move(job, Phase.FAILED, now=now, verdict=verdict, problems=[_as_json(one) for one in error.problems])
    except phase_gate.PhaseMoved:
        log.info("Job %s was moved by another process before it could be rejected", job.pk)


def _as_json(problem: Problem) -> dict[str, str]:
    return {"field": problem.field, "code": problem.code, "message": problem.message, "remedy": problem.remedy}

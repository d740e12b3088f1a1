"""How far a job with a port has come: what the job says, and whether the port answers. Only the port is asked."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from django.utils import timezone

from apps.hosting.addresses import address_forget, address_of
from apps.hosting.dialing import HEALTH, AnswerTooLarge, NotReached, TooSlow, dial
from apps.hosting.models import Hosted
from apps.jobs.models import Job, TaskFact
from apps.jobs.state.task_auth import token_of
from yardmaster.errors import YardmasterError
from yardmaster.lifecycle.idleness import Idle, Use, idle_step, stops_at, stops_by_age
from yardmaster.lifecycle.phases import Phase, Wanted
from yardmaster.quantity import format_duration
from yardmaster_runner.service_token import service_token

log = logging.getLogger(__name__)


SLOW = 0.5
"""Seconds of a look from which on the program rests from looks, `REST` times as long."""
REST = 4.0
LOOK = 60.0
"""Seconds for which one look keeps others away, if it does not end."""
MOST_RESTS = 1000
_rests: dict[UUID, float] = {}
"""Until when the job's port is not looked at, in this process."""


class State(StrEnum):
    """What users see of it."""

    QUEUED = "queued"
    STARTING = "starting"
    LOADING = "loading"
    """Its task runs, and does not answer yet."""
    READY = "ready"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"


STATES = [(one.value, one.value) for one in State]
"""As choices of the API."""
RUNS = frozenset({State.QUEUED, State.STARTING, State.LOADING, State.READY})


@dataclass(frozen=True)
class Situation:
    """The state with its reason, in words for people."""

    state: State
    message: str = ""
    remedy: str = ""
    stops_at: datetime | None = None
    stops_soon: bool = False
    stops_anyway: bool = False
    """At that time also if it is used."""

    @property
    def runs(self) -> bool:
        """Whether it was started and is not to be stopped."""
        return self.state in RUNS

    @property
    def changes(self) -> bool:
        """Whether it will be another one soon without anyone doing anything."""
        return self.state in (RUNS - {State.READY}) | {State.STOPPING}


def situation_of(row: Hosted, now: datetime, *, ask: bool = True) -> Situation:
    """How it is now. Asks the port, for a second at most, while it is not known to answer; without `ask` it counts as
    loading then."""
    job = row.job
    if job is None or job.deleted_at is not None:
        return Situation(State.STOPPED)
    phase = Phase(job.phase)
    if phase is Phase.FAILED:
        return Situation(State.FAILED, job.message, job.remedy)
    if phase.is_final:
        said = f"It was not used for {format_duration(row.idle_seconds)}." if row.stopped_idle else ""
        return Situation(State.STOPPED, said)
    if phase is Phase.STOPPING or job.wanted == Wanted.STOP.value:
        return Situation(State.STOPPING)
    if phase is not Phase.RUNNING:
        waits = State.QUEUED if phase is Phase.QUEUED else State.STARTING
        return Situation(waits, job.message, job.remedy)
    if row.ready_at is None and not (ask and _look(row, job, now)):
        return Situation(State.LOADING, _step_of(row, job))
    use = use_of(row, job)
    is_soon = idle_step(use, now) is Idle.WARN
    return Situation(State.READY, stops_at=stops_at(use), stops_soon=is_soon, stops_anyway=stops_by_age(use))


def use_of(row: Hosted, job: Job) -> Use:
    """What the decision about an idle service needs."""
    return Use(
        Phase(job.phase), Wanted(job.wanted), job.started_at, row.ready_at, row.last_used_at, row.idle_limit,
        row.longest_life,
    )  # fmt: skip


def token_for(job: Job) -> str:
    """With what the portal and the gate of its service prove themselves to each other."""
    return service_token(token_of(job.pk, job.attempt))


def lost(row: Hosted) -> None:
    """It did not answer: it is asked again before it counts as ready."""
    type(row)._default_manager.filter(pk=row.pk, job=row.job_id).update(ready_at=None)
    row.ready_at = None
    if row.job is not None:
        address_forget(row.job)


def _look(row: Hosted, job: Job, now: datetime) -> bool:
    """Whether the port answers that it can be used; if so, that is written down. A program that lets the portal wait
    is looked at by one at a time, and then not for a while: pages ask every second, each with a thread of the portal.
    """
    begun = time.monotonic()
    if _rests.get(job.pk, 0.0) > begun:
        return False
    if len(_rests) >= MOST_RESTS:
        _rests.clear()
    _rests[job.pk] = begun + LOOK
    try:
        return _answers(row, job, now)
    finally:
        spent = time.monotonic() - begun
        if spent < SLOW:
            _rests.pop(job.pk, None)
        else:
            _rests[job.pk] = time.monotonic() + REST * spent


def _answers(row: Hosted, job: Job, now: datetime) -> bool:
    try:
        address = address_of(job)
        if address is None:
            return False
        reply = dial(address, "GET", row.health_path, key=token_for(job), seconds=HEALTH, most=4096)
        if reply.status not in row.READY_STATUSES:
            return False
    except (YardmasterError, NotReached, TooSlow, AnswerTooLarge) as error:
        log.debug("The %s %s does not answer: %s", row.NOUN, row.pk, error)
        address_forget(job)
        return False
    type(row)._default_manager.filter(pk=row.pk, job=job).update(ready_at=now)
    row.ready_at = now
    return True


_STALE = timedelta(minutes=2)


def _step_of(row: Hosted, job: Job) -> str:
    fact = TaskFact.objects.filter(job=job, attempt=job.attempt).only("state", "restarts", "reported_at").first()
    if fact is None:
        return "Starting the server."
    words = row.steps.get(fact.state, "Starting the server.")
    is_stale = fact.reported_at is not None and timezone.now() - fact.reported_at > _STALE
    if is_stale:
        words += " Its task has not reported for a while."
    return f"{words} Restarted {fact.restarts} times." if fact.restarts else words

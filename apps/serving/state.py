"""How far a service has come: what its job says, and whether its port answers. The port is asked; all else is read."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.utils import timezone

from apps.hosting.addresses import address_forget, address_of
from apps.hosting.dialing import HEALTH, AnswerTooLarge, NotReached, TooSlow, dial
from apps.jobs.models import Job, TaskFact
from apps.jobs.state.task_auth import token_of
from apps.serving.models import Service
from yardmaster.errors import YardmasterError
from yardmaster.lifecycle.idleness import Idle, Use, idle_step, stops_at
from yardmaster.lifecycle.phases import Phase, Wanted
from yardmaster.quantity import format_duration
from yardmaster_runner.service_token import service_token

log = logging.getLogger(__name__)


class State(StrEnum):
    """What users see of a service."""

    QUEUED = "queued"
    STARTING = "starting"
    LOADING = "loading"
    """Its task runs, and does not answer yet."""
    READY = "ready"
    STOPPING = "stopping"
    STOPPED = "stopped"
    FAILED = "failed"


RUNS = frozenset({State.QUEUED, State.STARTING, State.LOADING, State.READY})


@dataclass(frozen=True)
class Situation:
    """The state with its reason, in words for people."""

    state: State
    message: str = ""
    remedy: str = ""
    stops_at: datetime | None = None
    stops_soon: bool = False

    @property
    def runs(self) -> bool:
        """Whether it was started and is not to be stopped."""
        return self.state in RUNS

    @property
    def changes(self) -> bool:
        """Whether it will be another one soon without anyone doing anything."""
        return self.state in (RUNS - {State.READY}) | {State.STOPPING}


def situation_of(service: Service, now: datetime, *, ask: bool = True) -> Situation:
    """How it is now. Asks the port, for a second at most, while it is not known to answer; without `ask` it counts as
    loading then."""
    job = service.job
    if job is None or job.deleted_at is not None:
        return Situation(State.STOPPED)
    phase = Phase(job.phase)
    if phase is Phase.FAILED:
        return Situation(State.FAILED, job.message, job.remedy)
    if phase.is_final:
        said = f"It had no request for {format_duration(service.idle_seconds)}." if service.stopped_idle else ""
        return Situation(State.STOPPED, said)
    if phase is Phase.STOPPING or job.wanted == Wanted.STOP.value:
        return Situation(State.STOPPING)
    if phase is not Phase.RUNNING:
        waits = State.QUEUED if phase is Phase.QUEUED else State.STARTING
        return Situation(waits, job.message, job.remedy)
    if service.ready_at is None and not (ask and _look(service, job, now)):
        return Situation(State.LOADING, _step_of(job))
    use = use_of(service, job)
    return Situation(State.READY, stops_at=stops_at(use), stops_soon=idle_step(use, now) is Idle.WARN)


def use_of(service: Service, job: Job) -> Use:
    """What the decision about an idle service needs."""
    return Use(
        Phase(job.phase), Wanted(job.wanted), job.started_at, service.ready_at, service.last_used_at, service.idle_limit
    )  # fmt: skip


def token_for(job: Job) -> str:
    """With what the portal proves itself to the service."""
    return service_token(token_of(job.pk, job.attempt))


def lost(service: Service) -> None:
    """It did not answer: it is asked again before it counts as ready."""
    Service.objects.filter(pk=service.pk, job=service.job_id).update(ready_at=None)
    service.ready_at = None
    if service.job is not None:
        address_forget(service.job)


def _look(service: Service, job: Job, now: datetime) -> bool:
    """Whether the port answers with the model loaded; if so, that is written down."""
    try:
        address = address_of(job)
        if address is None or dial(address, "GET", "/healthz", seconds=HEALTH, most=4096).status != 200:
            return False
    except (YardmasterError, NotReached, TooSlow, AnswerTooLarge) as error:
        log.debug("Service %s does not answer: %s", service.pk, error)
        address_forget(job)
        return False
    Service.objects.filter(pk=service.pk, job=job).update(ready_at=now)
    service.ready_at = now
    return True


_STALE = timedelta(minutes=2)
_STEPS = {
    "staging": "Fetching the model's files.",
    "running": "Starting TensorFlow and loading the model.",
}


def _step_of(job: Job) -> str:
    fact = TaskFact.objects.filter(job=job, attempt=job.attempt).only("state", "restarts", "reported_at").first()
    if fact is None:
        return "Starting the server."
    words = _STEPS.get(fact.state, "Starting the server.")
    is_stale = fact.reported_at is not None and timezone.now() - fact.reported_at > _STALE
    if is_stale:
        words += " Its task has not reported for a while."
    return f"{words} Restarted {fact.restarts} times." if fact.restarts else words

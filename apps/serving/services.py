"""What people do with services: start one, use it, keep it for longer, stop it.

A service is a job; its start is a launch, and all that stands in a launch's way stands in its. Using it is recorded as
its last use, from which the portal knows when to stop it.
"""

from __future__ import annotations

import contextlib
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.services import record
from apps.errors import Conflict, Forbidden, Invalid
from apps.jobs.engines.configured import engine_chosen
from apps.jobs.foreign import foreign_models
from apps.jobs.models import Job
from apps.jobs.services import job_delete, job_launch, job_stop, job_stop_unused
from apps.namespaces.models import Role
from apps.namespaces.selectors import require_role
from apps.registry.models import ModelVersion
from apps.serving.models import Service
from apps.serving.state import use_of
from yardmaster.errors import Problem
from yardmaster.job.programs import MODEL_SERVER
from yardmaster.job.spec import DatasetInput, Resources, RoleSpec, Strategy, TrainingSpec
from yardmaster.job.spec import Role as TaskRole
from yardmaster.lifecycle.idleness import Idle, idle_step
from yardmaster.lifecycle.phases import Phase, Wanted
from yardmaster.quantity import format_duration

SHORTEST_IDLE = timedelta(minutes=1)
NOTE_EVERY = timedelta(seconds=5)
"""How often a use is written down at most."""
RESTARTS = 2
_TRIES = 5


def service_start(
    *,
    user: User,
    version: ModelVersion,
    idle_limit: timedelta | None = None,
    cpu: float | None = None,
    memory: int | None = None,
    engine: str | None = None,
    accept_never_fits: bool = False,
    confirmed: bool = False,
) -> tuple[Service, bool]:
    """Serve this version. Returns the service and whether it was started now: one that runs already keeps its size, and
    is kept for as long as `idle_limit` says from now. Raises what a launch raises, `Conflict` while the last one is
    still stopping, and `ForeignModel` where another user's model would run as the portal and that is not `confirmed`.
    """
    require_role(user, version.parent.namespace, Role.MEMBER)
    limit = _checked_limit(idle_limit)
    usual = settings.YARDMASTER_SERVING
    resources = Resources(cpu=cpu or usual["CPU"], memory=memory or usual["MEMORY"])
    now = timezone.now()
    first = {"namespace": version.parent.namespace, "idle_seconds": 0, "started_at": now}
    service, _ = Service.objects.select_related("job", "version__parent").get_or_create(version=version, defaults=first)
    if _runs(service.job):
        return service if idle_limit is None else service_extend(
            user=user, service=service, idle_limit=idle_limit
        ), False
    spec = spec_of(version, resources)
    foreign_models(user, spec, engine_chosen(user, engine), confirmed=confirmed)
    _forget(user, service.job)
    asked = {"engine": engine, "accept_never_fits": accept_never_fits, "confirm_foreign_model": confirmed}
    job = _launched(user, service, spec, asked)
    columns = {
        "job": job, "started_by": user, "started_at": now, "idle_seconds": int(limit.total_seconds()),
        "ready_at": None, "last_used_at": None, "stopped_idle": False, "requests": 0,
    }  # fmt: skip
    with transaction.atomic():
        # Of two starts at once both have the same job, and the first one writes it down.
        same = Service.objects.filter(pk=service.pk, starts=service.starts)
        is_new = bool(same.update(starts=F("starts") + 1, **columns))
        service = Service.objects.select_related("job", "namespace", "version__parent").get(pk=service.pk)
        if is_new:
            _note(user, "service.start", service)
    return service, is_new


def _launched(user: User, service: Service, spec: TrainingSpec, asked: dict[str, Any]) -> Job:
    """The job of the next start: the same one for all that start it at once. One that ended already is that of a start
    which was interrupted, and which the sweep has stopped since."""
    key = f"service:{service.pk}:{service.starts + 1}"
    for again in range(_TRIES):
        found = _launched_once(user, service, spec, asked, f"{key}.{again}" if again else key)
        if _runs(found):
            return found
    raise Conflict("The service is started and stopped at the same time.", remedy="Try again in some seconds.")


def _launched_once(user: User, service: Service, spec: TrainingSpec, asked: dict[str, Any], key: str) -> Job:
    try:
        job, _ = job_launch(user=user, namespace=service.namespace, spec=spec, request_key=key, **asked)
    except IntegrityError:
        return Job.objects.get(request_key=key)
    return job


def spec_of(version: ModelVersion, resources: Resources) -> TrainingSpec:
    """The job that serves this version: one task, whose only input is the model."""
    return TrainingSpec(
        name=f"{version.parent.name[:80]} version {version.number}",
        strategy=Strategy.SERVICE,
        roles={TaskRole.WORKER: RoleSpec(1, resources)},
        code_version=None,
        entry_point="",
        program=MODEL_SERVER,
        options={"name": version.parent.name, "version": str(version.number)},
        inputs=(DatasetInput(None, model_version=version.pk),),
        retries=RESTARTS,
        grace_period=timedelta(seconds=10),
        reclaim_delay=timedelta(0),
    )


def service_stop(*, user: User, service: Service) -> Service:
    """Want it stopped. Not running: nothing changes."""
    require_role(user, service.namespace, Role.MEMBER)
    if service.job is not None and _runs(service.job):
        service.job = job_stop(user=user, job=service.job)
        _note(user, "service.stop", service)
    return service


def service_extend(*, user: User, service: Service, idle_limit: timedelta | None = None) -> Service:
    """Count the time without requests from now, and set its limit where one is given. Raises `Conflict` where it does
    not run."""
    require_role(user, service.namespace, Role.MEMBER)
    if not _runs(service.job):
        raise Conflict("The service does not run.", "not_running", remedy="Start it.")
    changes: dict[str, Any] = {"last_used_at": timezone.now()}
    if idle_limit is not None:
        changes["idle_seconds"] = int(_checked_limit(idle_limit).total_seconds())
    Service.objects.filter(pk=service.pk).update(**changes)
    for name, value in changes.items():
        setattr(service, name, value)
    return service


def use_note(service: Service, now: datetime) -> None:
    """A request was answered. Of many at once some are not counted."""
    rested = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - NOTE_EVERY)
    Service.objects.filter(pk=service.pk).update(requests=F("requests") + 1)
    Service.objects.filter(rested, pk=service.pk).update(last_used_at=now)


def stop_where_idle(service: Service, now: datetime) -> bool:
    """Stop the service if no one used it for as long as its limit says. Returns whether it was stopped now."""
    job = service.job
    if job is None or idle_step(use_of(service, job), now) is not Idle.STOP:
        return False
    is_idle = service.ready_at is not None
    words = f"Stopped: no request for {format_duration(service.idle_seconds)}." if is_idle else "Stopped: no answer."
    with transaction.atomic():
        # Used since it was read: left alone.
        same = Service.objects.filter(
            pk=service.pk, job=job, last_used_at=service.last_used_at, ready_at=service.ready_at
        )
        if not same.update(stopped_idle=is_idle):
            return False
        return job_stop_unused(job, words)


def _checked_limit(limit: timedelta | None) -> timedelta:
    most: timedelta = settings.YARDMASTER_SERVING["LONGEST_IDLE"]
    found = settings.YARDMASTER_SERVING["IDLE"] if limit is None else limit
    if not SHORTEST_IDLE <= found <= most:
        message = f"The idle limit is between {_words(SHORTEST_IDLE)} and {_words(most)}."
        remedy = "Choose another, or ask an administrator to raise YARDMASTER_SERVICE_LONGEST_IDLE."
        raise Invalid([Problem("idle_limit", "out_of_range", message, remedy, str(int(found.total_seconds())))])
    return timedelta(seconds=int(found.total_seconds()))


def _words(limit: timedelta) -> str:
    return format_duration(int(limit.total_seconds()))


def _runs(job: Job | None) -> bool:
    return (
        job is not None and job.deleted_at is None and job.wanted == Wanted.RUN.value and not Phase(job.phase).is_final
    )


def _forget(user: User, job: Job | None) -> None:
    """The job of the last start is deleted, so that a service has one. Raises `Conflict` while it is still there."""
    if job is None or job.deleted_at is not None:
        return
    if not job.is_over:
        raise Conflict("The service is still stopping.", "still_stopping", remedy="Try again in some seconds.")
    with contextlib.suppress(Conflict, Forbidden):
        job_delete(user=user, job=job)


def _note(user: User, action: str, service: Service) -> None:
    version = service.version
    record(
        user, action, f"service:{service.pk}", namespace=service.namespace, name=version.parent.name,
        version=version.number,
    )  # fmt: skip

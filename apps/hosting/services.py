"""What people do with a job that has a port: start it, use it, keep it for longer, stop it.

Its start is a launch, and all that stands in a launch's way stands in its. Using it is recorded as its last use, from
which the portal knows when to stop it. Who may do this was decided before, by the app of its kind.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, TypeVar

from django.db import IntegrityError, transaction
from django.db.models import F, Q
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.changes import changes
from apps.audit.services import record
from apps.errors import Conflict, DomainError, Forbidden, Invalid
from apps.hosting.models import Hosted
from apps.hosting.state import use_of
from apps.jobs.engines.configured import engine_chosen
from apps.jobs.foreign import foreign_models
from apps.jobs.models import Job
from apps.jobs.services import job_delete, job_launch, job_stop, job_stop_unused
from yardmaster.errors import Problem
from yardmaster.job.spec import TrainingSpec
from yardmaster.lifecycle.idleness import Idle, idle_step
from yardmaster.lifecycle.phases import Phase, Wanted
from yardmaster.quantity import format_duration

H = TypeVar("H", bound=Hosted)

SHORTEST_IDLE = timedelta(minutes=1)
NOTE_EVERY = timedelta(seconds=5)
"""How often a use is written down at most."""
_TRIES = 5


@dataclass(frozen=True)
class IdleLimits:
    """How long a kind may be unused: where no limit is asked for, and at most."""

    usual: timedelta
    longest: timedelta
    setting: str
    """What an administrator raises for longer ones."""

    def checked(self, asked: timedelta | None) -> timedelta:
        """The limit in whole seconds. Raises `Invalid` where it is out of range."""
        found = self.usual if asked is None else asked
        if not SHORTEST_IDLE <= found <= self.longest:
            message = f"The idle limit is between {_words(SHORTEST_IDLE)} and {_words(self.longest)}."
            remedy = f"Choose another, or ask an administrator to raise {self.setting}."
            raise Invalid([Problem("idle_limit", "out_of_range", message, remedy, str(int(found.total_seconds())))])
        return timedelta(seconds=int(found.total_seconds()))


def limit_in(data: dict[str, Any]) -> timedelta | None:
    """The idle limit that was sent; None where none was."""
    seconds = data.get("idle_limit")
    return None if seconds is None else timedelta(seconds=max(0, min(seconds, 10**9)))


def start(
    row: H,
    *,
    user: User,
    spec: TrainingSpec,
    limits: IdleLimits,
    idle_limit: timedelta | None = None,
    engine: str | None = None,
    accept_never_fits: bool = False,
    confirmed: bool = False,
    changes: Mapping[str, Any] = MappingProxyType({}),
    still_good: Callable[[], None] = lambda: None,
) -> tuple[H, bool]:
    """Run the row as the job `spec`, and write down `changes`, columns of its kind. `still_good` may refuse that in the
    same transaction, by raising; the job is then stopped. Returns the row as it is now and
    whether it was started now: one that runs already keeps its job, and is kept for as long as `idle_limit` says from
    now. Raises what a launch raises, `Conflict` while the last one is still stopping, and `ForeignModel` where another
    user's model would run as the portal and that is not `confirmed`.

    Of two starts at once the job may be that of one and `changes` that of the other: what both depend on is read from
    the job's specification.
    """
    limit, now = limits.checked(idle_limit), timezone.now()
    if runs(row.job):
        return row if idle_limit is None else extend(row, user=user, limits=limits, idle_limit=idle_limit), False
    foreign_models(user, spec, engine_chosen(user, engine), confirmed=confirmed)
    _require_ended(row)
    asked = {"engine": engine, "accept_never_fits": accept_never_fits, "confirm_foreign_model": confirmed}
    job = _launched(user, row, spec, asked)
    columns = {
        "job": job, "started_by": user, "started_at": now,
        "idle_seconds": int(limit.total_seconds()), "ready_at": None, "last_used_at": None, "stopped_idle": False,
        **changes,
    }  # fmt: skip
    try:
        found, is_new = _written(user, row, job, columns, still_good)
    except DomainError:
        job_stop_unused(job, "Stopped: its start was refused.")
        raise
    if found is None or found.job_id != job.pk:
        job_stop_unused(job, "Stopped: it was to be stopped again while it was being started.")
    if found is None:
        raise Conflict(f"The {row.NOUN} was removed while it was being started.", remedy="Start another one.")
    return found, is_new


def _written(
    user: User, row: H, job: Job, columns: Mapping[str, Any], still_good: Callable[[], None]
) -> tuple[H | None, bool]:
    """The row as it is now, None where it was removed, and whether this start was written down."""
    rows = type(row)._default_manager
    with transaction.atomic():
        # Of two starts at once both have the same job, and the first one writes it down. After a stop neither does.
        is_new = bool(rows.filter(pk=row.pk, starts=row.starts).update(starts=F("starts") + 1, **columns))
        found = rows.select_related("job", "namespace").filter(pk=row.pk).first()
        if is_new and found is not None:
            still_good()
            _note(user, "start", found)
            _forget(user, row.job)
    return found, is_new


def _launched(user: User, row: Hosted, spec: TrainingSpec, asked: dict[str, Any]) -> Job:
    """The job of the next start: the same one for all that start it at once. One that ended already is that of a start
    which was interrupted, and which the sweep has stopped since."""
    key = f"{row.KIND}:{row.pk}:{row.starts + 1}"
    for again in range(_TRIES):
        found = _launched_once(user, row, spec, asked, f"{key}.{again}" if again else key)
        if runs(found):
            return found
    raise Conflict(f"The {row.NOUN} is started and stopped at the same time.", remedy="Try again in some seconds.")


def _launched_once(user: User, row: Hosted, spec: TrainingSpec, asked: dict[str, Any], key: str) -> Job:
    try:
        job, _ = job_launch(user=user, namespace=row.namespace, spec=spec, request_key=key, **asked)
    except IntegrityError:
        return Job.objects.get(request_key=key)
    return job


def stop(row: H, *, user: User) -> H:
    """Want it stopped, also a start of it that is under way. Not running: nothing changes. Returns it as it is now."""
    if not runs(row.job):
        row = _called_off(row)
    if row.job is not None and runs(row.job):
        row.job = job_stop(user=user, job=row.job)
        _note(user, "stop", row)
    return row


def _called_off(row: H) -> H:
    """A start that has read the row as it is does not write its job down. One that did so before has made it run."""
    rows = type(row)._default_manager
    if rows.filter(pk=row.pk, starts=row.starts).update(starts=F("starts") + 1):
        row.starts += 1
        return row
    return rows.select_related("job", "namespace").get(pk=row.pk)


def extend(row: H, *, user: User, limits: IdleLimits, idle_limit: timedelta | None = None) -> H:
    """Count the time without use from now, and set its limit where one is given. Raises `Conflict` where it does
    not run."""
    if not runs(row.job):
        raise Conflict(f"The {row.NOUN} does not run.", "not_running", remedy="Start it.")
    found: dict[str, Any] = {"last_used_at": timezone.now()}
    if idle_limit is not None:
        found["idle_seconds"] = int(limits.checked(idle_limit).total_seconds())
    limit = changes({"idle_seconds": row.idle_seconds}, {"idle_seconds": found.get("idle_seconds", row.idle_seconds)})
    with transaction.atomic():
        type(row)._default_manager.filter(pk=row.pk).update(**found)
        _note(user, "extend", row, **limit)
    for name, value in found.items():
        setattr(row, name, value)
    return row


def use_note(row: Hosted, now: datetime) -> None:
    """Count the time without use from now. Of many calls few write."""
    rested = Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - NOTE_EVERY)
    type(row)._default_manager.filter(rested, pk=row.pk).update(last_used_at=now)


def stop_where_idle(row: Hosted, now: datetime) -> bool:
    """Stop it if no one used it for as long as its limit says. Returns whether it was stopped now."""
    job = row.job
    if job is None or idle_step(use_of(row, job), now) is not Idle.STOP:
        return False
    is_idle = row.ready_at is not None
    words = f"Stopped: not used for {format_duration(row.idle_seconds)}." if is_idle else "Stopped: no answer."
    with transaction.atomic():
        # Used since it was read: left alone.
        same = type(row)._default_manager.filter(
            pk=row.pk, job=job, last_used_at=row.last_used_at, ready_at=row.ready_at
        )
        if not same.update(stopped_idle=is_idle):
            return False
        return job_stop_unused(job, words)


def runs(job: Job | None) -> bool:
    """Whether the job of a row runs or is to, and is not to be stopped."""
    return (
        job is not None and job.deleted_at is None and job.wanted == Wanted.RUN.value and not Phase(job.phase).is_final
    )


def _require_ended(row: Hosted) -> None:
    """Raises `Conflict` while the job of the last start is still there."""
    if row.job is not None and row.job.deleted_at is None and not row.job.is_over:
        raise Conflict(f"The {row.NOUN} is still stopping.", "still_stopping", remedy="Try again in some seconds.")


def _forget(user: User, job: Job | None) -> None:
    """The job of the last start is deleted, so that a row has one: only when the next one is written down, since it
    says why the last one ended."""
    if job is not None and job.deleted_at is None:
        with contextlib.suppress(Conflict, Forbidden):
            job_delete(user=user, job=job)


def _note(user: User, action: str, row: Hosted, **more: Any) -> None:
    record(user, f"{row.KIND}.{action}", f"{row.KIND}:{row.pk}", namespace=row.namespace, **row.facts, **more)


def _words(limit: timedelta) -> str:
    return format_duration(int(limit.total_seconds()))

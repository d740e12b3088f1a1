"""What people do with jobs: launch, stop, retry, delete. They change what is wanted; the reconciler does the rest."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.services import record
from apps.dispatch.messages import RECONCILE, enqueue
from apps.errors import Conflict, Forbidden
from apps.jobs.checking import accepted_or_refused, checked_spec, launch_checked
from apps.jobs.engines.configured import engine_chosen, refuse_unrunnable
from apps.jobs.foreign import foreign_models, foreign_record
from apps.jobs.models import Job, JobEvent
from apps.jobs.selectors import refuse_personal
from apps.jobs.state import phase_gate, queue
from apps.jobs.state.leases import ask_for_look
from apps.jobs.state.nudges import job_changed
from apps.jobs.state.priority import with_class_that_is_there
from apps.jobs.state.specs import asked_again, columns_of, inputs_write
from apps.jobs.state.volumes import volumes_require
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import quota_of, refuse_closed, require_role
from yardmaster.code.findings import Finding
from yardmaster.errors import Problem
from yardmaster.ids import new_id
from yardmaster.job.spec import Strategy, TrainingSpec
from yardmaster.job.spec_stored import stored_spec
from yardmaster.lifecycle.phases import FINAL, Phase, Wanted

_FINAL = [phase.value for phase in FINAL]
_DELETED_AT_ONCE = 200


def job_launch(
    *,
    user: User,
    namespace: Namespace,
    spec: TrainingSpec,
    engine: str | None = None,
    request_key: str | None = None,
    accept_never_fits: bool = False,
    confirm_foreign_model: bool = False,
) -> tuple[Job, list[Finding]]:
    """Launch a job: QUEUED, and woken once the transaction is committed; with what may go wrong in its code. A
    `request_key` that made a job before gives that job again.

    Raises `SpecRejected` with every problem found, a problem where the user may not launch here or on this engine, and
    `NeverFits` where the job could never start and `accept_never_fits` does not say that it is to be queued all the
    same; `ForeignModel` where a model that others had a part in would run as the portal and that is not confirmed.
    """
    require_role(user, namespace, Role.MEMBER)
    refuse_closed(namespace)
    chosen = engine_chosen(user, engine)
    if (earlier := _of_request(request_key)) is not None:
        return earlier, []
    _refuse_full(namespace)  # reading the code costs more than asking, and it may be asked again and again
    refuse_unrunnable(chosen, spec)
    foreign = foreign_models(user, spec, chosen, confirmed=confirm_foreign_model)
    spec, warnings = launch_checked(user, namespace, spec, chosen)
    now = timezone.now()
    columns = columns_of(spec) | accepted_or_refused(spec, namespace, chosen, now, accept=accept_never_fits)
    with transaction.atomic():
        _lock_queue(user, namespace)
        # Made meanwhile: to insert it once more would wait for one that changes it, which may wait for these locks.
        if (earlier := _of_request(request_key)) is not None:
            return earlier, []
        _refuse_full(namespace)
        volumes_require(namespace, chosen, spec)
        job = Job.objects.create(
            id=new_id(), namespace=namespace, owner=user, engine=chosen, queued_at=now,
            next_look_at=now + queue.LOOK_AGAIN, request_key=request_key, **columns,
        )  # fmt: skip
        inputs_write(job, spec)
        phase_gate.open_attempt(job, number=1, spec=columns["spec"], now=now, by=user)
        _say_never(job, columns, now)
        record(user, "job.create", f"job:{job.pk}", namespace=namespace, name=job.name, engine=chosen)
        foreign_record(user, foreign, job)
        queue.ask(chosen)
    return job, warnings


def _of_request(key: str | None) -> Job | None:
    return Job.objects.filter(request_key=key).first() if key else None


def _say_never(job: Job, columns: Mapping[str, Any], now: datetime) -> None:
    """Where it is queued although it can never start, that is in its history from the beginning."""
    if reason := columns.get("reason"):
        message = columns["message"]
        JobEvent.objects.create(job=job, at=now, attempt=job.attempt, kind="waiting", reason=reason, message=message)


def _lock_queue(user: User, namespace: Namespace) -> None:
    """Raises a problem where the user may queue no further job there as it is now: reading the code took a while. The
    locks make others who queue a job there wait, and one that locks the user out, takes them out of the namespace,
    removes it, or removes something from its volumes (`volumes_lock`), and then finds the job. They leave alone who
    writes a row that refers to these (`no_key`): one that stops a job does, and this may wait for it."""
    if User.objects.select_for_update(no_key=True).filter(pk=user.pk, is_active=True).first() is None:
        raise Forbidden("Your account is locked.", "Ask an administrator.")
    refuse_closed(Namespace.objects.select_for_update(no_key=True).get(pk=namespace.pk))
    require_role(user, namespace, Role.MEMBER)


def _refuse_full(namespace: Namespace) -> None:
    """Raises the conflict `queue_full` where the namespace has as many queued jobs as it may. It counts with the
    namespace's row locked: of two requests at once the second sees the first one's job."""
    most: int = settings.YARDMASTER_QUEUED_JOBS
    count = Job.objects.queued().filter(namespace=namespace).count()
    bound = quota_of(namespace).queued_jobs
    if bound is not None and count >= bound:
        raise _queued_too_many(namespace, count, bound)
    if count >= most:
        raise Conflict(
            f"The namespace {namespace.slug} may have {most} jobs in the queue, and has {count}.",
            "queue_full",
            remedy="Wait until some have started, or stop some; or ask an administrator to raise "
            "YARDMASTER_QUEUED_JOBS.",
        )


def _queued_too_many(namespace: Namespace, count: int, bound: int) -> Conflict:
    detail = f"The quota of {namespace.slug} allows {bound} queued jobs, and {count} are queued."
    remedy = "Wait until some have started, or stop some; or ask an administrator for more queued jobs."
    problem = Problem("queued_jobs", "too_many_queued", f"At most {bound} are allowed.", remedy, str(count))
    return Conflict(detail, "too_many_queued", remedy=remedy, errors=[problem])


def job_stop(*, user: User, job: Job, reason: str = "") -> Job:
    """Want the job stopped. Ended, or stopping already: nothing changes. `reason`: shown among the job's events."""
    require_role(user, job.namespace, Role.MEMBER)
    refuse_personal(user, job)
    _want_stopped(job, timezone.now(), user, f"{user.username} requested to stop the job: {reason}" if reason else "")
    job.refresh_from_db()
    return job


def job_stop_unused(job: Job, message: str) -> bool:
    """Want a job stopped that the portal itself ends because no one uses it. False where it was to stop already."""
    return _want_stopped(job, timezone.now(), None, message)


def jobs_stop_all(*, engines: Collection[str]) -> list[Job]:
    """Want every unfinished job of these engines stopped, for the operator of their machine. Returns those that were
    wanted before."""
    wanted = Job.objects.for_lists().filter(engine__in=engines, wanted=Wanted.RUN.value, deleted_at__isnull=True)
    jobs = wanted.exclude(phase__in=_FINAL).select_related("namespace").order_by("pk")
    now = timezone.now()
    return [job for job in jobs if _want_stopped(job, now, None)]


def jobs_stop_in(namespace: Namespace, user: User | None) -> list[Job]:
    """Want every unfinished job of the namespace stopped. Returns those of which something is still there."""
    jobs = Job.objects.for_lists().filter(namespace=namespace).exclude(phase__in=_FINAL, cleaned_up_at__isnull=False)
    now = timezone.now()
    left = list(jobs.select_related("namespace").order_by("pk"))
    for job in left:
        if job.wanted == Wanted.RUN.value:
            _want_stopped(job, now, user)
    return left


def jobs_stop_of(owner: User, user: User) -> list[Job]:
    """Want every unfinished job of this owner stopped, in whatever namespace. Returns those that were wanted before."""
    wanted = Job.objects.for_lists().filter(owner=owner, wanted=Wanted.RUN.value, deleted_at__isnull=True)
    jobs = wanted.exclude(phase__in=_FINAL).select_related("namespace").order_by("pk")
    now = timezone.now()
    return [job for job in jobs if _want_stopped(job, now, user)]


def jobs_delete_in(namespace: Namespace, user: User | None) -> int:
    """Delete the namespace's jobs, which are all over, some at a time. Returns how many are still to go."""
    now = timezone.now()
    with transaction.atomic():
        for job in Job.objects.for_lists().filter(namespace=namespace, deleted_at__isnull=True)[:_DELETED_AT_ONCE]:
            _delete(job, now, user)
    return Job.objects.filter(namespace=namespace).count()


def _want_stopped(job: Job, now: datetime, user: User | None, message: str = "") -> bool:
    """Write that the job shall stop. False where it has ended, or is to stop already. `user` None: the operator, or
    the portal itself, which says why."""
    name = "The portal's operator" if user is None else user.username
    with transaction.atomic():
        running = Job.objects.filter(pk=job.pk, wanted=Wanted.RUN.value).exclude(phase__in=_FINAL)
        if not running.update(wanted=Wanted.STOP.value):
            return False
        _event(
            job, now, "stop_asked", message or f"{name} requested to stop the job.", by=user.username if user else ""
        )
        facts = {"message": message} if message else {}
        record(user, "job.stop", f"job:{job.pk}", namespace=job.namespace, name=job.name, **facts)
        ask_for_look(job.pk, now)
        enqueue(RECONCILE, job.pk)
        queue.ask_for_capacity_of(job)
        job_changed(job)
    return True


def job_retry(
    *,
    user: User,
    job: Job,
    spec: TrainingSpec | None = None,
    resumes: bool | None = None,
    accept_never_fits: bool = False,
    confirm_foreign_model: bool = False,
) -> Job:
    """Begin a new attempt, with the same spec or another. It `resumes` from the newest checkpoint, or starts from the
    beginning; None: it resumes unless the job has succeeded. Also the same spec is under today's rules: raises
    `SpecRejected` with what they say.

    Raises `Conflict` while the last attempt has not ended, or something of it still runs, and for the job of a session
    or a served model; `NeverFits` and `ForeignModel` as a launch does.
    """
    require_role(user, job.namespace, Role.MEMBER)
    refuse_personal(user, job)
    _refuse_service(job)
    refuse_closed(job.namespace)
    engine_chosen(user, job.engine)
    spec = asked_again(spec or with_class_that_is_there(user, job.namespace, stored_spec(job.spec)))
    refuse_unrunnable(job.engine, spec)
    spec = checked_spec(user, job.namespace, spec, job.engine).spec
    _require_over(job, "retried")
    foreign = foreign_models(user, spec, job.engine, confirmed=confirm_foreign_model)
    now = timezone.now()
    columns = columns_of(spec) | accepted_or_refused(spec, job.namespace, job.engine, now, accept=accept_never_fits)
    columns |= {"archived_at": None}  # what runs is shown
    if spec.name == job.spec.get("name"):
        del columns["name"]  # the job may have been renamed
    try:
        with transaction.atomic():
            _lock_queue(user, job.namespace)
            _refuse_full(job.namespace)
            volumes_require(job.namespace, job.engine, spec)
            continues = job.phase != Phase.SUCCEEDED.value if resumes is None else resumes
            phase_gate.begin_attempt(job, spec=columns["spec"], now=now, by=user, resumes=continues)
            Job.objects.filter(pk=job.pk).update(**columns)
            _say_never(job, columns, now)
            inputs_write(job, spec)
            record(user, "job.retry", f"job:{job.pk}", namespace=job.namespace, name=spec.name, attempt=job.attempt)
            foreign_record(user, foreign, job)
            queue.ask(job.engine)
    except phase_gate.PhaseMoved as moved:
        raise Conflict("The job was changed in the meantime.", remedy="Reload it and try again.") from moved
    job.refresh_from_db()
    return job


def job_delete(*, user: User, job: Job) -> None:
    """Delete an ended job with its logs, curves, checkpoints and model. It is no longer visible; what it stored is
    removed soon after, and its storage returned. Raises `Conflict` while something of it still runs."""
    require_role(user, job.namespace, Role.MEMBER)
    refuse_personal(user, job)
    _require_over(job, "deleted")
    now = timezone.now()
    with transaction.atomic():
        if not _delete(job, now, user):
            raise Conflict("The job was changed in the meantime.", remedy="Reload it and try again.")


def job_delete_unused(job: Job) -> bool:
    """Delete an ended job that the portal itself no longer keeps for anyone. False where it is not over, or is deleted
    already."""
    with transaction.atomic():
        return _delete(job, timezone.now(), None)


def _delete(job: Job, now: datetime, user: User | None) -> bool:
    """Mark it, for the reconciler to remove. False where it is not over (any more)."""
    over = Job.objects.filter(pk=job.pk, attempt=job.attempt, cleaned_up_at__isnull=False, deleted_at__isnull=True)
    if not over.filter(phase__in=_FINAL).update(deleted_at=now, next_look_at=now, wake_again=True):
        return False
    record(user, "job.delete", f"job:{job.pk}", namespace=job.namespace, name=job.name)
    enqueue(RECONCILE, job.pk)
    job_changed(job)
    return True


def quota_changed(namespace: Namespace) -> None:
    """The namespace's quota was changed: its waiting jobs are decided soon."""
    queue.ask_for_namespace(namespace.pk)


def quotas_changed() -> None:
    """The quotas of many namespaces were changed: all that wait are decided soon."""
    queue.ask_for_all()


def _refuse_service(job: Job) -> None:
    """What it runs as, and with whose token, was decided at its start alone."""
    if job.strategy == Strategy.SERVICE.value:
        message = "A session or a served model is started again on its page."
        raise Conflict(message, "is_service", remedy="Start it there.")


def _require_over(job: Job, what: str) -> None:
    if not Phase(job.phase).is_final:
        raise Conflict(f"The job has not ended, so it cannot be {what}.", remedy="Stop it first.")
    if job.cleaned_up_at is None:
        raise Conflict(
            f"The job has ended, but the engine is still cleaning up, so it cannot be {what} yet.",
            remedy="Try again in a minute.",
        )


def _event(job: Job, now: datetime, kind: str, message: str, **facts: Any) -> None:
    JobEvent.objects.create(job=job, at=now, attempt=job.attempt, kind=kind, message=message, facts=facts)

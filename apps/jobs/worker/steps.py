"""Perform the one step that `plan` named: the call to the engine first, outside any transaction, then its trace.

Every call may be repeated. Killed between call and trace, the same step is named again and does no harm.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from apps.dispatch.messages import PUBLISH, enqueue
from apps.jobs.engines.configured import engine_named
from apps.jobs.engines.namespaces import engine_namespace_lost, engine_namespace_ready
from apps.jobs.engines.probes import refuse_unreachable
from apps.jobs.models import Job, JobAttempt, JobEvent
from apps.jobs.state import ledger, phase_gate, preemptions, queue, task_facts
from apps.jobs.state.exports import exports_drop, metrics_refresh
from apps.jobs.state.nudges import job_changed
from apps.jobs.state.task_auth import token_of
from apps.jobs.worker import archive
from apps.namespaces.services import engine_namespaces_changed
from yardmaster.engines.base import Engine, Finishes, Restarts, TaskAccess
from yardmaster.errors import EngineNamespaceMissing
from yardmaster.job.spec import Role, TrainingSpec
from yardmaster.lifecycle.failures import Verdict
from yardmaster.lifecycle.hindrances import shown_hindrance
from yardmaster.lifecycle.image_words import IMAGE_ACCESS_DENIED, IMAGE_PULL, NOT_PULLED
from yardmaster.lifecycle.phases import Observation, Phase
from yardmaster.lifecycle.placing_words import NAMESPACE_INCOMPLETE
from yardmaster.lifecycle.plan import (
    Admit,
    CleanUp,
    Discard,
    FreeQuota,
    GiveBack,
    Move,
    Release,
    Requeue,
    Restart,
    Step,
    Stop,
    Submit,
    TakeBack,
    Wait,
)
from yardmaster.queueing.needs import longest_of, needs_of, needs_or_none

_OF_ITS_NAMESPACE = (NAMESPACE_INCOMPLETE, IMAGE_PULL, IMAGE_ACCESS_DENIED)
"""Reasons that go when the engine namespace is in shape again: what pods need, and the secrets to pull images with."""


def perform(step: Step, job: Job, spec: TrainingSpec, seen: Observation, now: datetime) -> Wait | None:
    """Do it. Returns a wait where there is nothing more to do now, None where the job should be looked at again."""
    match step:
        case Admit():
            _mend_needs(job, spec)
            queue.ask(job.engine)
            return Wait(now + queue.LOOK_AGAIN)
        case Submit():
            _submit(job, spec, now)
        case GiveBack(until, why):
            _give_back(job, until, why, now)
        case TakeBack(until, why):
            _take_back(job, until, why, now)
        case Discard():
            engine_named(job.engine).clean_up(job.key)
            _same(job).filter(phase=Phase.QUEUED.value).update(held_back_until=None)
        case Move(phase, verdict):
            _move(job, phase, verdict, spec, seen, now)
        case Restart():
            _restart(job, seen, now)
        case Stop(grace):
            _stop(job, spec, grace, seen)
            _remember(job, "stop_sent_at", now, "stop_sent", "The tasks were asked to stop.")
        case Requeue():
            _requeue(job, spec, now)
        case Release(roles):
            _release(job, spec, roles, seen)
            names = ", ".join(sorted(role.value for role in roles))
            _remember(job, "released_at", now, "released", f"Tasks that still ran were released: {names}.")
        case FreeQuota(roles):
            _free(job, roles, now)
        case CleanUp():
            _clean_up(job, spec, now)
        case Wait():
            _mend_needs(job, spec)
            _explain(job, seen, now)
            return step
    return None


def _mend_needs(job: Job, spec: TrainingSpec) -> None:
    """Write again what is damaged, and of a job from before an upgrade how long it runs at most."""
    known, longest = needs_or_none(job.needs), longest_of(spec)
    if known is None or known.to_end is None or (longest is not None and known.longest != longest):
        _same(job).filter(phase=job.phase).update(needs=needs_of(spec))


def _move(
    job: Job, phase: Phase, verdict: Verdict | None, spec: TrainingSpec, seen: Observation, now: datetime
) -> None:
    """A job that has its verdict no longer counts as running: another may start for it. One that was over before it
    was seen to run began when its tasks did."""
    columns: dict[str, Any] = {}
    if job.started_at is None and phase is not Phase.RUNNING:
        begun = task_facts.begun_at(job, spec.tasks(), seen, now)
        columns = {} if begun is None else {"started_at": begun}
    with transaction.atomic():
        phase_gate.move(job, phase, now=now, verdict=verdict, columns=columns)
        if verdict is not None and verdict.reason == "Lost" and verdict.role is None:
            task_facts.mark_lost(job, seen, now)
        if phase is Phase.SUCCEEDED:
            task_facts.mark_released(job)
        if phase.is_final:
            queue.ask_for_capacity_of(job)
            if spec.publishes is not None:
                enqueue(PUBLISH, job.pk)


def _give_back(job: Job, until: datetime, why: Verdict, now: datetime) -> None:
    with transaction.atomic():
        phase_gate.give_back(job, until, why, now=now)
        ledger.release_all(job, now)
        queue.ask_for_capacity_of(job)


def _take_back(job: Job, until: datetime, why: Verdict, now: datetime) -> None:
    """Killed in between, the run is absent, and submitted again. Its log stays open: the attempt continues later."""
    engine_named(job.engine).clean_up(job.key)
    with transaction.atomic():
        phase_gate.take_back(job, until, why, now=now)
        task_facts.forget(job)
        ledger.release_all(job, now)
        queue.ask_for_capacity_of(job)


def _same(job: Job) -> QuerySet[Job]:
    return Job.objects.filter(pk=job.pk, attempt=job.attempt)


def _submit(job: Job, spec: TrainingSpec, now: datetime) -> None:
    """What is missing of the engine namespace is made when the submission meets it, and the submission
    ."""
    access = TaskAccess(portal_url=settings.TASK_URL, token=token_of(job.pk, job.attempt), user=job.owner_id)
    refuse_unreachable(job.engine)
    engine_namespace_ready(job.namespace_id, job.engine)
    try:
        engine_named(job.engine).submit(spec, job.key, access)
    except EngineNamespaceMissing:
        engine_namespace_lost(job.namespace_id, job.engine)
        engine_namespace_ready(job.namespace_id, job.engine)
        engine_named(job.engine).submit(spec, job.key, access)
    taken(job, now)


def _stop(job: Job, spec: TrainingSpec, grace: timedelta, seen: Observation) -> None:
    """All of it: how it ended is known here, so that the engine need not remember it."""
    engine = engine_named(job.engine)
    if not _finished(engine, job, spec, seen):
        engine.stop(job.key, grace)


def _release(job: Job, spec: TrainingSpec, roles: frozenset[Role], seen: Observation) -> None:
    """All that still runs, as the verdict is written."""
    engine = engine_named(job.engine)
    if not _finished(engine, job, spec, seen):
        engine.release(job.key, roles)


def _finished(engine: Engine, job: Job, spec: TrainingSpec, seen: Observation) -> bool:
    """End the run as a whole where the engine can, with the time that the spec gives. That takes the ended tasks along,
    so what only the engine has of their output is kept first."""
    if not isinstance(engine, Finishes):
        return False
    going = {(one.role, one.index) for one in seen.tasks if not one.phase.is_ended}
    archive.keep_unsent_output(job, spec, engine, going)
    engine.finish(job.key)
    return True


def taken(job: Job, now: datetime) -> None:
    """Write that the engine has taken the run, once: since the answer, or since it was seen there where that was
    lost."""
    if _same(job).filter(phase=job.phase, submitted_at__isnull=True).update(submitted_at=now):
        job.submitted_at = now


def _restart(job: Job, seen: Observation, now: datetime) -> None:
    """Only an engine that can do it asks for it. Of one that counts such restarts, `task_facts` writes the event. Of
    others, killed before the event is written, the history lacks a line."""
    engine = engine_named(job.engine)
    if isinstance(engine, Restarts) and engine.restart(job.key) and seen.gang_restarts is None:
        _event(job, now, task_facts.GANG_RESTART, task_facts.GANG_RESTART_WORDS)


def _remember(job: Job, column: str, now: datetime, kind: str, message: str) -> None:
    """Write when the engine was asked, once: the first time counts."""
    same = Job.objects.filter(pk=job.pk, attempt=job.attempt, **{f"{column}__isnull": True})
    with transaction.atomic():
        if same.update(**{column: now}):
            _event(job, now, kind, message)
            job_changed(job)


def _free(job: Job, roles: frozenset[Role], now: datetime) -> None:
    with transaction.atomic():
        if ledger.release(job, roles, now):
            names = ", ".join(sorted(role.value for role in roles))
            _event(job, now, "quota_freed", f"The quota of these roles was released: {names}.")
            queue.ask_for_capacity_of(job)


def _clean_up(job: Job, spec: TrainingSpec, now: datetime) -> None:
    """What the engine alone kept is archived before it is removed; then all quota goes back."""
    engine = engine_named(job.engine)
    archive.keep_outputs(job, spec, engine)
    engine.clean_up(job.key)
    with transaction.atomic():
        if not Job.objects.filter(pk=job.pk, attempt=job.attempt, cleaned_up_at__isnull=True).update(cleaned_up_at=now):
            return
        JobAttempt.objects.filter(job=job, number=job.attempt).update(cleaned_up_at=now)
        if _removed(job, now):
            queue.ask_for_capacity_of(job)


def _removed(job: Job, now: datetime) -> int:
    """The engine has nothing of the attempt any more: write that, and return all quota. Returns how many rows."""
    task_facts.mark_removed(job, now)
    metrics_refresh(job, job.attempt)
    exports_drop(job, job.attempt)
    preemptions.ended(job, now)
    _event(job, now, "cleaned_up", "All remaining objects on the engine were removed.")
    job_changed(job)
    return ledger.release_all(job, now)


def _requeue(job: Job, spec: TrainingSpec, now: datetime) -> None:
    """Killed before the transaction is through, the same is done again; one that is to stop meanwhile, stops."""
    engine = engine_named(job.engine)
    archive.keep_outputs(job, spec, engine)
    engine.clean_up(job.key)
    with transaction.atomic():
        why = preemptions.why(job)
        _removed(job, now)
        phase_gate.requeue(job, why, now=now)
        queue.ask_for_capacity_of(job)


def _event(job: Job, now: datetime, kind: str, message: str, **facts: Any) -> None:
    JobEvent.objects.create(job=job, at=now, attempt=job.attempt, kind=kind, message=message, facts=facts)


def _explain(job: Job, seen: Observation, now: datetime) -> None:
    """Say what hinders a job that starts or runs; once it continues, take back the reason, also one that a setback
    left. Where its engine namespace may be at fault, have that looked at."""
    phase = Phase(job.phase)
    if phase.is_final or phase is Phase.QUEUED:
        return
    shown = asdict(shown_hindrance(phase, seen))
    if (job.reason, job.message, job.remedy) != (shown["reason"], shown["message"], shown["remedy"]):
        is_same = job.reason == shown["reason"] or {job.reason, shown["reason"]} <= NOT_PULLED
        since = job.hindered_since if is_same and job.hindered_since else now
        changes = {**shown, "hindered_since": since if shown["reason"] else None}
        Job.objects.filter(pk=job.pk, phase=job.phase, attempt=job.attempt).update(**changes)
        job_changed(job)
        if shown["reason"] in _OF_ITS_NAMESPACE:
            engine_namespaces_changed(job.namespace_id, now)

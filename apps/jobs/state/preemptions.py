"""Preemption, as a pass over a queue acts on it: read what runs, ask `yardmaster.queueing.takings`, and ask those that
go to end.

A job that goes is marked in the transaction of the pass, once: a pass that is repeated counts it as ending. Its
reconciler stops it with the usual time to save a checkpoint, and returns it to the queue (`phase_gate.requeue`); what
it held is free then, and not before.

Only a job that has a complete checkpoint goes. Not here: what is allowed (`preemption_policy`).
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import Exists, FilteredRelation, OuterRef, Q
from django.db.models.functions import Now

from apps.audit.services import record
from apps.dispatch.messages import RECONCILE, enqueue
from apps.jobs.models import Checkpoint, Job, JobEvent, Preemption, PreemptionPolicy
from apps.jobs.models.preemption import LONGEST_MINUTES
from apps.jobs.state.nudges import job_changed
from apps.namespaces.models import PriorityClass
from yardmaster.lifecycle.phases import Phase, Wanted
from yardmaster.queueing.ledger import Ledger
from yardmaster.queueing.preemption import Rules, Running
from yardmaster.queueing.queue_decision import QueueDecision
from yardmaster.queueing.resources import units_of
from yardmaster.queueing.takings import Present, Taking, may_take_any, takings

if TYPE_CHECKING:
    from apps.jobs.state.books import Queued

DAY = timedelta(hours=24)
_LATELY = ("lately__job_id", "lately__for_job_id", "lately__at", "lately__ended_at")
_RUNNING = (
    "pk", "attempt", "namespace_id", "phase", "wanted", "priority", "priority_class", "started_at", "preempted_at",
    "namespace__quota__priority_ceiling", "keeps_checkpoints", "is_spared",
)  # fmt: skip


@dataclass(frozen=True)
class Allowed:
    """What an engine's policy says, and what was preempted there lately or is ending now."""

    engine: str
    is_on: bool = False
    rules: Rules = field(default_factory=Rules)
    claimants: Mapping[uuid.UUID, int] = field(default_factory=dict)
    """The jobs for which others are giving up their places, with how many."""
    lately: tuple[tuple[uuid.UUID, uuid.UUID | None, datetime], ...] = ()
    """Who went, for whom, when."""


def allowed_on(engine: str) -> Allowed:
    """One statement."""
    since = Now() - timedelta(minutes=LONGEST_MINUTES)
    lately = FilteredRelation(
        "preemptions", condition=Q(preemptions__at__gt=since) | Q(preemptions__ended_at__isnull=True)
    )
    policies = PreemptionPolicy.objects.filter(engine=engine).annotate(lately=lately)
    rows = list(policies.values_list("is_on", "least_minutes", "most_a_day", *_LATELY))
    if not rows:
        return Allowed(engine)
    is_on, least_minutes, most_a_day = rows[0][:3]
    found = [row[3:] for row in rows if row[3] is not None]
    claimants = Counter(for_job for _, for_job, _, ended_at in found if for_job is not None and ended_at is None)
    rules = Rules(timedelta(minutes=least_minutes), most_a_day)
    return Allowed(engine, is_on, rules, claimants, tuple(one[:3] for one in found))


def preempt(
    allowed: Allowed, found: QueueDecision, queued: Mapping[uuid.UUID, Queued], books: Ledger, now: datetime
) -> int:
    """Have those jobs end whose places others of the queue take. In the pass's transaction, with its lock held; `books`
    are those that `found` was decided by. Returns how many; without a statement where nothing may be preempted."""
    by_priority = frozenset(key for key, one in queued.items() if one.takes_places)
    candidates = {key: one.candidate for key, one in queued.items()}
    if not allowed.is_on or not may_take_any(candidates.values(), books, by_priority):
        return 0
    taken = Counter(job_id for job_id, _, at in allowed.lately if at > now - DAY)
    rests = now - allowed.rules.least_run
    resting = frozenset(key for _, key, at in allowed.lately if key is not None and at > rests)
    running, ending = _running(allowed.engine, books, taken)
    present = Present(tuple(running), frozenset(ending), by_priority, resting)
    acted = takings(found, candidates, books, present, now, allowed.rules)
    return sum(_act(allowed.engine, one, now) for one in acted)


def _running(engine: str, books: Ledger, taken: Mapping[uuid.UUID, int]) -> tuple[list[Running], list[uuid.UUID]]:
    """The jobs that hold something on the engine: those that run, and those that end. One statement."""
    holds = {one.job_id: units_of(one.resources) for one in books.holders if one.on_engine}
    complete = Checkpoint.objects.filter(
        job=OuterRef("pk"), completed_at__isnull=False, attempt__gte=OuterRef("resumes_from")
    )
    jobs = Job.objects.filter(engine=engine, cleaned_up_at__isnull=True).exclude(phase=Phase.QUEUED.value)
    running, ending = [], []
    spared = PriorityClass.objects.filter(name=OuterRef("priority_class"), is_preemptible=False)
    for row in jobs.annotate(keeps_checkpoints=Exists(complete), is_spared=Exists(spared)).values_list(*_RUNNING):
        one = dict(zip(_RUNNING, row, strict=True))
        if one["pk"] not in holds:
            continue
        if one["phase"] == Phase.RUNNING.value and one["wanted"] == Wanted.RUN.value and not one["preempted_at"]:
            running.append(_as_running(one, holds[one["pk"]], taken))
        elif one["phase"] != Phase.STARTING.value or one["wanted"] == Wanted.STOP.value:
            ending.append(one["pk"])
    return running, ending


def _as_running(one: Mapping[str, Any], holds: Mapping[str, int], taken: Mapping[Any, int]) -> Running:
    ceiling = one["namespace__quota__priority_ceiling"] or 0
    return Running(
        one["pk"], one["namespace_id"],
        priority=one["priority"] if one["priority_class"] else min(one["priority"], ceiling),
        started_at=one["started_at"], holds=holds, taken_today=taken.get(one["pk"], 0),
        may_go=one["keeps_checkpoints"] and not one["is_spared"],
    )  # fmt: skip


def _act(engine: str, taking: Taking, now: datetime) -> int:
    """Mark those that go; passed over: one that has ended, or is to stop, since it was read."""
    ids = [one.job_id for one in taking.victims]
    still = Job.objects.filter(
        pk__in=ids, phase=Phase.RUNNING.value, wanted=Wanted.RUN.value, preempted_at__isnull=True, deleted_at=None
    )
    jobs = list(
        still.order_by("pk").select_for_update(of=("self",)).select_related("namespace").defer("spec", "waiting")
    )
    if len(jobs) < len(ids):
        return 0  # with fewer it would not be enough: the next pass decides again
    preemptor = (
        Job.objects.filter(pk=taking.candidate.job_id).select_related("namespace").defer("spec", "waiting").get()
    )
    Job.objects.filter(pk__in=ids).update(preempted_at=now, next_look_at=now, wake_again=True)
    for job in jobs:
        _write(engine, job, preemptor, taking, now)
    return len(jobs)


def _write(engine: str, job: Job, preemptor: Job, taking: Taking, now: datetime) -> None:
    # Within its own namespace a job takes places by its class, whatever is guaranteed.
    is_guaranteed = taking.is_guaranteed and job.namespace_id != preemptor.namespace_id
    message = _words(job, preemptor, is_guaranteed=is_guaranteed)
    Preemption.objects.create(
        policy_id=engine, job=job, attempt=job.attempt, for_job=preemptor, for_namespace=preemptor.namespace.slug,
        for_class=preemptor.priority_class, is_guaranteed=is_guaranteed, message=message, at=now,
    )  # fmt: skip
    JobEvent.objects.create(job=job, at=now, attempt=job.attempt, kind="preempted", message=message)
    record(
        None, "job.preempt", f"job:{job.pk}", namespace=job.namespace, name=job.name, attempt=job.attempt,
        for_namespace=preemptor.namespace.slug, for_class=preemptor.priority_class,
        is_guaranteed=is_guaranteed,
    )  # fmt: skip
    enqueue(RECONCILE, job.pk)
    job_changed(job)


def _words(job: Job, preemptor: Job, *, is_guaranteed: bool) -> str:
    """For the owner. The name of another namespace's job is not told."""
    is_own = job.namespace_id == preemptor.namespace_id
    who = f"The job {preemptor.name}" if is_own else f"A job of the namespace {preemptor.namespace.slug}"
    because = (
        "to whose namespace what this job held is guaranteed"
        if is_guaranteed
        else f"whose priority class {preemptor.priority_class} is higher"
    )
    return (
        f"{who}, {because}, needed its place. This job saves a checkpoint, returns to its place in the queue, and "
        "continues from the checkpoint when there is capacity."
    )


def why(job: Job) -> str:
    """For whom the present attempt gave up its place, in words."""
    found = Preemption.objects.filter(job=job, attempt=job.attempt).values_list("message", flat=True).first()
    return found or "Another job needed its place."


def ended(job: Job, now: datetime) -> None:
    """The place of a job that was to give it up is free, however the job ended."""
    if job.preempted_at is not None:
        Preemption.objects.filter(job=job, attempt=job.attempt, ended_at__isnull=True).update(ended_at=now)


def preemptions_of(engines: Iterable[str], most: int) -> list[Preemption]:
    """The newest first, with their jobs: for administrators."""
    found = Preemption.objects.filter(policy__in=list(engines)).select_related("job", "job__namespace")
    return list(found.defer("job__spec", "job__waiting").order_by("-at", "-pk")[:most])

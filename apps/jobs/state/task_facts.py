"""Keep what an engine showed of a job's tasks: their latest state, and an event where one restarted or ended badly.

Facts are for people and for `why`; the reconciler decides from the observation itself.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from django.db import transaction
from django.db.models import Max

from apps.jobs.models import Job, JobEvent, TaskFact
from apps.jobs.state.nudges import job_changed
from yardmaster.job.spec import Role, Strategy
from yardmaster.job.strategy import ROLES, never_ending_roles
from yardmaster.lifecycle.failures import REASONS, task_name
from yardmaster.lifecycle.phases import Observation, Phase, TaskPhase, TaskState

UPLOADING = "uploading"
_ENDED = [phase.value for phase in TaskPhase if phase.is_ended]
GANG_RESTART = "gang_restart"
"""The kind of the event that all tasks restart together."""
GANG_RESTART_WORDS = (
    "A task was lost or failed, and the others cannot continue without it: all tasks restart together from the newest "
    "checkpoint."
)
MOST_GANG_RESTARTS = 10
"""Events of them that one look writes, whatever the engine says."""
SEEN = ("phase", "reason", "message", "exit_code", "restarts", "node", "started_at", "finished_at", "peak_memory")


def record(job: Job, seen: Observation, now: datetime) -> Observation:
    """Write the tasks that have changed since the last look. One query where nothing has. Returns what was seen, with
    the most memory that each task has reported: who was killed for it cannot say it any more, nor do all engines."""
    facts = TaskFact.objects.filter(job=job, attempt=job.attempt).defer("usage_samples")
    known = {(fact.role, fact.index): fact for fact in facts}
    _record_changed(job, shown(job, seen), known, now)
    return replace(seen, tasks=tuple(_with_peak(task, known.get((task.role.value, task.index))) for task in seen.tasks))


def forget(job: Job) -> None:
    """The engine has nothing of the attempt any more, and it is to be submitted again: what it showed is over."""
    unseen: dict[str, object] = dict.fromkeys(("exit_code", "started_at", "finished_at", "peak_memory"))
    texts = dict.fromkeys(("phase", "reason", "message", "node"), "")
    TaskFact.objects.filter(job=job, attempt=job.attempt).update(**unseen, **texts, restarts=0)


def facts_of(jobs: Iterable[Job]) -> dict[uuid.UUID, list[TaskFact]]:
    """What is written of the tasks of these jobs' current attempts, in one query."""
    attempts = {job.pk: job.attempt for job in jobs}
    found: dict[uuid.UUID, list[TaskFact]] = {}
    for fact in TaskFact.objects.filter(job__in=attempts).defer("usage_samples"):
        if fact.attempt == attempts[fact.job_id]:
            found.setdefault(fact.job_id, []).append(fact)
    return found


def shown(job: Job, seen: Observation) -> Observation:
    """What people are shown of it. Servers that only end when they are released often fail once those that they served
    have ended: after the job has succeeded that is a release, and no failure."""
    roles = _released_with(job)
    if not any(_fell_after(task, roles) for task in seen.tasks):
        return seen
    return replace(seen, tasks=tuple(
        replace(task, phase=TaskPhase.RELEASED, reason="", message="") if _fell_after(task, roles) else task
        for task in seen.tasks
    ))  # fmt: skip


def mark_released(job: Job) -> None:
    """The job has just succeeded: the same for servers that were seen to fail before that was known."""
    roles = [role.value for role in _released_with(job)]
    TaskFact.objects.filter(job=job, attempt=job.attempt, phase=TaskPhase.FAILED.value, role__in=roles).update(
        phase=TaskPhase.RELEASED.value, reason="", message=""
    )


def _released_with(job: Job) -> frozenset[Role]:
    if job.phase != Phase.SUCCEEDED.value:
        return frozenset()
    return never_ending_roles(Strategy(job.strategy))


def _fell_after(task: TaskState, roles: frozenset[Role]) -> bool:
    return task.phase is TaskPhase.FAILED and task.role in roles


def unchanged(job: Job, seen: Observation, facts: Iterable[TaskFact]) -> Observation | None:
    """What `record` would return where it has nothing to write; None where it has."""
    known = {(fact.role, fact.index): fact for fact in facts}
    for task in shown(job, seen).tasks:
        fact = known.get((task.role.value, task.index))
        if fact is None or _differs(fact, task):
            return None
    return replace(seen, tasks=tuple(_with_peak(task, known[task.role.value, task.index]) for task in seen.tasks))


def begun_at(job: Job, tasks: Iterable[tuple[Role, int]], seen: Observation, now: datetime) -> datetime | None:
    """When the whole run had begun, by its tasks' own times: for one that was over before it was looked at. None where
    a task is not known to have begun."""
    times = {(task.role, task.index): task.started_at for task in seen.tasks}
    begun = [times.get(task) for task in tasks]
    known = [one for one in begun if one is not None]
    if not known or len(known) < len(begun):
        return None
    return min(now, max(*known, job.admitted_at or job.queued_at))


def uploading_at(job: Job) -> datetime | None:
    """When a task last reported that it uploads what its script wrote, of a job that is to end; None: none does, or it
    does not matter."""
    if job.phase == Phase.RUNNING.value or not (job.stop_sent_at or job.released_at):
        return None
    uploading = TaskFact.objects.filter(job=job, attempt=job.attempt, state=UPLOADING)
    found: datetime | None = uploading.aggregate(at=Max("reported_at"))["at"]
    return found


def mark_lost(job: Job, seen: Observation, now: datetime) -> None:
    """The run is gone: of its tasks those that were not seen any more, and had not ended, are gone with it."""
    there = {(task.role.value, task.index) for task in seen.tasks}
    rows = [row for row in _not_ended(job) if (row.role, row.index) not in there]
    message = "It disappeared together with the run, without an exit status."
    TaskFact.objects.filter(pk__in=[row.pk for row in rows]).update(
        phase=TaskPhase.FAILED.value, reason="Lost", message=message, state="", finished_at=now
    )


def mark_removed(job: Job, now: datetime) -> None:
    """Everything of the run was removed: no task of it runs any more, whatever was seen last."""
    ids = [row.pk for row in _not_ended(job)]
    TaskFact.objects.filter(pk__in=ids).update(phase=TaskPhase.RELEASED.value, state="", finished_at=now)


def _not_ended(job: Job) -> list[TaskFact]:
    facts = TaskFact.objects.filter(job=job, attempt=job.attempt).exclude(phase__in=_ENDED)
    return list(facts.only("pk", "role", "index"))


def _with_peak(task: TaskState, fact: TaskFact | None) -> TaskState:
    """The engine's own figure counts more: it is of this life of the task, and measured to its end."""
    reported = fact.usage.get("peak_memory") if fact is not None else None
    return replace(task, peak_memory=reported) if task.peak_memory is None and reported else task


def _record_changed(job: Job, seen: Observation, known: Mapping[tuple[str, int], TaskFact], now: datetime) -> None:
    changed = [(task, known.get((task.role.value, task.index))) for task in seen.tasks]
    changed = [(task, fact) for task, fact in changed if fact is None or _differs(fact, task)]
    if not changed:
        return
    with transaction.atomic():
        TaskFact.objects.bulk_create(
            [_row(job, task) for task, _ in changed],
            update_conflicts=True,
            unique_fields=["job", "attempt", "role", "index"],
            update_fields=SEEN,
        )
        events = [event for task, fact in changed for event in _events(job, task, fact, now)]
        JobEvent.objects.bulk_create([*_gang_restarts(job, seen, now), *events])
        job_changed(job, is_detail=True)


def _values(task: TaskState) -> Mapping[str, object]:
    return {**{name: getattr(task, name) for name in SEEN}, "phase": task.phase.value}


def _differs(fact: TaskFact, task: TaskState) -> bool:
    return any(getattr(fact, name) != value for name, value in _values(task).items())


def _row(job: Job, task: TaskState) -> TaskFact:
    return TaskFact(job=job, attempt=job.attempt, role=task.role.value, index=task.index, **_values(task))


def _events(job: Job, task: TaskState, before: TaskFact | None, now: datetime) -> list[JobEvent]:
    """What of a task's change belongs in the job's history: a restart, and a bad end."""
    name = task_name(task.role, task.index)
    facts = {"role": task.role.value, "index": task.index, "restarts": task.restarts, "exit_code": task.exit_code}
    found: list[tuple[str, str]] = []
    if task.restarts > (before.restarts if before else 0):
        found.append(("task_restarted", f"{name} was restarted, for the {_ordinal(task.restarts)} time."))
    if task.phase is TaskPhase.FAILED and (before is None or before.phase != TaskPhase.FAILED.value):
        title = REASONS[task.reason].title if task.reason in REASONS else "The task failed"
        found.append(("task_failed", f"{name}: {title}."))
    return [
        JobEvent(job=job, at=now, attempt=job.attempt, kind=kind, reason=task.reason, message=message, facts=facts)
        for kind, message in found
    ]


def _gang_restarts(job: Job, seen: Observation, now: datetime) -> list[JobEvent]:
    """That all tasks restarted together, of an engine that counts it: as often as the history does not say it yet."""
    if not seen.gang_restarts or sum(_has_server(job, task) for task in seen.tasks) < 2:
        return []
    recorded = JobEvent.objects.filter(job=job, attempt=job.attempt, kind=GANG_RESTART)
    if job.submitted_at is not None:  # it counts from there
        recorded = recorded.filter(at__gte=job.submitted_at)
    count = min(seen.gang_restarts - recorded.count(), MOST_GANG_RESTARTS)
    event = {"job": job, "at": now, "attempt": job.attempt, "kind": GANG_RESTART, "message": GANG_RESTART_WORDS}
    return [JobEvent(**event, facts={}) for _ in range(count)]


def _has_server(job: Job, task: TaskState) -> bool:
    rule = ROLES[Strategy(job.strategy)].get(task.role) if job.strategy in set(Strategy) else None
    return rule is not None and rule.has_server


def _ordinal(number: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(number, f"{number}th")

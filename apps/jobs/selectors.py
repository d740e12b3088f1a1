"""Which jobs a person may see, what jobs hold, and which versions they still need. Reads only."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.db.models import QuerySet
from django.dispatch import receiver

from apps.accounts.models import User
from apps.errors import Forbidden, NotFound
from apps.jobs.explanations.stalled_tasks import stalled_since, waits_for
from apps.jobs.explanations.wait_estimates import with_estimates
from apps.jobs.models import Checkpoint, Job, JobAttempt, JobEvent, JobInput, JobPackages, TaskFact
from apps.jobs.state import ledger
from apps.jobs.state.specs import spec_or_remains
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import namespaces_visible, reading_note, require_role
from apps.registry.selectors import versions_of_jobs
from apps.uploads.versioned.models import versions_deleting
from yardmaster.job.programs import PROGRAMS
from yardmaster.job.spec import Resources, Strategy
from yardmaster.lifecycle.phases import FINAL, Phase, TaskPhase

UNFINISHED = [phase.value for phase in Phase if phase not in FINAL]
EVENTS_AT_ONCE = 200
ON_THE_ENGINE = [Phase.STARTING.value, Phase.RUNNING.value, Phase.STOPPING.value]


def job_for(user: User, job_id: uuid.UUID | str, *, at_least: Role = Role.VIEWER) -> Job:
    """The job, if the user may see it. Unknown or foreign: the same 404. Seen, but the role is too low, or it is
    another's personal one: 403."""
    try:
        key = job_id if isinstance(job_id, uuid.UUID) else uuid.UUID(job_id)
    except ValueError:
        raise NotFound() from None
    rows = Job.objects.select_related("namespace", "owner", "cleared").filter(pk=key, deleted_at__isnull=True)
    found = with_estimates(rows)  # for the page of a job that waits
    job = found.filter(namespace__in=namespaces_visible(user)).first()
    if job is None:
        raise NotFound()
    if at_least != Role.VIEWER:
        require_role(user, job.namespace, at_least)
    refuse_personal(user, job)
    reading_note(user, "job", job.pk, job.namespace)
    return job


def jobs_for(user: User, job_ids: Collection[uuid.UUID | str]) -> list[Job]:
    """All of these, if the user may see them, as `job_for` says it. One query, but for administrators."""
    try:
        keys = {uuid.UUID(str(one)) for one in job_ids}
    except ValueError:
        raise NotFound() from None
    found = Job.objects.select_related("namespace", "owner").filter(pk__in=keys, deleted_at__isnull=True)
    jobs = list(found.filter(namespace__in=namespaces_visible(user))) if keys else []
    if len(jobs) != len(keys):
        raise NotFound()
    for job in jobs:
        refuse_personal(user, job)
        reading_note(user, "job", job.pk, job.namespace)
    return jobs


def refuse_personal(user: User, job: Job) -> None:
    """Raises `Forbidden` where the job runs as another user, as a Jupyter does: others see it in lists alone, since it
    holds quota of the namespace. Administrators may see and stop each."""
    if job.strategy != Strategy.SERVICE.value or job.owner_id == user.pk or user.is_staff:
        return
    program = PROGRAMS.get(job.spec.get("program", ""))
    if program is None or program.is_personal:
        raise Forbidden("This job runs as its owner and is theirs alone.", "Ask its owner, or an administrator.")


def resources_used(namespace: Namespace) -> dict[str, float]:
    """What the namespace's admitted jobs hold: `cpu`, `memory`, `gpus`, extended resources by name, `running_jobs`."""
    total = ledger.total_of(ledger.held_in([namespace.pk]))
    running = Job.objects.filter(namespace=namespace, phase__in=ON_THE_ENGINE).count()
    return {**total.as_amounts(), "running_jobs": running}


def held_by(namespace_id: uuid.UUID, engine: str) -> Resources:
    """What the namespace's admitted jobs hold on one engine."""
    return ledger.held_by(namespace_id, engine)


def jobs_in(namespace: Namespace) -> QuerySet[Job]:
    """Every job of the namespace that was not deleted."""
    return Job.objects.for_lists().filter(namespace=namespace, deleted_at__isnull=True)


def attempt_is_over(job_id: uuid.UUID, attempt: int) -> bool:
    """Whether nothing of the attempt runs any more, and what its engine kept of its output has been archived."""
    return not JobAttempt.objects.filter(job_id=job_id, number=attempt, cleaned_up_at__isnull=True).exists()


def versions_in_use(version_ids: Collection[uuid.UUID]) -> set[uuid.UUID]:
    """Which of these code or dataset versions an unfinished job needs."""
    needed = JobInput.objects.filter(version__in=version_ids, job__phase__in=UNFINISHED)
    return set(needed.values_list("version", flat=True))


def models_of(jobs: Sequence[Job]) -> dict[uuid.UUID, uuid.UUID]:
    """The newest version of a model that each job exported, by job. One query."""
    return dict(versions_of_jobs([job.pk for job in jobs]).reverse().values_list("source_job", "pk"))


def attempts_of(job: Job) -> QuerySet[JobAttempt]:
    return JobAttempt.objects.filter(job=job).defer("spec", "agreed").order_by("-number")


def events_of(job: Job, *, after: int) -> tuple[list[JobEvent], int | None]:
    """Events that follow the one with this id, and the id to continue from (None: that was all)."""
    events = list(JobEvent.objects.filter(job=job, pk__gt=after).order_by("pk")[: EVENTS_AT_ONCE + 1])
    page = events[:EVENTS_AT_ONCE]
    return page, page[-1].pk if len(events) > len(page) else None


def checkpoints_of(job: Job) -> QuerySet[Checkpoint]:
    """Complete ones, the one to continue from first."""
    return Checkpoint.objects.filter(job=job, completed_at__isnull=False).order_by("-completed_at", "-step")


def facts_of(job: Job) -> QuerySet[TaskFact]:
    """What is known of the tasks of its newest attempt. Read once, and only where it is looked at."""
    facts = TaskFact.objects.filter(job=job, attempt=job.attempt)
    return facts if job.admitted_at else facts.none()


def tasks_of(job: Job, attempt: int) -> list[dict[str, Any]]:
    """Every task that the attempt's spec names, with what is known of it."""
    row = JobAttempt.objects.filter(job=job, number=attempt).first()
    if row is None:
        return []
    spec, _ = spec_or_remains(job, row)
    known = {(fact.role, fact.index): fact for fact in TaskFact.objects.filter(job=job, attempt=attempt)}
    tasks = [(role.value, index) for role, index in spec.tasks()]
    return [_task(known.get(task) or TaskFact(role=task[0], index=task[1])) for task in tasks]


def _task(fact: TaskFact) -> dict[str, Any]:
    reported = fact.reported
    return {
        **{
            name: getattr(fact, name)
            for name in ("role", "index", "state", "restarts", "node", "started_at", "finished_at")
        },
        "phase": fact.phase or TaskPhase.PENDING.value,
        "reason": fact.reason or reported.get("reason", ""),
        "message": fact.message or reported.get("message", ""),
        "exit_code": fact.exit_code if fact.exit_code is not None else reported.get("exit_code"),
        "progress": fact.progress or None,
        "usage": fact.usage or None,
        "peak_memory": fact.peak_memory or fact.usage.get("peak_memory"),
        "reported_at": fact.reported_at,
        "held_until": _held_until(fact),
        "stalled_since": stalled_since(fact),
        "waits_for": waits_for(fact),
    }


def _held_until(fact: TaskFact) -> datetime | None:
    """Until when it is held open after its failure; None: it is not."""
    until = fact.reported.get("held_until")
    return datetime.fromtimestamp(until, UTC) if fact.state == "held" and until else None


@receiver(versions_deleting)
def _needed_by_unfinished_jobs(*, version_ids: set[uuid.UUID], **_: Any) -> set[uuid.UUID]:
    return versions_in_use(version_ids)


def packages_of(job: Job, attempt: int) -> list[dict[str, str]] | None:
    """What was installed for an attempt: name, version and SHA-256 each. None: nothing was asked for, or nothing was
    installed yet."""
    return JobPackages.objects.filter(job=job, attempt=attempt).values_list("lock", flat=True).first()


def lock_file(lock: Sequence[Mapping[str, str]]) -> str:
    """A requirements file with which pip installs exactly these."""
    lines = [
        f"{one['name']}=={one['version']}" + (f" --hash=sha256:{one['sha256']}" if one["sha256"] else "")
        for one in lock
    ]
    return "".join(f"{line}\n" for line in lines)

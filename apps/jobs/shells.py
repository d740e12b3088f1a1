"""Terminals in running tasks, and tasks that are held open after their script has failed: who may, and how many.

A terminal does what a job's script does, as the script's user. So it is for those who could launch that script: members
of the namespace who may use the engine. Where a program of the portal runs there is none: some programs are given more
than users are, as the one that writes to a data volume.

Not here: the bytes (`shell_sockets`), and the runner's side (`yardmaster_runner.shells`).
"""

from __future__ import annotations

import logging
import re
import uuid
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.services import record
from apps.errors import Conflict, Forbidden, NotFound
from apps.jobs.engines.configured import engine_named, why_not
from apps.jobs.models import Job, JobEvent, TaskFact, TaskShell
from apps.jobs.selectors import job_for
from apps.jobs.state.nudges import job_changed
from apps.jobs.state.task_auth import TaskIdentity
from apps.namespaces.models import Role
from apps.namespaces.selectors import require_role
from yardmaster.engines.base import Nudges
from yardmaster.errors import YardmasterError
from yardmaster.job.spec import Role as TaskRole
from yardmaster.lifecycle.failures import task_name
from yardmaster.lifecycle.phases import Phase, Wanted

MOST_OF_TASK, MOST_OF_USER, MOST_PER_MINUTE = 2, 4, 30
BELIEVED = timedelta(seconds=90)
"""How long a socket is taken to be there since it was last heard of; both say it more often."""
LOST = "The connection was lost."
RUNNING, HELD = "running", "held"
_ENDED_AT_ONCE = 200


log = logging.getLogger(__name__)
_TASK = re.compile(r"(chief|worker|ps|evaluator)-(0|[1-9][0-9]{0,5})")


def task_of(name: str) -> tuple[str, int]:
    """The role and index of `worker-0`. Raises a 404 problem for what names no task."""
    found = _TASK.fullmatch(name)
    if found is None:
        raise NotFound("The job has no such task. Tasks are called such as worker-0.")
    return found[1], int(found[2])


def refuse_shells(user: User, job: Job) -> None:
    """Raises the problem where this user may have no terminal in the job's tasks, whatever state they are in."""
    require_role(user, job.namespace, Role.MEMBER)
    refusal = why_not(user, job.engine)
    if refusal is not None:
        raise refusal
    if job.spec.get("program"):
        raise Forbidden(
            "This job runs one of the portal's own programs: terminals open only where a script of yours runs.",
            "Read its log instead.",
        )


def shell_open(
    *, user: User, job_id: uuid.UUID, role: str, index: int, channel: str, is_command: bool = False
) -> TaskShell:
    """A terminal that the task's runner is to join, or one command without a terminal. Raises the problem where there
    can be none."""
    job = job_for(user, job_id)
    refuse_shells(user, job)
    fact = _fact_of(job, role, index)
    name = task_name(TaskRole(role), index)
    if job.phase != Phase.RUNNING.value or job.wanted != Wanted.RUN.value or fact.state not in (RUNNING, HELD):
        raise Conflict(
            f"{name} does not run now, so no terminal can be opened in it.", "not_running",
            remedy="Open it while its script runs. To look at a task whose script failed, launch with hold_failed.",
        )  # fmt: skip
    now = timezone.now()
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        Job.objects.select_for_update(no_key=True).get(pk=job.pk)
        _refuse_more(user, job, role, index, now)
        shell = TaskShell.objects.create(
            job=job, attempt=job.attempt, role=role, index=index, user=user, opened_at=now,
            user_until=now + BELIEVED, channel=channel, is_command=is_command,
        )  # fmt: skip
        message = f"{user.username} {'runs a command' if is_command else 'opened a terminal'} in {name}."
        _tell(job, user, now, "shell_open", "shell.open", message, shell)
    _nudge(job, role, index)
    return shell


def _nudge(job: Job, role: str, index: int) -> None:
    """Have the task's runner ask at once, where the engine has a way to it. It asks within seconds all the same."""
    try:
        engine = engine_named(job.engine)
        if isinstance(engine, Nudges):
            engine.nudge(job.key, TaskRole(role), index)
    except YardmasterError as error:
        log.info("The runner of %s-%d of job %s was not nudged: %s", role, index, job.pk, error)


def _refuse_more(user: User, job: Job, role: str, index: int, now: datetime) -> None:
    there = TaskShell.objects.filter(ended_at__isnull=True, user_until__gt=now)
    of_task = there.filter(job=job, attempt=job.attempt, role=role, index=index).count()
    if of_task >= MOST_OF_TASK:
        raise Conflict(
            f"{role}-{index} has {of_task} open terminals, and may have {MOST_OF_TASK}.", "too_many_shells",
            remedy="End one of them.",
        )  # fmt: skip
    lately = TaskShell.objects.filter(user=user, opened_at__gt=now - timedelta(minutes=1)).count()
    if lately >= MOST_PER_MINUTE:
        raise Conflict(
            f"You opened {lately} terminals in the last minute, and may open {MOST_PER_MINUTE}.",
            "too_many_shells",
            remedy="Wait a minute.",
        )
    of_user = there.filter(user=user).count()
    if of_user >= MOST_OF_USER:
        raise Conflict(
            f"You have {of_user} open terminals, and may have {MOST_OF_USER}.", "too_many_shells",
            remedy="End one of them.",
        )  # fmt: skip


def shell_keep(user: User, shell_id: uuid.UUID) -> str:
    """Say that the user's socket is there. Returns why the terminal is over; empty while it is not. Raises the problem
    where the user may have it no longer."""
    now = timezone.now()
    shell = TaskShell.objects.select_related("job__namespace").get(pk=shell_id)
    refuse_shells(user, shell.job)
    if shell.ended_at is not None:
        return shell.why
    if shell.job.attempt != shell.attempt or shell.job.deleted_at is not None:
        return "The attempt of the job is over."
    if shell.runner_until is not None and shell.runner_until < now:
        return LOST
    TaskShell.objects.filter(pk=shell_id, ended_at__isnull=True).update(user_until=now + BELIEVED)
    return ""


def shell_end(shell_id: uuid.UUID, why: str) -> None:
    """Write down that it has ended; once."""
    now = timezone.now()
    with transaction.atomic():
        if not TaskShell.objects.filter(pk=shell_id, ended_at__isnull=True).update(ended_at=now, why=why[:200]):
            return
        shell = TaskShell.objects.select_related("job__namespace", "user").get(pk=shell_id)
        name, seconds = task_name(TaskRole(shell.role), shell.index), int((now - shell.opened_at).total_seconds())
        who = shell.user.username if shell.user else "a deleted user"
        kind = "command" if shell.is_command else "terminal"
        message = f"The {kind} of {who} in {name} ended after {seconds} s: {why[:200]}"
        _tell(shell.job, shell.user, now, "shell_end", "shell.end", message, shell, seconds=seconds)


def _tell(
    job: Job, user: User | None, now: datetime, kind: str, action: str, message: str, shell: TaskShell, **more: Any
) -> None:
    more |= {"command": True} if shell.is_command else {}
    facts = {"role": shell.role, "index": shell.index, "shell": str(shell.pk), **more}
    JobEvent.objects.create(job=job, at=now, attempt=shell.attempt, kind=kind, message=message, facts=facts)
    task = f"{shell.role}-{shell.index}"
    record(user, action, f"job:{job.pk}", namespace=job.namespace, name=job.name, task=task, **more)
    job_changed(job, is_detail=True)


def waits_for_runner(now: datetime) -> Exists:
    """For a query of jobs: whether users wait for runners of their tasks."""
    return Exists(_waiting(now).filter(job=OuterRef("pk"), attempt=OuterRef("attempt")))


def _waiting(now: datetime) -> QuerySet[TaskShell]:
    return TaskShell.objects.filter(ended_at__isnull=True, joined_at__isnull=True, user_until__gt=now)


def shells_waiting(job: Job, role: str, index: int, now: datetime) -> list[dict[str, Any]]:
    """What the runner of this task is told of those whose users wait for it."""
    waiting = _waiting(now).filter(job=job, attempt=job.attempt, role=role, index=index)
    rows = waiting.values_list("pk", "is_command")[:MOST_OF_TASK]
    return [{"id": str(pk)} | ({"command": True} if is_command else {}) for pk, is_command in rows]


def shell_join(
    identity: TaskIdentity, shell_id: uuid.UUID, role: str, index: int, *, is_command: bool = False
) -> TaskShell:
    """The runner of the task has come, once. Raises a 404 problem for any other, and for one that would open a terminal
    where a command is to run: it is older than commands."""
    now = timezone.now()
    task = {"job_id": identity.job_id, "attempt": identity.attempt, "role": role, "index": index}
    waiting = _waiting(now).filter(pk=shell_id, is_command=is_command, **task)
    if not waiting.update(joined_at=now, runner_until=now + BELIEVED):
        raise NotFound()
    return TaskShell.objects.get(pk=shell_id)


def shell_serves(shell_id: uuid.UUID) -> bool:
    """Say that the runner's socket is there. Whether the user's still is."""
    now = timezone.now()
    there = TaskShell.objects.filter(pk=shell_id, ended_at__isnull=True, user_until__gt=now)
    return bool(there.update(runner_until=now + BELIEVED))


def shells_sweep(now: datetime) -> int:
    """End those whose user's socket was lost with its process. Returns how many."""
    lost = TaskShell.objects.filter(ended_at__isnull=True, user_until__lt=now).values_list("pk", flat=True)
    ids = list(lost[:_ENDED_AT_ONCE])
    for pk in ids:
        shell_end(pk, LOST)
    return len(ids)


def task_release(*, user: User, job: Job, role: str, index: int) -> None:
    """End the time for which the task is held open. Raises the conflict `not_held` where it is not."""
    require_role(user, job.namespace, Role.MEMBER)
    fact = _fact_of(job, role, index)
    if fact.state != HELD:
        raise Conflict(
            f"{task_name(TaskRole(role), index)} is not held open.", "not_held",
            remedy="Only a task whose script failed, of a job with hold_failed, can be released.",
        )  # fmt: skip
    now = timezone.now()
    with transaction.atomic():
        TaskFact.objects.filter(pk=fact.pk).update(release_of=fact.reported.get("restart", 0))
        message = f"{user.username} released {task_name(TaskRole(role), index)}."
        facts = {"role": role, "index": index}
        JobEvent.objects.create(job=job, at=now, attempt=job.attempt, kind="released", message=message, facts=facts)
        record(user, "job.release", f"job:{job.pk}", namespace=job.namespace, name=job.name, task=f"{role}-{index}")
        job_changed(job, is_detail=True)
    _nudge(job, role, index)


def stacks_ask(*, user: User, job: Job, role: str, index: int) -> None:
    """Have the task write to its log where its threads stand. For those who may have a terminal there. Raises the
    conflict `not_running` where its script does not run."""
    refuse_shells(user, job)
    fact = _fact_of(job, role, index)
    name = task_name(TaskRole(role), index)
    if job.phase != Phase.RUNNING.value or fact.state != RUNNING:
        raise Conflict(
            f"{name} does not run now, so its threads stand nowhere.", "not_running",
            remedy="Ask while its script runs.",
        )  # fmt: skip
    with transaction.atomic():
        TaskFact.objects.filter(pk=fact.pk).update(stacks_asked=F("stacks_asked") + 1)
        record(user, "job.stacks", f"job:{job.pk}", namespace=job.namespace, name=job.name, task=f"{role}-{index}")
    _nudge(job, role, index)


def _fact_of(job: Job, role: str, index: int) -> TaskFact:
    if not 0 <= index < job.replicas.get(role, 0):
        raise NotFound(f"The job has no task {role}-{index}.")
    fact = TaskFact.objects.filter(job=job, attempt=job.attempt, role=role, index=index).first()
    return fact or TaskFact(job=job, attempt=job.attempt, role=role, index=index)

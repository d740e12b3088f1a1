"""Why is this job where it is? Waiting: what lacks, who is ahead, what helps. Failed: what failed, its last words.
Running: which of its tasks send no heartbeat, or never did.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from apps.accounts.models import User
from apps.jobs.engines.configured import portal_seen_from
from apps.jobs.explanations.executor_waits import REASON as NO_EXECUTORS
from apps.jobs.explanations.executor_waits import executor_wait
from apps.jobs.explanations.stale_tasks import REASON, REMEDY, REMEDY_OF_UNREACHED, UNREACHED, stale_tasks, unreached
from apps.jobs.explanations.stalled_tasks import REASON as STALLED
from apps.jobs.explanations.stalled_tasks import stalled_tasks
from apps.jobs.explanations.wait_estimates import Estimate, estimate_of
from apps.jobs.explanations.waiting_words import NEVER, queue_state
from apps.jobs.models import Job, JobAttempt, TaskFact
from apps.namespaces.selectors import namespaces_visible
from apps.stores import log_store
from yardmaster.errors import Unavailable
from yardmaster.job.spec import known_role
from yardmaster.lifecycle.hindrances import OF_LOST_MACHINES
from yardmaster.lifecycle.phases import Phase
from yardmaster.lifecycle.tracebacks import Explanation, explain_traceback
from yardmaster.logs.keys import StreamKey
from yardmaster.queueing.ledger import Code
from yardmaster_runner.noise import is_noise

_UNDER_WAY = (Phase.STARTING.value, Phase.RUNNING.value)
LAST_LINES = 40
EXPLAINED_LINES = 200
"""More than are shown: the cause of a chained traceback stands far above its end."""
LONGEST_LINE = 2_000
_HELPS = {
    Code.WAITING_FOR_QUOTA.value: "Stop a job in this namespace, request less, or ask an administrator for more quota.",
    Code.WAITING_FOR_CAPACITY.value: "Wait for other jobs to end, or request less.",
    Code.WAITING_FOR_TURN.value: "Nothing to do: the jobs ahead start first.",
}


@dataclass(frozen=True)
class Why:
    """The answer. What the reader may not see is counted, not named."""

    phase: str
    reason: str
    message: str
    remedy: str
    queue_state: str | None = None
    position: int | None = None
    estimate: Estimate | None = None
    numbers: Sequence[dict[str, Any]] = ()
    ahead: Sequence[dict[str, Any]] = ()
    ahead_hidden: int = 0
    holders: Sequence[dict[str, Any]] = ()
    holders_hidden: int = 0
    blame: str = ""
    task: dict[str, Any] | None = None
    last_lines: Sequence[str] = ()
    explanation: Explanation | None = field(default=None)


def why(
    user: User, job: Job, tasks: Iterable[TaskFact], now: datetime, attempts: Sequence[JobAttempt] | None = None
) -> Why:
    """Why the job is where it is, for this reader. `tasks` is what is known of those of its newest attempt. `attempts`:
    its attempts, where the caller has read them."""
    if job.phase == Phase.QUEUED.value:
        return _why_waiting(user, job, now)
    if job.phase == Phase.FAILED.value:
        known = JobAttempt.objects.filter(job=job, number=job.attempt) if attempts is None else attempts
        return _why_failed(job, next((one for one in known if one.number == job.attempt), None))
    if job.reason in OF_LOST_MACHINES:
        return Why(job.phase, job.reason, job.message, job.remedy)
    if job.phase in _UNDER_WAY and (message := unreached(tasks, portal_seen_from(job.engine), now)):
        return Why(job.phase, UNREACHED, message, REMEDY_OF_UNREACHED)
    if job.phase == Phase.RUNNING.value and (message := stale_tasks(tasks, now)):
        return Why(job.phase, REASON, message, REMEDY)
    if job.phase == Phase.RUNNING.value and (lacking := executor_wait(job.spec, tasks, now)):
        return Why(job.phase, NO_EXECUTORS, lacking.message, lacking.remedy)
    if job.phase == Phase.RUNNING.value and (stalled := stalled_tasks(tasks, now)):
        return Why(job.phase, STALLED, stalled.message, stalled.remedy)
    return Why(job.phase, job.reason, job.message, job.remedy)


def _why_waiting(user: User, job: Job, now: datetime) -> Why:
    ahead, holders = job.waiting.get("ahead", []), job.waiting.get("holders", [])
    named = _names(user, [*ahead, *(one["job"] for one in holders)])
    seen_ahead = [{"id": job_id, "name": named[job_id]} for job_id in ahead if job_id in named]
    seen_holders = [
        {"id": one["job"], "name": named[one["job"]], "resources": one["resources"]}
        for one in holders
        if one["job"] in named
    ]
    return Why(
        phase=job.phase,
        reason=job.reason or Code.PENDING_EVALUATION.value,
        message=job.message or "Waiting for the scheduler.",
        remedy=job.remedy or _HELPS.get(job.reason, ""),
        queue_state=queue_state(job),
        position=None if queue_state(job) == NEVER else job.position,
        estimate=estimate_of(job, now),
        numbers=job.waiting.get("numbers", []),
        ahead=seen_ahead,
        ahead_hidden=len(ahead) - len(seen_ahead),
        holders=seen_holders,
        holders_hidden=len(holders) - len(seen_holders),
    )


def _names(user: User, job_ids: Sequence[str]) -> dict[str, str]:
    """Name by id, of those the user may see."""
    visible = Job.objects.filter(pk__in=job_ids, namespace__in=namespaces_visible(user), deleted_at__isnull=True)
    return {str(pk): name for pk, name in visible.values_list("pk", "name")}


def _why_failed(job: Job, attempt: JobAttempt | None) -> Why:
    task = _task(attempt) if attempt is not None else None
    lines = _last_lines(job, attempt) if attempt is not None and task is not None else []
    return Why(
        phase=job.phase,
        reason=job.reason,
        message=job.message,
        remedy=job.remedy,
        blame=attempt.blame if attempt is not None else "",
        task=task,
        last_lines=[line for line in lines if not is_noise(line)][-LAST_LINES:],
        explanation=explain_traceback(lines),
    )


def _task(attempt: JobAttempt) -> dict[str, Any] | None:
    if not attempt.role or attempt.index is None:
        return None
    return {"role": attempt.role, "index": attempt.index, "exit_code": attempt.exit_code}


def _last_lines(job: Job, attempt: JobAttempt) -> list[str]:
    """The end of the failed task's log. Nothing while the store does not answer, or where this release does not know
    the task's role: the verdict stands without it."""
    role = known_role(attempt.role)
    if role is None:
        return []
    stream = StreamKey(job.pk, job.attempt, role, attempt.index or 0)
    try:
        page = log_store().read(stream, -EXPLAINED_LINES, EXPLAINED_LINES)
    except Unavailable:
        return []
    return [line.text.decode(errors="replace")[:LONGEST_LINE] for line in page.lines]

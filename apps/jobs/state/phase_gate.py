"""The one module that assigns a job's phase. Every change re-checks the old phase in the database and leaves a row.

Not here: which phase comes next (`yardmaster.lifecycle.plan`), everything else of a job's row (`reconcile`,
`services`).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from apps.accounts.models import User
from apps.dispatch.outbox import ATTEMPT_DECIDED, happened, publish
from apps.jobs.models import Hold, Job, JobAttempt, JobEvent, JobMetric
from apps.jobs.state.nudges import job_changed
from apps.jobs.state.volumes import copies_settle
from yardmaster.lifecycle.failures import Blame, Verdict
from yardmaster.lifecycle.phases import MOVES, Phase, Wanted


class PhaseMoved(Exception):
    """The job was moved, or began a new attempt, since the caller read it. Read it again."""


_TIME_OF: dict[Phase, str] = {
    Phase.STARTING: "admitted_at",
    Phase.RUNNING: "started_at",
    Phase.SUCCEEDED: "decided_at",
    Phase.FAILED: "decided_at",
    Phase.STOPPED: "decided_at",
}

PREEMPTED = "Preempted"
"""The reason of an attempt that gave its place to another job."""

_EVENT_OF = {
    Phase.QUEUED: "job.requeued",
    Phase.RUNNING: "job.started",
    Phase.SUCCEEDED: "job.succeeded",
    Phase.FAILED: "job.failed",
    Phase.STOPPED: "job.stopped",
}
"""What is told of a move, beside `job.launched` at the begin of an attempt."""


def move(
    job: Job,
    to: Phase,
    *,
    now: datetime,
    verdict: Verdict | None = None,
    columns: Mapping[str, Any] | None = None,
    **facts: Any,
) -> None:
    """Move the job from the phase that `job` shows to `to`, with its event, in one transaction; `job` follows.
    `columns` of the row change with it, `facts` stand in the event.

    Raises `PhaseMoved` when the database shows another phase or attempt, `ValueError` for a move that must never be.
    """
    was = Phase(job.phase)
    if to not in MOVES[was]:
        raise ValueError(f"A job never moves from {was} to {to}.")
    changes: dict[str, Any] = {
        "phase": to.value, "waiting": {}, "position": None, "failing_since": None, "setbacks": 0,
        "hindered_since": None, **_words(to, verdict), **(columns or {}),
    }  # fmt: skip
    if to in _TIME_OF:
        changes[_TIME_OF[to]] = now
    with transaction.atomic():
        same = Job.objects.filter(pk=job.pk, phase=was.value, attempt=job.attempt)
        if not same.update(**changes):
            raise PhaseMoved(f"Job {job.pk} is no longer {was} in attempt {job.attempt}.")
        attempt = JobAttempt.objects.filter(job_id=job.pk, number=job.attempt)
        if "started_at" in changes:
            attempt.update(started_at=changes["started_at"])
        if to.is_final:
            attempt.update(phase=to.value, decided_at=now, **changes_of_verdict(verdict))
            publish(ATTEMPT_DECIDED, job.pk, attempt=job.attempt, phase=to.value, at=now.isoformat())
            copies_settle(job, to, now)
        JobEvent.objects.create(
            job_id=job.pk, at=now, attempt=job.attempt, kind="phase", phase_from=was.value, phase_to=to.value,
            reason=changes["reason"], message=changes["message"], facts=facts,
        )  # fmt: skip
        if to in _EVENT_OF:
            words = {name: changes[name] for name in ("reason", "message", "remedy")}
            _tell(job, _EVENT_OF[to], now, job.attempt, to, **words)
        job_changed(job)
    for name, value in changes.items():
        setattr(job, name, value)


def start_all(attempts: Mapping[uuid.UUID, int], *, now: datetime) -> dict[uuid.UUID, Job]:
    """Move these jobs, each in this attempt, from QUEUED to STARTING, in the caller's transaction, and have each looked
    at soon. Returns those that were moved, with what the ledger writes of them: not the ones that moved, were deleted,
    are wanted to stop or began another attempt since the caller read them."""
    waiting = Job.objects.filter(phase=Phase.QUEUED.value, wanted=Wanted.RUN.value, deleted_at__isnull=True)
    locked = waiting.filter(pk__in=list(attempts)).order_by("pk").select_for_update(of=("self",))
    named = locked.select_related("owner", "namespace").only(
        "attempt", "name", "owner_id", "owner__username", "namespace_id", "namespace__slug"
    )
    jobs = [job for job in named if job.attempt == attempts[job.pk]]
    moved = {job.pk: job for job in jobs}
    if not jobs:
        return moved
    Job.objects.filter(pk__in=moved).update(
        phase=Phase.STARTING.value, waiting={}, position=None, admitted_at=now, next_look_at=now, wake_again=True,
        **_words(Phase.STARTING, None),
    )  # fmt: skip
    was, to = Phase.QUEUED.value, Phase.STARTING.value
    JobEvent.objects.bulk_create(
        JobEvent(job_id=job.pk, at=now, attempt=job.attempt, kind="phase", phase_from=was, phase_to=to) for job in jobs
    )
    for job in jobs:
        job_changed(job)
    return moved


def give_back(job: Job, until: datetime, why: Verdict, *, now: datetime) -> None:
    """Move a job that its engine did not take back to the queue, at the place that it had, and hold it back until then.
    Raises `PhaseMoved` like `move`."""
    columns = {"admitted_at": None, "submitted_at": None, "returns": job.returns + 1, "held_back_until": until}
    move(job, Phase.QUEUED, now=now, verdict=why, columns=columns)


def take_back(job: Job, until: datetime, why: Verdict, *, now: datetime) -> None:
    """The same for a job that its engine had no place for: of that there is another count."""
    refused = {"refusals": job.refusals + 1, "refused_at": now}
    columns = {"admitted_at": None, "submitted_at": None, "held_back_until": until, **refused}
    move(job, Phase.QUEUED, now=now, verdict=why, columns=columns)


def begin_attempt(job: Job, *, spec: dict[str, Any], now: datetime, by: User, resumes: bool = True) -> None:
    """Begin the next attempt of a job that is over: QUEUED again, with clean times. Unless it `resumes`, no earlier
    checkpoint counts any more. Raises `PhaseMoved` like `move`."""
    was = job.phase
    changes: dict[str, Any] = {
        **_fresh(job, now), "spec": spec,
        "resumes_from": job.resumes_from if resumes else job.attempt + 1,
    }  # fmt: skip
    with transaction.atomic():
        if not resumes:
            JobMetric.objects.filter(job_id=job.pk).delete()  # before the job's row, as reports lock them
        over = Job.objects.filter(pk=job.pk, phase=was, attempt=job.attempt, cleaned_up_at__isnull=False)
        if not over.update(**changes):
            raise PhaseMoved(f"Job {job.pk} is no longer {was} in attempt {job.attempt}.")
        Hold.objects.filter(job_id=job.pk).delete()  # it was held while the last attempt waited
        open_attempt(job, number=changes["attempt"], spec=spec, now=now, by=by, phase_from=was)
    for name, value in changes.items():
        setattr(job, name, value)


def requeue(job: Job, why: str, *, now: datetime) -> None:
    """Begin the next attempt of a job that was preempted and has ended, at the place in the queue that it had: it
    continues from its newest checkpoint. Inside the caller's transaction. Raises `PhaseMoved` like `move`, and where it
    is to stop."""
    was, number, turn = Phase.STOPPING.value, job.attempt, job.turn_at or job.queued_at
    changes = {**_fresh(job, now), "turn_at": turn, "place_at": job.place_at or job.queued_at}
    same = Job.objects.filter(
        pk=job.pk,
        phase=was,
        attempt=number,
        wanted=Wanted.RUN.value,
        preempted_at__isnull=False,
        deleted_at__isnull=True,
    )
    if not same.update(**changes):
        raise PhaseMoved(f"Job {job.pk} is no longer {was} in attempt {number}, or is to stop.")
    last = JobAttempt.objects.select_related("begun_by").get(job_id=job.pk, number=number)
    words = {"reason": PREEMPTED, "message": why, "blame": Blame.PLATFORM.value}
    JobAttempt.objects.filter(pk=last.pk).update(phase=Phase.STOPPED.value, decided_at=now, cleaned_up_at=now, **words)
    open_attempt(
        job, number=number + 1, spec=last.spec, now=now, by=last.begun_by, phase_from=was, event="job.preempted",
        reason=PREEMPTED, message=why,
    )  # fmt: skip
    for name, value in changes.items():
        setattr(job, name, value)


def _fresh(job: Job, now: datetime) -> dict[str, Any]:
    """The columns of an attempt that begins in the queue."""
    return {
        "attempt": job.attempt + 1, "phase": Phase.QUEUED.value, "wanted": Wanted.RUN.value,
        "reason": "", "message": "", "remedy": "", "waiting": {}, "position": None, "progress": {}, "progress_at": None,
        "steps_per_second": None, "waiting_digest": "", "queued_at": now, "turn_at": None, "place_at": None,
        "admitted_at": None, "started_at": None, "stop_sent_at": None, "preempted_at": None, "decided_at": None,
        "released_at": None, "cleaned_up_at": None, "setbacks": 0, "next_look_at": now, "submitted_at": None,
        "failing_since": None, "returns": 0, "held_back_until": None, "refusals": 0, "refused_at": None,
        "hindered_since": None,
    }  # fmt: skip


def open_attempt(
    job: Job, *, number: int, spec: dict[str, Any], now: datetime, by: User | None, phase_from: str = "",
    event: str = "job.launched", **words: str,
) -> None:  # fmt: skip
    """Write the rows that begin an attempt. Inside the caller's transaction."""
    JobAttempt.objects.create(job=job, number=number, begun_by=by, spec=spec, queued_at=now)
    facts = {"by": by.username} if by is not None and not words else {}
    JobEvent.objects.create(
        job=job,
        at=now,
        attempt=number,
        kind="phase",
        phase_from=phase_from,
        phase_to=Phase.QUEUED.value,
        facts=facts,
        reason=words.get("reason", ""),
    )
    _tell(job, event, now, number, Phase.QUEUED, **words)
    job_changed(job)


def _tell(job: Job, event: str, now: datetime, attempt: int, phase: Phase, **words: str) -> None:
    about = {"name": job.name, "owner": str(job.owner_id), "attempt": attempt, "phase": phase.value, **words}
    happened(event, job.pk, job.namespace_id, "job", now, **about)


def _words(to: Phase, verdict: Verdict | None) -> dict[str, str]:
    if verdict is None:
        return {"reason": "Stopped" if to is Phase.STOPPED else "", "message": "", "remedy": ""}
    return {"reason": verdict.reason, "message": verdict.message, "remedy": verdict.remedy}


def changes_of_verdict(verdict: Verdict | None) -> dict[str, Any]:
    """A verdict as columns of `JobAttempt`."""
    if verdict is None:
        return {}
    return {
        "reason": verdict.reason, "message": verdict.message, "remedy": verdict.remedy, "blame": verdict.blame.value,
        "role": "" if verdict.role is None else verdict.role.value, "index": verdict.index,
        "exit_code": verdict.exit_code,
    }  # fmt: skip

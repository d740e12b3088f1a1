"""What a task says of itself: its latest state, its progress, its curves. Cheap: a handful of statements per report."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q

from apps.dispatch.messages import RECONCILE, enqueue
from apps.errors import NotFound
from apps.jobs.models import Job, JobEvent, TaskFact
from apps.jobs.shells import HELD, RUNNING, shells_waiting, waits_for_runner
from apps.jobs.state import curves
from apps.jobs.state.metrics import metrics_take
from apps.jobs.state.nudges import job_changed
from apps.jobs.state.task_auth import TaskIdentity
from apps.stores import log_store
from yardmaster.job.metrics import steps_per_second
from yardmaster.job.programs import PREPARE
from yardmaster.job.spec import Role, Strategy
from yardmaster.lifecycle.failures import task_name
from yardmaster.lifecycle.phases import Phase, Wanted
from yardmaster.logs.followed import is_followed
from yardmaster.usage import Sample, is_due, with_sample

AT_MOST_EVERY = timedelta(seconds=1)
_OF_THE_RUNNER = ("restart", "exit_code", "reason", "message", "held_until", "stalled", "executors")


def report_take(identity: TaskIdentity, report: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Keep a report; what the portal wants of the task: that it stops, that it opens terminals, or that it is held open
    no longer. One of an old attempt, or of an earlier start of the task, changes nothing. Raises a 404 problem for a
    task that the job does not have."""
    jobs = Job.objects.filter(pk=identity.job_id).annotate(has_shells_waiting=waits_for_runner(now))
    job = jobs.defer("message", "remedy", "waiting", "spec").first()
    if job is None or job.attempt != identity.attempt:
        return {"stop": True, "watched": False, "followed": False, "shells": [], "release": False, "stacks": 0}
    if report["index"] >= job.replicas.get(report["role"], 0):
        raise NotFound(f"The job has no task {report['role']}-{report['index']}.")  # each would be a row for ever
    fact, is_new = TaskFact.objects.get_or_create(
        job=job, attempt=job.attempt, role=report["role"], index=report["index"]
    )
    is_current = is_new or report["restart"] >= fact.reported.get("restart", 0)
    if is_current:
        with transaction.atomic():
            _keep(fact, report, now, curves.points_add(job, fact, report.get("scalars") or ()))
            metrics_take(job, report.get("scalars") or ())
            _show_progress(job, report, now)
        if report["state"] == "ended":
            enqueue(RECONCILE, job.pk)
        if report["state"] == HELD and fact.state != HELD:
            _tell_held(job, report, now)
    opens = job.has_shells_waiting and is_current and report["state"] in (RUNNING, HELD)
    waiting = shells_waiting(job, report["role"], report["index"], now) if opens else []
    return {
        "stop": job.wanted == Wanted.STOP.value or job.phase in _STOPPED,
        "watched": job.watched_until is not None and job.watched_until > now,
        "followed": is_followed(log_store().root, job.pk),
        "shells": waiting,
        "release": report["state"] == HELD and fact.release_of == report["restart"],
        "stacks": fact.stacks_asked,
    }


def _tell_held(job: Job, report: Mapping[str, Any], now: datetime) -> None:
    until = datetime.fromtimestamp(report.get("held_until") or now.timestamp(), UTC)
    name = task_name(Role(report["role"]), report["index"])
    message = f"{name} failed (exit code {report.get('exit_code')}) and is held open until {until:%H:%M} UTC."
    facts = {"role": report["role"], "index": report["index"]}
    JobEvent.objects.create(job=job, at=now, attempt=job.attempt, kind="task_held", message=message, facts=facts)
    job_changed(job, is_detail=True)


_STOPPED = (Phase.STOPPING.value, Phase.STOPPED.value, Phase.FAILED.value)


def _keep(fact: TaskFact, report: Mapping[str, Any], now: datetime, more: Mapping[str, Any]) -> None:
    changes: dict[str, Any] = {
        **more,
        "state": report["state"],
        "reported": {name: report[name] for name in _OF_THE_RUNNER if report.get(name) is not None},
        "reported_at": now,
    }
    changes |= {name: report[name] for name in ("progress", "usage") if report.get(name)}
    if "unsaved" in report:
        changes["unsaved"] = {name: problem for name, problem in report["unsaved"].items() if problem}
    changes |= _new_samples(fact, report.get("usage") or {}, now)
    TaskFact.objects.filter(pk=fact.pk).update(**changes)


def _new_samples(fact: TaskFact, used: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """The use over time with what this report adds; nothing where it came too soon after the last."""
    samples, at = [Sample(*one) for one in fact.usage_samples], round(now.timestamp(), 1)
    if "cpu_seconds" not in used or "memory" not in used or not is_due(samples, at):
        return {}
    return {"usage_samples": with_sample(samples, Sample(at, round(used["cpu_seconds"], 2), used["memory"]))}


def _show_progress(job: Job, report: Mapping[str, Any], now: datetime) -> None:
    """The leading task's progress is the job's, and of independent tasks the sum. Written at most once a
    second; the last one always."""
    progress = report.get("progress")
    is_summed = job.strategy == Strategy.BATCH.value
    leading = (next((role for role in ("chief", "driver") if role in job.replicas), "worker"), 0)
    if not progress or (not is_summed and (report["role"], report["index"]) != leading):
        return
    rows = Job.objects.filter(pk=job.pk, attempt=job.attempt)
    if report["state"] in ("staging", "running"):
        if job.progress_at is not None and job.progress_at > now - AT_MOST_EVERY:
            return
        rows = rows.filter(Q(progress_at__isnull=True) | Q(progress_at__lte=now - AT_MOST_EVERY))
    progress = _summed(job) if is_summed else progress
    if progress == job.progress:
        return
    passed = None if job.progress_at is None else (now - job.progress_at).total_seconds()
    speed = steps_per_second(job.steps_per_second, job.progress.get("step"), progress.get("step"), passed)
    if rows.update(progress=progress, progress_at=now, steps_per_second=speed):
        job_changed(job, is_detail=True)


def _summed(job: Job) -> dict[str, Any]:
    """The sum over the tasks; without a total until all of them have said theirs."""
    facts = TaskFact.objects.filter(job=job, attempt=job.attempt).values_list("progress", flat=True)
    reported = [one for one in facts if "step" in one]
    found: dict[str, Any] = {"step": sum(one["step"] for one in reported)}
    totals = [one["total"] for one in reported if "total" in one]
    if len(totals) == sum(job.replicas.values()):
        found["total"] = sum(totals)
    if Job.objects.filter(pk=job.pk, spec__program=PREPARE).exists():
        found["unit"] = "records"
    return found

"""What beat has done for schedules: decide which times are due, and launch for them, each exactly once.

Two steps. A time is decided in one transaction under the lock of its schedule: it becomes a row, which is unique, and
the schedule moves on. A row that waits is then taken by one worker at a time and launched under a key of its own: a
worker that is killed in between, or a second one, finds the job that is there. Not here: what is due
(`yardmaster.schedules.due`).
"""

from __future__ import annotations

import logging
import uuid
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from apps.accounts.models import User
from apps.audit.services import record
from apps.dispatch.leases import claim_due
from apps.dispatch.leases import due as rows_due
from apps.dispatch.outbox import publish
from apps.errors import DomainError, words_of
from apps.jobs.models import Job
from apps.jobs.services import job_delete, job_stop
from apps.schedules.models import FROM_SCHEDULE, RunState, Schedule, ScheduleRun
from apps.schedules.services import SCHEDULE_PAUSED, owner_may, pause, plan_of
from apps.schedules.templates import origin_keep, template_launch
from yardmaster.errors import SpecRejected, YardmasterError
from yardmaster.ids import new_id
from yardmaster.lifecycle.phases import FINAL
from yardmaster.schedules.due import Overlap, Step, due, step

log = logging.getLogger(__name__)

ON_THE_WAY, AGAIN = timedelta(minutes=5), timedelta(seconds=30)
"""Far longer than a launch takes; and how often one that cannot be launched yet is looked at."""
TRIED_FOR = timedelta(hours=1)
"""How long a launch is tried while something outside does not answer."""
KEPT_RUNS, AT_ONCE = 200, 200
_FINAL = [phase.value for phase in FINAL]


def schedules_sweep(now: datetime) -> int:
    """Decide every time that is due, and launch what waits. Returns how many jobs were launched. Repeats harmlessly."""
    for schedule_id in rows_due(Schedule.objects.all(), "next_at", now).values_list("pk", flat=True)[:AT_ONCE]:
        try:
            times_decide(schedule_id, now)
        except Exception:  # one schedule's bug must not hold up the others
            log.exception("The schedule %s could not be decided", schedule_id)
    launched = 0
    for run_id in rows_due(ScheduleRun.objects.all(), "look_at", now).values_list("pk", flat=True)[:AT_ONCE]:
        try:
            launched += run_launch(run_id, now) is not None
        except Exception:
            log.exception("The run %s of a schedule could not be launched", run_id)
    return launched


def times_decide(schedule_id: uuid.UUID, now: datetime) -> ScheduleRun | None:
    """Write which time is to be launched and which were missed, and move on. Returns the row that was made to be
    launched."""
    with transaction.atomic():
        schedule = Schedule.objects.select_for_update().filter(pk=schedule_id, next_at__lte=now, paused_at=None).first()
        if schedule is None or schedule.next_at is None:
            return None
        found = due(plan_of(schedule), schedule.next_at, now)
        if found.missed and found.missed_last is not None:
            times = "time" if found.missed == 1 else "times"
            message = f"{found.missed} {times} passed while the portal was not running, or were too close together."
            _add(schedule, found.missed_last, state=RunState.MISSED, decided_at=now, code="missed", message=message)
        made = _add(schedule, found.run, look_at=now) if found.run is not None else None
        schedule.next_at = found.next_at
        schedule.save(update_fields=["next_at"])
        return made


def run_launch(run_id: uuid.UUID, now: datetime) -> Job | None:
    """Launch for this time, unless it has to wait, is skipped or refused: then that is written. None: not launched."""
    waiting = ScheduleRun.objects.filter(pk=run_id, state=RunState.WAITING)
    held = claim_due(waiting, "look_at", now, ON_THE_WAY)
    run = None if held is None else held.select_related("schedule__namespace", "schedule__template__namespace").first()
    if held is None or run is None:
        return None
    schedule = run.schedule
    if (earlier := Job.objects.filter(request_key=_key(run)).first()) is not None:
        # Its launcher was killed before it could write so, or even where the job came from.
        origin_keep(user=earlier.owner, job=earlier, template=schedule.template, values=schedule.values,
                    schedule=schedule)  # fmt: skip
        return _launched(run, earlier, now)
    if schedule.paused_at is not None:
        _end(held, RunState.SKIPPED, now, "paused", "The schedule was paused.")
        return None
    owner = schedule.owner
    if owner is None or not owner_may(schedule) or schedule.namespace.closed_at is not None:
        _pause_for_owner(held, schedule, now)
        return None
    match step(Overlap(schedule.overlap), has_running=_running(schedule).exists(), has_waiting=_is_second(run)):
        case Step.WAIT:
            held.update(look_at=now + AGAIN)
            return None
        case Step.SKIP:
            _end(held, RunState.SKIPPED, now, "still_running", "The previous job had not ended.")
            return None
        case Step.STOP_AND_LAUNCH:
            for job in _running(schedule):
                job_stop(user=owner, job=job, reason=f"the schedule {schedule.name} launches the next one")
    return _launch(run, held, owner, now)


def _launch(run: ScheduleRun, held: QuerySet[ScheduleRun], owner: User, now: datetime) -> Job | None:
    schedule = run.schedule
    try:
        job, _ = template_launch(
            user=owner, template=schedule.template, values=schedule.values, request_key=_key(run),
            schedule=schedule,
        )  # fmt: skip
    except (DomainError, SpecRejected) as error:
        _refused(held, schedule, error, now)
        return None
    except YardmasterError as error:
        if error.retryable and now - run.planned_at < TRIED_FOR:
            held.update(look_at=now + AGAIN)
            return None
        _refused(held, schedule, error, now)
        return None
    return _launched(run, job, now)


def _launched(run: ScheduleRun, job: Job, now: datetime) -> Job:
    """Write the job of this time, also where it was paused and given up while its launch was under way."""
    schedule, owner = run.schedule, job.owner
    with transaction.atomic():
        Schedule.objects.select_for_update().filter(pk=schedule.pk).first()  # before its runs, as all do
        mine = ScheduleRun.objects.filter(pk=run.pk, job=None)
        if mine.update(state=RunState.LAUNCHED, job=job, decided_at=now, look_at=None, code="", message=""):
            Schedule.objects.filter(pk=schedule.pk).update(refusals=0)
            record(owner, "schedule.launch", f"schedule:{schedule.pk}", namespace=schedule.namespace,
                   name=schedule.name, job=str(job.pk), planned_at=run.planned_at.isoformat())  # fmt: skip
    _keep(schedule, owner)
    return job


def _refused(
    held: QuerySet[ScheduleRun], schedule: Schedule, error: DomainError | YardmasterError, now: datetime
) -> None:
    """Write why, and after too many in a row pause the schedule."""
    words = words_of(error)
    most: int = settings.YARDMASTER_SCHEDULES.refusals
    with transaction.atomic():
        locked = Schedule.objects.select_for_update().get(pk=schedule.pk)
        if not held.update(state=RunState.REFUSED, decided_at=now, look_at=None, code=error.code[:64],
                           message=words[:1000]):  # fmt: skip
            return
        locked.refusals += 1
        locked.save(update_fields=["refusals"])
        record(None, "schedule.refused", f"schedule:{schedule.pk}", namespace=schedule.namespace, name=schedule.name,
               code=error.code, reason=words[:500])  # fmt: skip
        if locked.refusals >= most:
            _pause(schedule, "refused", f"{locked.refusals} launches in a row were refused. The last one: {words}")


def _pause_for_owner(held: QuerySet[ScheduleRun], schedule: Schedule, now: datetime) -> None:
    name = schedule.owner.username if schedule.owner else "Its owner"
    if schedule.namespace.closed_at is not None:
        code, reason = "namespace_closed", "The namespace is closed."
    elif schedule.owner is None:
        code, reason = "owner_gone", "Its owner was removed."
    elif not schedule.owner.is_active:
        code, reason = "owner_locked", f"The account of {name} is locked."
    else:
        code, reason = "owner_left", f"{name} may not launch jobs in {schedule.namespace.slug} any more."
    with transaction.atomic():
        Schedule.objects.select_for_update().filter(pk=schedule.pk).first()  # before its runs, as all do
        _end(held, RunState.REFUSED, now, code, reason)
        _pause(schedule, code, reason)


def _pause(schedule: Schedule, code: str, reason: str) -> None:
    if pause(schedule, None, code, reason):
        owner = str(schedule.owner_id) if schedule.owner_id else ""
        publish(SCHEDULE_PAUSED, schedule.pk, reason=reason[:500], owner=owner)


def _end(held: QuerySet[ScheduleRun], state: RunState, now: datetime, code: str, message: str) -> None:
    held.update(state=state, decided_at=now, look_at=None, code=code, message=message)


def _add(schedule: Schedule, at: datetime, **columns: Any) -> ScheduleRun | None:
    """The row of this time; None where it is there already."""
    if ScheduleRun.objects.filter(schedule=schedule, planned_at=at).exists():
        return None
    made = ScheduleRun.objects.create(id=new_id(), schedule=schedule, planned_at=at, **columns)
    old = ScheduleRun.objects.filter(schedule=schedule).exclude(state=RunState.WAITING).order_by("-pk")
    if (oldest := old.values_list("pk", flat=True)[KEPT_RUNS : KEPT_RUNS + 1].first()) is not None:
        ScheduleRun.objects.filter(schedule=schedule, pk__lte=oldest).exclude(state=RunState.WAITING).delete()
    return made


def _key(run: ScheduleRun) -> str:
    return f"{FROM_SCHEDULE}{run.pk}"


def _running(schedule: Schedule) -> QuerySet[Job]:
    """Its jobs that have not ended."""
    mine = Job.objects.filter(from_template__schedule=schedule, deleted_at__isnull=True)
    return mine.exclude(phase__in=_FINAL).select_related("namespace")


def _is_second(run: ScheduleRun) -> bool:
    """Whether an earlier time of the schedule has not been launched yet."""
    waiting = ScheduleRun.objects.filter(schedule=run.schedule_id, state=RunState.WAITING)
    return waiting.filter(planned_at__lt=run.planned_at).exists()


def _keep(schedule: Schedule, owner: User) -> None:
    """Delete its oldest ended jobs, where it keeps only so many."""
    if not schedule.keeps:
        return
    ended = Job.objects.for_lists().filter(
        from_template__schedule=schedule, deleted_at__isnull=True, phase__in=_FINAL, cleaned_up_at__isnull=False
    )
    for job in ended.select_related("namespace").order_by("-pk")[schedule.keeps : schedule.keeps + 20]:
        try:
            job_delete(user=owner, job=job)
        except DomainError as problem:
            log.warning("The schedule %s could not delete the job %s: %s", schedule.pk, job.pk, words_of(problem))

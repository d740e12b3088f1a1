"""Changes of schedules, each audited: create, change, pause, resume, run now, remove. Members of the namespace may.

A schedule launches as its owner, who created it or, where that user may no longer, resumed it. "Run now"
launches as the user who asks. Not here: what is done when a time comes (`worker`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.services import record
from apps.dispatch.outbox import happened
from apps.errors import Invalid
from apps.jobs.engines.configured import engine_chosen
from apps.jobs.models import Job
from apps.namespaces.models import Role
from apps.namespaces.selectors import may, refuse_closed, require_role
from apps.schedules.models import JobTemplate, RunState, Schedule, ScheduleRun
from apps.schedules.saving import name_checked, refuse_full, refuse_often, refuse_taken
from apps.schedules.selectors import revision_of
from apps.schedules.templates import template_launch
from yardmaster.errors import Problem, SpecRejected
from yardmaster.ids import new_id
from yardmaster.job.template_parameters import parameters_from_json, values_of
from yardmaster.schedules.cron import cron_problems
from yardmaster.schedules.due import Overlap, Plan, following

SCHEDULE_PAUSED = "schedule.paused"
"""Topic of the outbox: the portal has paused the schedule `subject`. Facts: `reason`, `owner` (id or empty)."""
LONGEST_GRACE, MOST_KEPT = 7 * 86_400, 1_000
FIRST_YEAR, LAST_YEAR = 2000, 2200
"""Of its begin and its end: clocks of time zones cannot go beyond what a date holds."""
_FIELDS = ("name", "values", "cron", "time_zone", "starts_at", "ends_at", "overlap", "grace", "keeps")


def schedule_create(*, user: User, template: JobTemplate, **said: Any) -> Schedule:
    """The new schedule of `said`: the fields of `_FIELDS`, of which `name`, `cron` and `time_zone` must be there.
    Raises `Invalid` and `SpecRejected` with what is wrong, `Conflict` where the name is taken or the namespace has as
    many as it may."""
    namespace = template.namespace
    require_role(user, namespace, Role.MEMBER)
    refuse_often(user)
    now = timezone.now()
    made = Schedule(id=new_id(), namespace=namespace, template=template, owner=user, created_by=user, created_at=now)
    for field in _FIELDS:
        if field in said:
            setattr(made, field, said[field])
    _check(made, now)
    with transaction.atomic():
        refuse_full(namespace, Schedule, "schedule", made.name, settings.YARDMASTER_SCHEDULES.schedules)
        made.next_at = next_of(made, now)
        made.save(force_insert=True)
        record(user, "schedule.create", _subject(made), namespace=namespace, **_facts(made))
    return made


def schedule_change(*, user: User, schedule: Schedule, **said: Any) -> Schedule:
    """Change the fields that are given. Times from now on are those of the new plan. Raises as `schedule_create`,
    and `Forbidden` where another is its owner and the user may not launch on its engine."""
    require_role(user, schedule.namespace, Role.MEMBER)
    refuse_often(user)
    now = timezone.now()
    with transaction.atomic():
        locked = Schedule.objects.select_for_update().get(pk=schedule.pk)
        _refuse_engine(user, locked)
        before = _facts(locked)
        for field in _FIELDS:
            if field in said:
                setattr(locked, field, said[field])
        _check(locked, now)
        refuse_taken(locked.namespace, Schedule, "schedule", locked.name, but=locked.pk)
        after = _facts(locked)
        facts = {key: after[key] for key in after if after[key] != before[key]}
        if facts:
            locked.next_at = None if locked.paused_at else next_of(locked, now)
            locked.save(update_fields=[*_FIELDS, "next_at"])
            facts |= {f"{key}_before": before[key] for key in list(facts)}
            record(user, "schedule.change", _subject(locked), namespace=locked.namespace, **facts)
    schedule.refresh_from_db()
    return schedule


def schedule_pause(*, user: User, schedule: Schedule) -> Schedule:
    """Launch nothing until it is resumed. A time that waits for an earlier job is given up. May be repeated."""
    require_role(user, schedule.namespace, Role.MEMBER)
    pause(schedule, user, "", f"{user.username} paused it.")
    schedule.refresh_from_db()
    return schedule


def pause(schedule: Schedule, user: User | None, code: str, reason: str) -> bool:
    """Pause it, for a person or for the portal itself. False: it was paused already."""
    now = timezone.now()
    with transaction.atomic():
        locked = Schedule.objects.select_for_update().filter(pk=schedule.pk, paused_at=None).first()
        if locked is None:
            return False
        locked.paused_at, locked.pause_code, locked.pause_reason, locked.next_at = now, code, reason[:500], None
        locked.save(update_fields=["paused_at", "pause_code", "pause_reason", "next_at"])
        waiting = ScheduleRun.objects.filter(schedule=locked, state=RunState.WAITING, is_asked_for=False)
        waiting.update(
            state=RunState.SKIPPED, code="paused", message="The schedule was paused.", decided_at=now, look_at=None
        )
        facts = {"name": locked.name, "paused": True, "paused_before": False, "reason": reason}
        record(user, "schedule.pause", _subject(locked), namespace=locked.namespace, **facts)
        owner = str(locked.owner_id) if locked.owner_id else None
        happened("schedule.paused", locked.pk, locked.namespace_id, "schedule", now, name=locked.name, owner=owner,
                 by=user.username if user else None, message=reason[:500])  # fmt: skip
    return True


def schedule_resume(*, user: User, schedule: Schedule) -> Schedule:
    """Launch again, from the next time on; what passed meanwhile is not made up for. Where its owner may not launch
    any more, the user who resumes it becomes the owner. May be repeated. Raises `Forbidden` as `schedule_change`."""
    require_role(user, schedule.namespace, Role.MEMBER)
    refuse_closed(schedule.namespace)
    with transaction.atomic():
        locked = Schedule.objects.select_for_update().get(pk=schedule.pk)
        if locked.paused_at is not None:
            _refuse_engine(user, locked)
            facts: dict[str, Any] = {"paused": False, "paused_before": True}
            if not owner_may(locked):
                facts |= {"owner": user.username, "owner_before": locked.owner.username if locked.owner else ""}
                locked.owner = user
            locked.paused_at, locked.pause_code, locked.pause_reason, locked.refusals = None, "", "", 0
            locked.next_at = next_of(locked, timezone.now())
            locked.save(update_fields=["owner", "paused_at", "pause_code", "pause_reason", "refusals", "next_at"])
            record(user, "schedule.resume", _subject(locked), namespace=locked.namespace, name=locked.name, **facts)
    schedule.refresh_from_db()
    return schedule


def schedule_remove(*, user: User, schedule: Schedule) -> None:
    """Remove it with its history. Its jobs stay, and continue."""
    require_role(user, schedule.namespace, Role.MEMBER)
    with transaction.atomic():
        record(user, "schedule.remove", _subject(schedule), namespace=schedule.namespace, name=schedule.name)
        Schedule.objects.filter(pk=schedule.pk).delete()


def schedule_run_now(*, user: User, schedule: Schedule, request_key: str | None = None) -> Job:
    """Launch it once now as this user, whatever its earlier jobs do. Raises what a launch raises, and keeps no run of
    what was refused."""
    require_role(user, schedule.namespace, Role.MEMBER)
    refuse_often(user)
    job, _ = template_launch(
        user=user, template=schedule.template, values=schedule.values, request_key=request_key, schedule=schedule
    )
    now = timezone.now()
    with transaction.atomic():
        if not ScheduleRun.objects.filter(schedule=schedule, job=job).exists():
            ScheduleRun.objects.create(
                id=new_id(), schedule=schedule, planned_at=now, is_asked_for=True, asked_by=user, job=job,
                state=RunState.LAUNCHED, decided_at=now,
            )  # fmt: skip
            record(user, "schedule.run", _subject(schedule), namespace=schedule.namespace, name=schedule.name,
                   job=str(job.pk))  # fmt: skip
    return job


def owner_may(schedule: Schedule) -> bool:
    """Whether its owner may launch in its namespace now."""
    owner = schedule.owner
    return owner is not None and owner.is_active and may(owner, schedule.namespace, Role.MEMBER)


def plan_of(schedule: Schedule) -> Plan:
    grace = timedelta(seconds=schedule.grace)
    return Plan(schedule.cron, schedule.time_zone, schedule.starts_at, schedule.ends_at, grace)


def next_of(schedule: Schedule, now: datetime) -> datetime | None:
    """Its next time, or None."""
    return next(following(plan_of(schedule), now), None)


def next_times(plan: Plan, now: datetime, most: int = 5) -> list[datetime]:
    """Its next times, on the clock of its time zone."""
    zone, found = ZoneInfo(plan.zone), []
    for one in following(plan, now):
        found.append(one.astimezone(zone))
        if len(found) == most:
            break
    return found


def plan_problems(plan: Plan, now: datetime) -> list[Problem]:
    """What is wrong with these times."""
    problems = cron_problems(plan.cron, plan.zone, now, settings.YARDMASTER_SCHEDULES.interval)
    for field, at in (("starts_at", plan.starts_at), ("ends_at", plan.ends_at)):
        if at is not None and not FIRST_YEAR <= at.year <= LAST_YEAR:
            message = f"The date must be in the years {FIRST_YEAR} to {LAST_YEAR}."
            problems.append(Problem(field, "out_of_range", message, "Correct the date.", at.isoformat()))
    if plan.starts_at is not None and plan.ends_at is not None and plan.starts_at >= plan.ends_at:
        message = "The end must be after the start."
        problems.append(Problem("ends_at", "bad_range", message, "Choose a later end.", plan.ends_at.isoformat()))
    return problems


def _check(schedule: Schedule, now: datetime) -> None:
    """Raises `Invalid` or `SpecRejected`. What its values are for is checked against the template of now."""
    schedule.name = name_checked(schedule.name)
    schedule.cron = " ".join(schedule.cron.split())
    problems = plan_problems(plan_of(schedule), now)
    if schedule.overlap not in [one.value for one in Overlap]:
        message = "There is no such choice."
        problems.append(
            Problem("overlap", "bad_choice", message, "Use skip, queue or stop.", str(schedule.overlap)[:20])
        )
    for field, most in (("grace", LONGEST_GRACE), ("keeps", MOST_KEPT)):
        number = getattr(schedule, field)
        if not 0 <= number <= most:
            message = f"This must be a number from 0 to {most}."
            problems.append(Problem(field, "out_of_range", message, "Correct it.", str(number)[:20]))
    if not isinstance(schedule.values, Mapping):
        message = "Values must be an object."
        problems.append(Problem("values", "wrong_type", message, 'Send for example {"lr": 0.1}.'))
    if problems:
        raise Invalid(problems)
    try:
        parameters = parameters_from_json(revision_of(schedule.template).parameters)
        filled = values_of(parameters, schedule.values)
    except SpecRejected as error:
        raise Invalid(error.problems) from error
    schedule.values = {name: filled[name] for name in filled if schedule.values.get(name) is not None}


def _refuse_engine(user: User, schedule: Schedule) -> None:
    """Who changes what is launched with the rights of another could launch it too: an engine that isolates no user
    from another is for few. Raises `Forbidden` and `SpecRejected`."""
    if user.pk != schedule.owner_id:
        engine_chosen(user, revision_of(schedule.template).engine or None)


def _subject(schedule: Schedule) -> str:
    return f"schedule:{schedule.pk}"


def _facts(schedule: Schedule) -> dict[str, Any]:
    facts = {field: getattr(schedule, field) for field in _FIELDS}
    for field in ("starts_at", "ends_at"):
        facts[field] = facts[field].isoformat() if facts[field] else None
    return facts

"""Limits that change from one time to another: made, cancelled, and put into force when their time comes.

Nothing that runs is stopped, at the start or at the end. Which limits are in force is decided in
`yardmaster.queueing.scheduled_limits`; readers find them in the quota itself (`apps.namespaces.quota_limits`). May be
repeated: a worker that dies leaves the rest to the next one. Not here: who may do this (the views).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.accounts.models import User
from apps.administration.quota_bulk import (
    Changes,
    Defaults,
    changes_of,
    check_selected,
    checked_reason,
    locked_quotas,
    write_quotas,
)
from apps.audit.services import record
from apps.errors import Conflict, Invalid, NotFound
from apps.jobs.services import quotas_changed
from apps.namespaces.models import Namespace, Quota, ScheduledQuota
from apps.namespaces.quota_limits import limits_in_force, open_schedules, usual_limits, usual_put
from apps.namespaces.quota_models import LONGEST_REASON
from apps.namespaces.services import engine_namespaces_changed
from yardmaster.errors import Problem

MOST_OPEN = 20
"""Changes of a namespace that are to come or in force."""
SLACK = timedelta(minutes=5)
"""A start that is past by no more than this is now: a form takes a while to fill in."""
FARTHEST = timedelta(days=2 * 366)
_AT_ONCE = 200
"""Namespaces that one step of the sweep changes."""


def schedules_create(
    *, namespace_ids: Sequence[UUID], changes: Changes | Defaults, starts: datetime | None, ends: datetime,
    reason: str, actor: User, seen: str = "",
) -> list[ScheduledQuota]:  # fmt: skip
    """Have these limits hold from `starts` (None: now) to `ends`, in all of these namespaces or in none.

    Raises `Invalid` naming `starts` or `ends` where the times will not do, or a namespace has too many; `Conflict` as
    `quotas_change` does.
    """
    check_selected(namespace_ids, changes)
    reason, now = checked_reason(reason), timezone.now()
    starts = times_check(starts, ends, now)
    with transaction.atomic():
        quotas = locked_quotas(namespace_ids, seen)
        _refuse_too_many(quotas)
        made = [
            ScheduledQuota(
                namespace_id=one.pk, limits=changes_of(one, changes), starts_at=starts, ends_at=ends, reason=reason,
                made_at=now, made_by=actor,
            )
            for one in quotas
        ]  # fmt: skip
        ScheduledQuota.objects.bulk_create(made)
        for quota, one in zip(quotas, made, strict=True):
            usual = usual_limits(quota)
            facts = {"limits": one.limits, "usual": {name: usual.get(name) for name in one.limits}, **_times(one)}
            record(actor, "quota.schedule", _subject(quota), namespace=quota.namespace, reason=reason, **facts)
        if starts <= now:
            _settle(quotas, now)
    return made


def times_check(starts: datetime | None, ends: datetime, now: datetime) -> datetime:
    """The start. Raises `Invalid` where it is past, or the end is not after it or too far."""
    begin = now if starts is None else starts
    if begin < now - SLACK:
        raise _invalid(
            "starts", "past", "The start is in the past.", "Leave it empty to begin now, or enter a later time.", begin
        )
    begin = max(begin, now)
    if ends <= now:
        raise _invalid("ends", "past", "The end is in the past.", "Enter a later time.", ends)
    if ends <= begin:
        raise _invalid("ends", "before_start", "The end is not after the start.", "Enter a time after the start.", ends)
    if ends > now + FARTHEST:
        raise _invalid(
            "ends", "too_far", "The end is more than two years from now.", "Change the limits instead.", ends
        )
    return begin


def schedule_cancel(*, scheduled: ScheduledQuota, actor: User) -> ScheduledQuota:
    """Have it hold no longer, or never. Cancelled or over already: 409."""
    now = timezone.now()
    with transaction.atomic():
        quotas = _locked([scheduled.namespace_id])
        row = ScheduledQuota.objects.select_for_update().select_related("namespace").get(pk=scheduled.pk)
        if row.over_at is not None:
            raise Conflict("This change is over already.", "schedule_over", remedy="Reload the page.")
        row.over_at, row.cancelled = now, True
        row.save(update_fields=["over_at", "cancelled"])
        facts = {"limits": row.limits, "begun": row.begun_at is not None, **_times(row)}
        record(actor, "quota.schedule_cancel", f"namespace:{row.namespace_id}", namespace=row.namespace, **facts)
        if row.begun_at is not None or row.starts_at <= now:  # also what no sweep has noted may be in force
            _settle(quotas, now, reason=f"A scheduled change was cancelled: {row.reason}", actor=actor)
    return row


def schedules_open(namespace: Namespace | None = None) -> QuerySet[ScheduledQuota]:
    """Those to come or in force: of a namespace, or of all; the newest first."""
    found = ScheduledQuota.objects.filter(over_at=None).select_related("namespace", "made_by").order_by("-pk")
    return found.filter(namespace=namespace) if namespace else found


def schedule_for(schedule_id: UUID) -> ScheduledQuota:
    """Raises NotFound."""
    found = ScheduledQuota.objects.filter(pk=schedule_id).select_related("namespace", "made_by").first()
    if found is None:
        raise NotFound("There is no such scheduled change.")
    return found


def quota_schedules_sweep(now: datetime) -> int:
    """Put into force what begins, and take back what ends, of some namespaces at a time. Returns of how many."""
    due = Q(begun_at=None, starts_at__lte=now) | Q(ends_at__lte=now)
    rows = ScheduledQuota.objects.filter(due, over_at=None).order_by("starts_at").values_list("namespace_id", flat=True)
    ids = list(dict.fromkeys(rows[:_AT_ONCE]))
    if ids:
        with transaction.atomic():
            _settle(_locked(ids), now)
    return len(ids)


def _locked(namespace_ids: Sequence[UUID]) -> list[Quota]:
    """Also of closed namespaces, which may be opened again."""
    locked = Quota.objects.select_for_update(of=("self",)).select_related("namespace")
    return list(locked.filter(pk__in=namespace_ids).order_by("pk"))


def _settle(quotas: list[Quota], now: datetime, *, reason: str = "", actor: User | None = None) -> None:
    """Put into these quotas, which are locked, what is in force now, and write down what has begun and ended."""
    scheduled = open_schedules(one.pk for one in quotas)
    changed = []
    for quota in quotas:
        mine = scheduled.get(quota.pk, [])
        before, kept = limits_in_force(quota), dict(quota.usual)
        usual_put(quota, usual_limits(quota), mine, now)
        why = _note(quota, mine, before, now) or reason
        if (limits_in_force(quota), quota.usual) != (before, kept):
            quota._change_reason = why[:LONGEST_REASON]  # type: ignore[attr-defined]  # django-simple-history reads it
            changed.append(quota)
        engine_namespaces_changed(quota.pk, now)
    write_quotas(changed, reason or "Scheduled change", actor)
    quotas_changed()


def _note(quota: Quota, mine: Sequence[ScheduledQuota], before: Mapping[str, Any], now: datetime) -> str:
    """Write down which of these begin and end now. Returns why, for the history of the quota."""
    after, why = limits_in_force(quota), ""
    for one in mine:
        begins = one.begun_at is None and one.starts_at <= now < one.ends_at
        ends = one.ends_at <= now
        if not begins and not ends:
            continue
        facts = {
            "before": {name: before.get(name) for name in one.limits},
            "after": {name: after.get(name) for name in one.limits},
            "reason": one.reason, **_times(one),
        }  # fmt: skip
        action = "quota.schedule_end" if ends else "quota.schedule_begin"
        record(None, action, _subject(quota), namespace=quota.namespace, **facts)
        one.begun_at, one.over_at = (now if begins else one.begun_at), (now if ends else None)
        one.save(update_fields=["begun_at", "over_at"])
        why = (
            f"A scheduled change ended: {one.reason}"
            if ends
            else f"Until {one.ends_at:%a %-d %b %H:%M} UTC: {one.reason}"
        )
    return why


def _refuse_too_many(quotas: Sequence[Quota]) -> None:
    counts: dict[uuid.UUID, int] = {pk: len(rows) for pk, rows in open_schedules(one.pk for one in quotas).items()}
    for quota in quotas:
        if counts.get(quota.pk, 0) >= MOST_OPEN:
            message = f"{quota.namespace.slug} has {MOST_OPEN} scheduled changes, the most that it may have."
            raise Invalid([Problem("ends", "too_many", message, "Cancel some of them first.", quota.namespace.slug)])


def _invalid(field: str, code: str, message: str, remedy: str, value: datetime) -> Invalid:
    return Invalid([Problem(field, code, message, remedy, f"{value:%Y-%m-%dT%H:%M}")])


def _times(one: ScheduledQuota) -> dict[str, str]:
    return {"from": one.starts_at.isoformat(), "to": one.ends_at.isoformat()}


def _subject(quota: Quota) -> str:
    return f"namespace:{quota.pk}"

"""Writing down who did what, from where. The row joins the caller's transaction: what is rolled back was not done.

What may be done without end (failed sign-ins, reading, downloading) is one row per while, which counts: it must not
fill the database.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.core.cache import caches
from django.db import transaction
from django.db.models import F, Model
from django.utils import timezone

from apps.audit.models import AuditEvent, AuditRetention
from apps.audit.whence import address_and_agent, what_acts

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
LONGEST_NAME = 100
_DELETED_AT_ONCE = 2_000


def record(
    actor: AbstractBaseUser | None, action: str, subject: str, *, namespace: Model | None = None, **facts: Any
) -> None:
    """Add an audit event. `actor` None: the portal itself; the event then names what of it acted. `facts` must be JSON;
    never a secret. Of a change they have each value and what it was before, as `changes.changes` gives them."""
    _event(actor, action, subject, namespace.pk if namespace else None, facts).save(force_insert=True)


def download_record(actor: AbstractBaseUser, noun: str, subject_id: UUID, namespace: Model, **facts: Any) -> None:
    """That a user has downloaded this: one row per person, thing and hour."""
    _record_counted(_event(actor, f"{noun}.download", f"{noun}:{subject_id}", namespace.pk, facts), HOUR)


def reading_record(
    reader: AbstractBaseUser, noun: str, subject_id: UUID, namespace: Model, slug: str, *, unless: Callable[[], bool]
) -> None:
    """Record that an administrator has read what belongs to a namespace of others: one row per administrator, thing and
    hour. Within the hour this process asks nothing more, neither the database nor `unless`, which says whether there is
    nothing to record."""
    event = _event(reader, "administrator.read", f"{noun}:{subject_id}", namespace.pk, {"namespace": slug})
    event.repeat_key = _key(event, HOUR, with_address=False)
    noted = caches["browsers"]
    if noted.get(event.repeat_key) is not None:
        return
    if not unless():
        AuditEvent.objects.bulk_create([event], ignore_conflicts=True)
    key = event.repeat_key
    transaction.on_commit(lambda: noted.set(key, True, timeout=HOUR.total_seconds()))


def sign_in_failure_record(name: str, known: AbstractBaseUser | None) -> None:
    """That an attempt to sign in with this name has failed; `known` is the user whom it means, if any. One row per
    name, address and minute, and no more rows in an hour than the settings allow. What comes on top is counted in one
    row per account that the name means, with the address of the first, and in one row without a name for all others."""
    shown = "".join(one for one in name if one.isprintable())[:LONGEST_NAME]
    event = _event(None, "session.fail", f"user:{known.pk}" if known else "user", None, {"name": shown})
    event.repeat_key = _key(event, MINUTE)
    if _counted(event):
        return
    recent = AuditEvent.objects.filter(at__gte=_begin(HOUR), action=event.action)
    if recent.count() >= settings.YARDMASTER_AUDIT_FAILURES_PER_HOUR:
        event.facts = {"others": True, "name": known.get_username()} if known else {"others": True}
        if known is None:
            event.address, event.agent = None, ""
        event.repeat_key = _key(event, HOUR, with_address=False)
    _insert_or_count(event)


def password_failure_record(user: AbstractBaseUser) -> None:
    """That a user who is signed in has given a wrong present password: one row per user, address and hour."""
    _record_counted(_event(user, "password.fail", f"user:{user.pk}", None, {}), HOUR)


def second_factor_failure_record(user: AbstractBaseUser) -> None:
    """That a wrong code of a second factor was given for this user: one row per user, address and hour."""
    _record_counted(_event(None, "second_factor.fail", f"user:{user.pk}", None, {"name": user.get_username()}), HOUR)


def openid_failure_record(provider_id: str, reason: str, user: AbstractBaseUser | None = None) -> None:
    """That a user of an OpenID provider was not let in, or did not confirm, and why: one row per provider, reason,
    address and hour. `user`: who is signed in here, if any."""
    _record_counted(_event(user, "openid.refuse", f"provider:{provider_id}", None, {"reason": reason[:200]}), HOUR)


def events_clean(now: datetime) -> int:
    """Forget events that are older than the settings keep them. Returns how many."""
    kept: timedelta = settings.YARDMASTER_AUDIT_KEPT
    if not kept:
        return 0
    total = 0
    while True:
        deleted = _events_delete(now - kept)
        total += deleted
        if deleted < _DELETED_AT_ONCE:
            return total


def _events_delete(before: datetime) -> int:
    """Some of the events before this time; how many. Nothing else may delete any: the database sees to it."""
    with transaction.atomic():
        AuditRetention.objects.update_or_create(pk=1, defaults={"until": before})
        old = AuditEvent.objects.filter(at__lt=before).values_list("pk", flat=True)[:_DELETED_AT_ONCE]
        deleted, _ = AuditEvent.objects.filter(pk__in=list(old)).delete()
        AuditRetention.objects.filter(pk=1).update(until=None)
    return deleted


def _event(
    actor: AbstractBaseUser | None, action: str, subject: str, namespace_id: UUID | None, facts: dict[str, Any]
) -> AuditEvent:
    address, agent = address_and_agent()
    if maker := getattr(actor, "service_made_by", ""):  # a program did it: who had it made answers for it
        facts = {"account_made_by": maker, **facts}
    if actor is None and (acting := what_acts()):
        facts = {**facts, "acted": acting}
    return AuditEvent(
        actor_id=actor.pk if actor is not None else None,
        actor_name=actor.get_username() if actor is not None else "",
        action=action,
        subject=subject,
        namespace_id=namespace_id,
        facts=facts,
        address=address,
        agent=agent,
    )


def _record_counted(event: AuditEvent, per: timedelta) -> None:
    event.repeat_key = _key(event, per)
    if not _counted(event):
        _insert_or_count(event)


def _counted(event: AuditEvent) -> bool:
    return bool(AuditEvent.objects.filter(repeat_key=event.repeat_key).update(count=F("count") + 1))


def _insert_or_count(event: AuditEvent) -> None:
    """One of several that do it at once inserts the row, the others count."""
    AuditEvent.objects.bulk_create([event], ignore_conflicts=True)
    if not AuditEvent.objects.filter(pk=event.pk).exists():
        _counted(event)


def _key(event: AuditEvent, per: timedelta, *, with_address: bool = True) -> str:
    who = (
        event.actor_id,
        event.action,
        event.subject,
        event.facts.get("name", "").casefold(),
        event.facts.get("reason", ""),
    )
    where = event.address if with_address else None
    return hashlib.sha256(repr((*who, where, _begin(per))).encode()).hexdigest()


def _begin(per: timedelta) -> datetime:
    """When the present minute or hour began."""
    now = timezone.now().replace(second=0, microsecond=0)
    return now.replace(minute=0) if per == HOUR else now

"""The notice to all: setting it, removing it, who is shown it, and its mails.

A page asks for it from the process's own memory, for some seconds at a time; a page that finds nothing there asks the
database once. A change shows at once in the process that made it, and in the others within `KEPT` seconds. Not here:
how it looks (`templatetags.notice_tags`), and sending mails (`worker`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.services import record
from apps.dispatch.messages import SEND_ANNOUNCEMENT, enqueue
from apps.errors import Invalid, NotFound
from apps.notifications.letter import one_line
from apps.notifications.models import Announcement, Broadcast, HiddenBroadcast
from yardmaster.errors import Problem
from yardmaster.ids import new_id

KEPT = 10
"""Seconds."""
LONGEST = 500
MAILS_AT_ONCE = 50
"""Written by each sweep, so that the mail server is not flooded."""
_KEY = "broadcast"


@dataclass(frozen=True)
class BroadcastFacts:
    """What is said of it. `begins_at` None: now."""

    text: str
    kind: str = Broadcast.Kind.INFORMATION.value
    begins_at: datetime | None = None
    ends_at: datetime | None = None
    on_sign_in: bool = False
    by_mail: bool = False


def broadcast_now() -> Broadcast | None:
    """The one there is, whether its time has come or not. One statement."""
    return Broadcast.objects.select_related("by").first()


def broadcast_set(facts: BroadcastFacts, *, actor: User) -> Broadcast:
    """Tell it everyone, in the place of the one before. Raises `Invalid` for an empty or a long text, and for times in
    the wrong order."""
    now = timezone.now()
    text, begins_at = facts.text.strip(), facts.begins_at or now
    _check(text, facts, begins_at, now)
    with transaction.atomic():
        before = Broadcast.objects.first()
        Broadcast.objects.all().delete()
        made = Broadcast.objects.create(
            id=new_id(), text=text, kind=Broadcast.Kind(facts.kind), begins_at=begins_at, ends_at=facts.ends_at,
            on_sign_in=facts.on_sign_in, by_mail=facts.by_mail, by=actor, at=now,
        )  # fmt: skip
        earlier = _before(before) or {"text_before": ""}
        record(actor, "notice.set", f"notice:{made.pk}", **_said(made), **earlier)
        transaction.on_commit(_forget)
    return made


def broadcast_remove(*, actor: User) -> bool:
    """Remove it. False: there was none. May be repeated."""
    with transaction.atomic():
        before = Broadcast.objects.first()
        if before is None:
            return False
        Broadcast.objects.all().delete()
        record(actor, "notice.remove", f"notice:{before.pk}", **_before(before))
        transaction.on_commit(_forget)
    return True


def broadcast_hide(broadcast_id: UUID, *, user: User) -> None:
    """Show it to this user no more. May be repeated. Raises `NotFound` for one that is not there any more."""
    if not Broadcast.objects.filter(pk=broadcast_id).exists():
        raise NotFound("The notice was removed.")
    HiddenBroadcast.objects.bulk_create(
        [HiddenBroadcast(broadcast_id=broadcast_id, user=user)], ignore_conflicts=True
    )  # fmt: skip
    cache.delete(_hidden_key(broadcast_id, user.pk))


def broadcast_for(user: User | None, now: datetime) -> Broadcast | None:
    """What this user is to be shown now; `user` None: who is not signed in. One statement at most, mostly none."""
    kept = cache.get(_KEY)
    if kept is None:
        rows = Broadcast.objects.all()
        if user is not None:
            seen = HiddenBroadcast.objects.filter(broadcast=OuterRef("pk"), user=user)
            rows = rows.annotate(is_hidden=Exists(seen))
        kept = list(rows[:1])
        cache.set(_KEY, kept, KEPT)
        if kept and user is not None:
            cache.set(_hidden_key(kept[0].pk, user.pk), kept[0].is_hidden, KEPT)
    found: Broadcast | None = kept[0] if kept else None
    if found is None or not found.is_current(now):
        return None
    if user is None:
        return found if found.on_sign_in else None
    return None if _is_hidden(found, user) else found


def _is_hidden(broadcast: Broadcast, user: User) -> bool:
    key = _hidden_key(broadcast.pk, user.pk)
    found: bool | None = cache.get(key)
    if found is None:
        found = HiddenBroadcast.objects.filter(broadcast=broadcast, user=user).exists()
        cache.set(key, found, KEPT)
    return found


def broadcast_mail(now: datetime) -> int:
    """Write the mails of the next few users, where the notice is to be mailed and its time has come. Returns how many.
    May be repeated, and by several workers: each user has one."""
    with transaction.atomic():
        one = Broadcast.objects.select_for_update().filter(by_mail=True, mailed_at=None, begins_at__lte=now).first()
        if one is None or not one.is_current(now):
            return 0
        users = User.objects.filter(is_active=True, is_service=False).exclude(email="").order_by("pk")
        if one.mailed_upto is not None:
            users = users.filter(pk__gt=one.mailed_upto)
        found = list(users[:MAILS_AT_ONCE])
        mails = [_mail(one, user, now) for user in found]
        Announcement.objects.bulk_create(mails, ignore_conflicts=True)
        for mail in mails:
            enqueue(SEND_ANNOUNCEMENT, mail.pk)
        upto = found[-1].pk if found else one.mailed_upto
        done = now if len(found) < MAILS_AT_ONCE else None
        Broadcast.objects.filter(pk=one.pk).update(mailed_upto=upto, mailed_at=done)
    return len(mails)


def _mail(one: Broadcast, user: User, now: datetime) -> Announcement:
    until = f"\n\nUntil {one.ends_at:%Y-%m-%d %H:%M} UTC." if one.ends_at else ""
    body = (
        f"{one.text}{until}\n\n{settings.PUBLIC_URL}/\n\n"
        "-- \nAn administrator of this portal sends this notice to all of its users.\n"
    )
    subject = f"[Yardmaster] {one.get_kind_display()}: {one_line(one.text, 80)}"
    return Announcement(
        id=new_id(), user=user, key=f"notice {one.pk}", subject=subject, body=body, created_at=now, due_at=now
    )


def _check(text: str, facts: BroadcastFacts, begins_at: datetime, now: datetime) -> None:
    problems = []
    if not text or len(text) > LONGEST:
        message = f"The text is 1 to {LONGEST} characters long."
        problems.append(Problem("text", "bad_length", message, "Shorten it, and link to more.", str(len(text))))
    if facts.kind not in Broadcast.Kind.values:
        message = "There is no such kind."
        problems.append(Problem("kind", "bad_value", message, "Use information or warning.", facts.kind))
    if facts.ends_at is not None and facts.ends_at <= max(begins_at, now):
        message = "The notice would end before it is shown."
        remedy = "Choose an end after the start and after now, or none."
        problems.append(Problem("ends_at", "out_of_range", message, remedy, facts.ends_at.isoformat()))
    if problems:
        raise Invalid(problems)


def _said(one: Broadcast) -> dict[str, Any]:
    return {
        "text": one.text, "kind": str(one.kind), "begins_at": one.begins_at.isoformat(),
        "ends_at": one.ends_at and one.ends_at.isoformat(), "on_sign_in": one.on_sign_in, "by_mail": one.by_mail,
    }  # fmt: skip


def _before(one: Broadcast | None) -> dict[str, Any]:
    return {f"{name}_before": value for name, value in _said(one).items()} if one is not None else {}


def _hidden_key(broadcast_id: UUID, user_id: UUID) -> str:
    return f"broadcast-hidden:{broadcast_id}:{user_id}"


def _forget() -> None:
    cache.delete(_KEY)

"""Telling one person of one event: by which way and when, and the rows that hand it on.

What is told at once goes to the person's own address (a chat or a webhook) or is a mail; the rest waits as a `Note`
for its digest (`digests`).
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from apps.accounts.models import User
from apps.dispatch.messages import SEND_ANNOUNCEMENT, enqueue
from apps.namespaces.models import Namespace
from apps.namespaces.selectors import namespaces_visible
from apps.notifications.choosing import KIND_OF, all_choices_of, reader_of
from apps.notifications.models import Announcement, Note, Notice
from apps.webhooks.fanout import delivery_add
from apps.webhooks.models import Webhook
from yardmaster.ids import new_id
from yardmaster.outgoing.events import VERSION
from yardmaster.outgoing.notices import HOUR, Telling, Way, telling

LONGEST_TITLE = 300
WITHOUT_ACCESS = frozenset({"schedule.paused", "member.removed"})
"""Kinds that also those are told of who may no longer see the namespace."""
_EVENT_OF = {kind: event for event, kind in KIND_OF.items()}


def how_notified(user: User, kind: str, namespace: Namespace | None, now: datetime) -> Telling | None:
    """How this person is told of an event of this kind now; None: not at all. Of a namespace that they may no longer
    see they are told nothing, but what `WITHOUT_ACCESS` names."""
    if namespace is not None and kind not in WITHOUT_ACCESS and not _may_see(user, namespace):
        return None
    choices = all_choices_of(user)
    recent = Note.objects.filter(user=user, kind=kind, created_at__gt=now - HOUR).count()
    if kind in _EVENT_OF:
        mails = Notice.objects.filter(user=user, event=_EVENT_OF[kind], sent_by="")
        recent += mails.filter(created_at__gt=now - HOUR).count()
    else:
        mails_at_once = Announcement.objects.filter(user=user, key__startswith=f"{kind} ")
        recent += mails_at_once.filter(created_at__gt=now - HOUR).count()
    return telling(choices.of(kind, namespace), reader_of(user, choices.mail), recent, now)


def _may_see(user: User, namespace: Namespace) -> bool:
    return namespaces_visible(user).filter(pk=namespace.pk).exists()


def note_write(user: User, how: Telling, note: Note, now: datetime) -> None:
    """Keep the note for its digest, or send it to the person's chat or webhook. In a transaction; may be repeated."""
    note.id, note.user, note.way, note.created_at, note.due_at = new_id(), user, how.way.value, now, how.due
    Note.objects.bulk_create([note], ignore_conflicts=True)
    if how.due is None:
        chat_tell(user, note.body, key=note.key)


def chat_tell(user: User, body: dict[str, Any], *, key: str) -> bool:
    """Have it sent to the person's chat or webhook, once for each key. False: they have none that is switched on."""
    webhook = Webhook.objects.filter(user=user, is_active=True).defer("sealed").first()
    if webhook is not None:
        delivery_add(webhook, str(body["event"]), body, key=key)
    return webhook is not None


def announce(
    user: User, kind: str, namespace: Namespace | None, *, key: str, subject: str, text: str, url: str, now: datetime
) -> None:
    """Tell this person, once for each key, which begins with the kind, as they have chosen: the mail has `subject` and
    `text`, a chat, a webhook and a digest have the subject and the address where they read on."""
    if not user.is_active:
        return
    how = how_notified(user, kind, namespace, now)
    if how is None:
        return
    with transaction.atomic():
        if how.way is Way.MAIL and how.due is None:
            mail_write(user, key=key, subject=f"[Yardmaster] {subject}", text=text, now=now, kinds=[kind])
            return
        of = None if namespace is None else {"id": str(namespace.pk), "name": namespace.slug}
        body = {
            "version": VERSION, "id": str(new_id()), "event": kind, "at": now.isoformat(), "namespace": of,
            "title": subject[:LONGEST_TITLE], "url": url,
        }  # fmt: skip
        note_write(user, how, Note(key=key, kind=kind, namespace=namespace, body=body), now)


def mail_write(
    user: User, *, key: str, subject: str, text: str, now: datetime, kinds: Collection[str] = ()
) -> None:  # fmt: skip
    """Write a mail that is sent soon, once for each key. `kinds`: those that a link in it switches off."""
    made = Announcement(
        id=new_id(), user=user, key=key[:100], kinds=",".join(kinds), subject=subject[:200], body=text, created_at=now,
        due_at=now,
    )  # fmt: skip
    Announcement.objects.bulk_create([made], ignore_conflicts=True)
    enqueue(SEND_ANNOUNCEMENT, made.pk)


def notes_forget(now: datetime) -> None:
    """Drop what was handed on long ago."""
    old = Note.objects.filter(due_at__isnull=True, created_at__lte=now - timedelta(days=30))
    Note.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:1_000])).delete()

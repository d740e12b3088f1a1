"""Digests: what waits for one person and one way becomes one mail, or one message to their own address.

In one transaction the notes are marked as handed on and the mail or message is written, which the usual workers send:
where a worker is killed in between, neither has happened, and no other does the same at once, as the user's row is
locked. Not here: when a digest is due (`yardmaster.outgoing.notices`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.urls import reverse

from apps.accounts.models import User
from apps.namespaces.selectors import namespaces_visible
from apps.notifications.letter import LONGEST_LINE, one_line
from apps.notifications.models import Note
from apps.notifications.telling import WITHOUT_ACCESS, chat_tell, mail_write, notes_forget
from yardmaster.ids import new_id
from yardmaster.outgoing.chat import headline
from yardmaster.outgoing.events import VERSION
from yardmaster.outgoing.notices import KINDS, Way

PEOPLE_AT_ONCE = 200
NOTES_AT_ONCE = 2_000
MOST_SHOWN = 100


def digests_note(now: datetime) -> int:
    """Write the digests that are due, for very many people those that are due the longest. Returns how many; may be
    repeated, also by several workers at once."""
    due = Note.objects.filter(due_at__lte=now).order_by("due_at").values_list("user_id", "way")
    people = list(dict.fromkeys(due[: PEOPLE_AT_ONCE * 10]))[:PEOPLE_AT_ONCE]
    made = sum(_digest(user_id, Way(way), now) for user_id, way in people)
    notes_forget(now)
    return made


def _digest(user_id: UUID, way: Way, now: datetime) -> bool:
    with transaction.atomic():
        user = User.objects.select_for_update(no_key=True).filter(pk=user_id).first()
        if user is None:
            return False
        mine = Note.objects.filter(user=user, way=way, due_at__lte=now).select_related("namespace")
        notes = list(mine.order_by("created_at", "pk")[:NOTES_AT_ONCE])
        Note.objects.filter(pk__in=[one.pk for one in notes]).update(due_at=None)
        notes = _readable(user, notes)
        if not notes or not user.is_active:
            return False
        key = f"digest {notes[-1].pk}"
        if way is Way.CHAT and chat_tell(user, _message(notes, now), key=key):
            return True
        if user.email:
            subject, kinds = f"[Yardmaster] {_title(notes)}", _kinds(notes)
            mail_write(user, key=key, subject=subject, text=digest_text(notes), now=now, kinds=kinds)
        return bool(user.email)


def _readable(user: User, notes: Sequence[Note]) -> list[Note]:
    """Those of namespaces that the user may still see."""
    asked = {one.namespace_id for one in notes if one.namespace_id is not None}
    visible: set[UUID | None] = set(namespaces_visible(user).filter(pk__in=asked).values_list("pk", flat=True))
    visible.add(None)
    return [one for one in notes if one.namespace_id in visible or one.kind in WITHOUT_ACCESS]


def _title(notes: Sequence[Note]) -> str:
    return "1 notification" if len(notes) == 1 else f"{len(notes)} notifications"


def _kinds(notes: Sequence[Note]) -> list[str]:
    """Those that it tells of, in the order of the settings."""
    kinds = {one.kind for one in notes}
    return [kind for kind in KINDS if kind in kinds]


def _message(notes: Sequence[Note], now: datetime) -> dict[str, object]:
    shown = [one.body for one in notes[-MOST_SHOWN:]]
    return {
        "version": VERSION, "id": str(new_id()), "event": "digest", "at": now.isoformat(), "namespace": None,
        "title": f"Yardmaster: {_title(notes)}", "items": shown, "left_out": len(notes) - len(shown),
        "url": _choices_url(),
    }  # fmt: skip


def digest_text(notes: Sequence[Note]) -> str:
    """The mail: by namespace and kind, the oldest first, each with the page where people read on."""
    ordered = sorted(notes, key=lambda one: (_place(one), list(KINDS).index(one.kind) if one.kind in KINDS else 99))
    parts, shown = [], 0
    for (place, kind), group in groupby(ordered, key=lambda one: (_place(one), one.kind)):
        mine = list(group)
        lines = [f"{place + ': ' if place else ''}{KINDS.get(kind, kind)} ({len(mine)})"]
        for one in mine[: max(0, MOST_SHOWN - shown)]:
            lines += [f"  {_line(one)}", *([f"    {url}"] if (url := _url(one)) else [])]
            shown += 1
        parts.append("\n".join(lines))
    if len(notes) > shown:
        parts.append(f"Only the first {shown} are shown.")
    parts.append(f"-- \nThis digest follows your notification settings.\nChange your notifications: {_choices_url()}\n")
    return "\n\n".join(parts)


def _place(note: Note) -> str:
    return note.namespace.slug if note.namespace else ""


def _line(note: Note) -> str:
    words = headline(note.body, lambda text: one_line(text, LONGEST_LINE))
    return f"{note.created_at:%Y-%m-%d %H:%M} UTC  {words}"


def _url(note: Note) -> str:
    about: dict[str, object] = next(
        (note.body[one] for one in ("job", "budget", "sweep", "schedule") if one in note.body), {}
    )
    return str(note.body.get("url") or about.get("url") or "")


def _choices_url() -> str:
    return f"{settings.PUBLIC_URL}{reverse('notifications_page')}"

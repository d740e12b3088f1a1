"""What people are told of, by which way and when: at once, in a digest, or not at all. Pure.

Not here: what happened (`events` and the apps), the words of a mail, and sending.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

KINDS = {
    "job.failed": "A job of mine failed",
    "job.succeeded": "A job of mine succeeded",
    "job.stopped": "A job of mine was stopped",
    "job.waiting": "A job of mine is queued for a long time",
    "job.preempted": "A job of mine was preempted",
    "session.ended": "A session or served model of mine ended",
    "sweep.ended": "A sweep of mine ended",
    "schedule.paused": "The portal paused a schedule of mine, or of a team that I manage",
    "budget.warned": "A budget that I manage has reached a warning level",
    "budget.spent": "A budget that I manage is used up",
    "quota.warned": "A namespace that I manage has used 80 % of a quota",
    "quota.full": "A namespace that I manage has used up a quota",
    "member.added": "I was added to a namespace",
    "member.changed": "My role in a namespace was changed",
    "member.removed": "I was removed from a namespace",
    "webhook.off": "A webhook of mine was switched off",
}
"""Each with its words, in the order in which people see them."""
USUALLY_OFF = frozenset({"job.succeeded", "job.stopped", "job.waiting", "session.ended"})
FLOOD = 10
"""Of one kind in an hour: further ones come as a digest, unless a person has chosen another number."""
HOUR = timedelta(hours=1)


class Way(enum.StrEnum):
    """By which way a person is told."""

    MAIL = "mail"
    CHAT = "chat"
    NONE = "none"


class Pace(enum.StrEnum):
    """When a person is told."""

    NOW = "now"
    HOURLY = "hourly"
    DAILY = "daily"


@dataclass(frozen=True)
class Choice:
    """What a person has chosen for one kind of event."""

    way: Way = Way.MAIL
    pace: Pace = Pace.NOW


@dataclass(frozen=True)
class Reader:
    """What is known of a person: whether they can be told, and how they want their digests."""

    has_mail: bool
    has_chat: bool
    daily_hour: int = 8
    """The hour of the day, in their own time zone."""
    zone: str = ""
    """Empty: UTC."""
    flood: int = FLOOD
    """Events of one kind in an hour, after which a digest is made. 0: never."""


@dataclass(frozen=True)
class Telling:
    """Tell it by this way; `due` None: at once, else in the digest of that time."""

    way: Way
    due: datetime | None


def chosen(
    kind: str, namespace: str, by_kind: Mapping[str, Choice], by_namespace: Mapping[tuple[str, str], Choice]
) -> Choice:
    """What counts for an event of this kind in this namespace: what was chosen for both, else for the kind."""
    return by_namespace.get((namespace, kind)) or by_kind.get(kind) or Choice()


def telling(choice: Choice, reader: Reader, recent: int, now: datetime) -> Telling | None:
    """How the person is told of an event that happens now. None: they are not.

    `recent`: how many of the kind they were told of, or are to be, within the last hour. A chat that is chosen and not
    set up is a mail; a person who cannot be reached by either is told nothing."""
    way = choice.way
    if way is Way.CHAT and not reader.has_chat:
        way = Way.MAIL
    if way is Way.NONE or (way is Way.MAIL and not reader.has_mail):
        return None
    pace = choice.pace
    if pace is Pace.NOW and reader.flood and recent >= reader.flood:
        pace = Pace.HOURLY
    return Telling(way, due_of(pace, reader, now))


def due_of(pace: Pace, reader: Reader, now: datetime) -> datetime | None:
    """When the next digest of this pace is made: at the next full hour, or when it is the reader's hour next."""
    if pace is Pace.NOW:
        return None
    if pace is Pace.HOURLY:
        return now.replace(minute=0, second=0, microsecond=0) + HOUR
    zone = ZoneInfo(reader.zone or "UTC")
    today = now.astimezone(zone).date()
    for day in (today, today + timedelta(days=1)):
        due = datetime.combine(day, time(reader.daily_hour), zone).astimezone(now.tzinfo)
        if due > now:
            return due
    return now + timedelta(days=1)  # a clock that was set forward over that hour

"""What an answer means, and when a message is sent again. Pure."""

from __future__ import annotations

import enum
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from yardmaster.backoff import delay

FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=30), timedelta(hours=4)
"""Before the second try, and at most between two: about 14 tries in `TRIED_FOR`."""
TRIED_FOR = timedelta(hours=24)
FIRST_REST, LONGEST_REST = timedelta(seconds=10), timedelta(minutes=10)
"""Of a receiver that failed: nothing else is sent to it either. So one that is away costs little."""


class Meaning(enum.Enum):
    DONE = "done"
    AGAIN = "again"
    GONE = "gone"


def meaning(status: int) -> Meaning:
    """2xx: the receiver has it. 410: it wants nothing more. Everything else, redirects included: try again."""
    if 200 <= status < 300:
        return Meaning.DONE
    return Meaning.GONE if status == 410 else Meaning.AGAIN


def problem_of(status: int) -> str:
    """What people read of an answer that is not a success."""
    if 300 <= status < 400:
        return f"The receiver answered {status}. Redirects are not followed: enter the address that it leads to."
    return f"The receiver answered {status}."


def next_try(created_at: datetime, tries: int, now: datetime, retry_after: str = "") -> datetime | None:
    """When to try again after so many tries; None: give up. A time that the receiver names is a minimum."""
    if now - created_at >= TRIED_FOR:
        return None
    return now + max(delay(tries - 1, FIRST_PAUSE, LONGEST_PAUSE), asked_pause(retry_after, now))


def rest_until(failures: int, took: timedelta, now: datetime, retry_after: str = "") -> datetime | None:
    """Until when nothing is sent to a receiver, after so many failures in a row. One that succeeds slowly rests for as
    long as it took, so that it has half of a worker's time at most."""
    if failures == 0:
        return now + took if took > timedelta(seconds=1) else None
    return now + max(delay(failures - 1, FIRST_REST, LONGEST_REST), asked_pause(retry_after, now))


def asked_pause(retry_after: str, now: datetime) -> timedelta:
    """What `Retry-After` asks for, as seconds or as a date; at most `LONGEST_PAUSE`, nothing where it is neither."""
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return min(LONGEST_PAUSE, timedelta(seconds=int(text[:9])))
    try:
        until = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return timedelta(0)
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(timedelta(0), min(LONGEST_PAUSE, until - now))

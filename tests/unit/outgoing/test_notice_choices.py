"""How a person is told of an event: at once, in a digest, or not at all."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from yardmaster.outgoing.notices import Choice, Pace, Reader, Telling, Way, chosen, due_of, telling

NOW = datetime(2026, 11, 27, 14, 20, 30, tzinfo=UTC)
FULL_HOUR = datetime(2026, 11, 27, 15, tzinfo=UTC)
MORNING = datetime(2026, 11, 28, 8, tzinfo=UTC)
MAIL, CHAT, NONE = Way.MAIL, Way.CHAT, Way.NONE
BOTH = Reader(has_mail=True, has_chat=True)


@pytest.mark.parametrize(
    ("choice", "reader", "recent", "expected"),
    [
        (Choice(MAIL), BOTH, 0, Telling(MAIL, None)),
        (Choice(CHAT), BOTH, 0, Telling(CHAT, None)),
        (Choice(NONE), BOTH, 0, None),
        (Choice(NONE, Pace.DAILY), BOTH, 50, None),
        (Choice(MAIL, Pace.HOURLY), BOTH, 0, Telling(MAIL, FULL_HOUR)),
        (Choice(CHAT, Pace.DAILY), BOTH, 0, Telling(CHAT, MORNING)),
        (Choice(MAIL), BOTH, 9, Telling(MAIL, None)),
        (Choice(MAIL), BOTH, 10, Telling(MAIL, FULL_HOUR)),
        (Choice(CHAT), BOTH, 11, Telling(CHAT, FULL_HOUR)),
        (Choice(MAIL, Pace.DAILY), BOTH, 99, Telling(MAIL, MORNING)),
        (Choice(MAIL), Reader(True, True, flood=0), 999, Telling(MAIL, None)),
        (Choice(CHAT), Reader(has_mail=True, has_chat=False), 0, Telling(MAIL, None)),
        (Choice(MAIL), Reader(has_mail=False, has_chat=True), 0, None),
        (Choice(CHAT), Reader(has_mail=False, has_chat=False), 0, None),
        (Choice(CHAT), Reader(has_mail=False, has_chat=True), 0, Telling(CHAT, None)),
    ],
)
def test_a_choice_and_what_was_told_lately_decide(choice, reader, recent, expected):
    assert telling(choice, reader, recent, NOW) == expected


def test_what_was_chosen_for_a_namespace_comes_before_what_was_chosen_for_the_kind():
    by_kind, special = {"job.failed": Choice(CHAT)}, {("vision", "job.failed"): Choice(NONE)}
    assert chosen("job.failed", "vision", by_kind, special) == Choice(NONE)
    assert chosen("job.failed", "other", by_kind, special) == Choice(CHAT)
    assert chosen("budget.spent", "vision", by_kind, special) == Choice()


@pytest.mark.parametrize(
    ("zone", "hour", "now", "due"),
    [
        ("", 8, NOW, MORNING),
        ("", 15, NOW, datetime(2026, 11, 27, 15, tzinfo=UTC)),
        ("Europe/Berlin", 8, NOW, datetime(2026, 11, 28, 7, tzinfo=UTC)),
        ("Asia/Tokyo", 0, NOW, datetime(2026, 11, 27, 15, tzinfo=UTC)),
        ("Europe/Berlin", 8, datetime(2026, 10, 24, 12, tzinfo=UTC), datetime(2026, 10, 25, 7, tzinfo=UTC)),
        ("", 8, MORNING, MORNING + timedelta(days=1)),
    ],
)
def test_a_daily_digest_is_made_at_the_readers_own_hour(zone, hour, now, due):
    assert due_of(Pace.DAILY, Reader(True, True, daily_hour=hour, zone=zone), now) == due

"""Which time of a schedule is run now: never a flood after a downtime, and what an earlier job changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from yardmaster.schedules.due import Overlap, Plan, Step, due, following, step
from yardmaster.schedules.easy import CUSTOM, DAILY, HOURLY, MONTHLY, WEEKLY, Easy, cron_of, easy_of, words_of

NIGHT = datetime(2026, 11, 27, 2, tzinfo=UTC)
NIGHTLY = Plan("0 2 * * *", "UTC", grace=timedelta(hours=3))
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)


def test_before_its_time_nothing_is_due():
    found = due(NIGHTLY, NIGHT, NIGHT - MINUTE)
    assert (found.run, found.missed, found.next_at) == (None, 0, NIGHT)


def test_a_time_that_has_come_runs_and_the_next_one_follows():
    found = due(NIGHTLY, NIGHT, NIGHT + MINUTE)
    assert (found.run, found.missed, found.next_at) == (NIGHT, 0, NIGHT + DAY)


def test_after_a_downtime_the_latest_runs_within_the_grace_and_the_others_are_missed():
    found = due(NIGHTLY, NIGHT, NIGHT + 3 * DAY + timedelta(hours=2))
    assert (found.run, found.missed, found.missed_last) == (NIGHT + 3 * DAY, 3, NIGHT + 2 * DAY)
    assert found.next_at == NIGHT + 4 * DAY


def test_beyond_the_grace_nothing_is_made_up_for():
    found = due(NIGHTLY, NIGHT, NIGHT + DAY + timedelta(hours=4))
    assert (found.run, found.missed, found.missed_last) == (None, 2, NIGHT + DAY)


def test_without_a_grace_a_little_late_is_in_time():
    strict = Plan("0 2 * * *", "UTC")
    assert due(strict, NIGHT, NIGHT + 4 * MINUTE).run == NIGHT
    assert due(strict, NIGHT, NIGHT + 6 * MINUTE).run is None


def test_a_year_of_five_minutes_is_one_run():
    often = Plan("*/5 * * * *", "UTC", grace=timedelta(hours=1))
    found = due(often, NIGHT, NIGHT + timedelta(days=365, minutes=7))
    assert found.run == NIGHT + timedelta(days=365, minutes=5)
    assert found.missed == 1_000, "no more are counted"
    assert found.next_at == NIGHT + timedelta(days=365, minutes=10)


def test_from_and_until_bound_the_times():
    plan = Plan("0 2 * * *", "UTC", starts_at=NIGHT + 2 * DAY, ends_at=NIGHT + 3 * DAY)
    assert list(following(plan, NIGHT)) == [NIGHT + 2 * DAY, NIGHT + 3 * DAY]
    assert due(plan, NIGHT + 3 * DAY, NIGHT + 3 * DAY).next_at is None


@pytest.mark.parametrize(
    ("overlap", "has_running", "has_waiting", "expected"),
    [(Overlap.SKIP, False, False, Step.LAUNCH), (Overlap.SKIP, True, False, Step.SKIP),
     (Overlap.SKIP, False, True, Step.SKIP), (Overlap.QUEUE, False, False, Step.LAUNCH),
     (Overlap.QUEUE, True, False, Step.WAIT), (Overlap.QUEUE, True, True, Step.SKIP),
     (Overlap.STOP, False, False, Step.LAUNCH), (Overlap.STOP, True, False, Step.STOP_AND_LAUNCH)],
)  # fmt: skip
def test_what_an_earlier_job_changes(overlap, has_running, has_waiting, expected):
    assert step(overlap, has_running=has_running, has_waiting=has_waiting) is expected


@pytest.mark.parametrize(
    ("easy", "cron", "words"),
    [(Easy(HOURLY, "00:05"), "5 * * * *", "Every hour at minute 5"),
     (Easy(DAILY, "02:30"), "30 2 * * *", "Every day at 02:30"),
     (Easy(WEEKLY, "02:00", weekday=1), "0 2 * * 1", "Every Monday at 02:00"),
     (Easy(MONTHLY, "23:59", day=31), "59 23 31 * *", "Every month on day 31 at 23:59")],
)  # fmt: skip
def test_easy_choices_are_expressions_and_back(easy, cron, words):
    assert cron_of(easy) == cron
    assert easy_of(cron) == easy
    assert words_of(cron) == words


@pytest.mark.parametrize("cron", ["*/5 * * * *", "0 2 1 * 1", "0 2 * 3 *", "0 * 1 * *", "nonsense"])
def test_everything_else_is_cron(cron):
    assert easy_of(cron).every == CUSTOM
    assert words_of(cron) == cron

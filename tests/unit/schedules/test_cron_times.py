"""Cron expressions in time zones: what is refused, and what happens where clocks are changed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.schedules.cron import cron_problems, times

BERLIN = "Europe/Berlin"
NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
SHORTEST = timedelta(minutes=5)


def local(expression: str, zone: str, after: datetime, most: int) -> list[str]:
    found = islice(times(expression, zone, after), most)
    return [f"{one.astimezone(ZoneInfo(zone)):%m-%d %H:%M %z}" for one in found]


def test_times_are_those_of_the_zone():
    assert local("30 2 * * 1-5", BERLIN, NOW, 3) == ["11-30 02:30 +0100", "12-01 02:30 +0100", "12-02 02:30 +0100"]
    assert local("0 0 1 * *", "Asia/Kolkata", NOW, 2) == ["12-01 00:00 +0530", "01-01 00:00 +0530"]


def test_a_time_that_does_not_exist_runs_once_after_the_gap():
    eve = datetime(2027, 3, 27, 12, tzinfo=UTC)  # on the 28th clocks go from 02:00 to 03:00
    assert local("30 2 * * *", BERLIN, eve, 2) == ["03-28 03:00 +0200", "03-29 02:30 +0200"]
    assert local("0,30 2 * * *", BERLIN, eve, 2) == ["03-28 03:00 +0200", "03-29 02:00 +0200"]


def test_a_time_that_comes_twice_runs_at_the_first():
    eve = datetime(2027, 10, 30, 12, tzinfo=UTC)  # on the 31st clocks go from 03:00 back to 02:00
    assert local("30 2 * * *", BERLIN, eve, 2) == ["10-31 02:30 +0200", "11-01 02:30 +0100"]
    between = datetime(2027, 10, 31, 0, 45, tzinfo=UTC)  # after the first 02:30, before the second
    assert local("30 2 * * *", BERLIN, between, 1) == ["11-01 02:30 +0100"]


def test_what_goes_by_real_time_keeps_its_distance():
    eve = datetime(2027, 10, 30, 23, 45, tzinfo=UTC)
    found = list(islice(times("*/30 * * * *", BERLIN, eve), 6))
    assert {later - earlier for earlier, later in pairwise(found)} == {timedelta(minutes=30)}
    eve = datetime(2027, 3, 28, 0, 15, tzinfo=UTC)
    found = list(islice(times("*/30 * * * *", BERLIN, eve), 6))
    assert {later - earlier for earlier, later in pairwise(found)} == {timedelta(minutes=30)}


@pytest.mark.parametrize(
    "expression",
    ["", "* * * *", "0 0 0 0 * *", "60 * * * *", "a b c d e", "@daily", "0 0 * * 8", "0 0 1-x * *", "*/0 * * * *",
     "0 0 * * 1,,2", "0" * 101 + " * * * *", "0 0 * * \0", "0 0 L-3 * *", "0 0 5L * *", "0 0 * * L/2",
     "0 0 ١ * *"],
)  # fmt: skip
def test_what_is_no_expression_is_refused(expression):
    assert [one.code for one in cron_problems(expression, BERLIN, NOW, SHORTEST)] == ["bad_cron"]


@pytest.mark.parametrize(
    ("expression", "code"),
    [("* * * * *", "too_often"), ("*/4 * * * *", "too_often"), ("0,1 0 1 1 *", "too_often"),
     ("0,59 * * * *", "too_often"), ("0 0 31 2 *", "bad_cron"), ("59,0 23,0 * * *", "too_often")],
)  # fmt: skip
def test_times_too_near_and_times_that_never_come_are_refused(expression, code):
    assert [one.code for one in cron_problems(expression, "UTC", NOW, SHORTEST)] == [code]


def test_every_five_minutes_is_just_allowed():
    assert not cron_problems("*/5 * * * *", "UTC", NOW, SHORTEST)
    assert not cron_problems("0 0 29 2 *", BERLIN, NOW, SHORTEST)
    assert not cron_problems("0 6 * * MON-FRI", BERLIN, NOW, SHORTEST)


@pytest.mark.parametrize("zone", ["", "Mars/Olympus", "../../etc/passwd", "europe/berlin", "EST5EDT\0", "localtime"])
def test_an_unknown_zone_is_refused(zone):
    assert [one.code for one in cron_problems("0 0 * * *", zone, NOW, SHORTEST)] == ["unknown_time_zone"]


@given(st.text(alphabet="0123456789*/,-#LWMON ", max_size=40))
def test_whatever_is_written_gives_problems_or_times_in_order(expression):
    if cron_problems(expression, BERLIN, NOW, SHORTEST):
        return
    found = list(islice(times(expression, BERLIN, NOW), 20))
    assert found[0] > NOW
    assert all(later - earlier >= SHORTEST for earlier, later in pairwise(found))

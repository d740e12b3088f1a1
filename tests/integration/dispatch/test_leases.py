"""Leases: one holder at a time, for a while, over any model."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.db.models import F, QuerySet

from apps.dispatch.leases import Leases, claim_due, due
from apps.dispatch.models import Leadership, OutboxEvent
from tests.real.postgres import postgres_cluster, postgres_db
from yardmaster.ids import new_id

__all__ = ["postgres_cluster", "postgres_db"]

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
LASTS = timedelta(seconds=15)
LATER = NOW + LASTS
POSTS = Leases("holder", "until")


@pytest.fixture
def rows() -> QuerySet[Leadership]:
    """One free row, as the query that finds it."""
    Leadership.objects.create(post="a")
    Leadership.objects.create(post="another", holder="b", until=LATER)
    return Leadership.objects.filter(post="a")


def columns(rows: QuerySet[Leadership]) -> tuple[str, datetime | None]:
    row = rows.get()
    return row.holder, row.until


@pytest.mark.django_db
class TestLeases:
    def test_of_two_that_claim_one_gets_it(self, rows):
        assert POSTS.claim(rows, "x", NOW, LASTS) is not None
        assert POSTS.claim(rows, "y", NOW, LASTS) is None
        assert columns(rows) == ("x", LATER)

    def test_the_rows_are_those_that_are_held(self, rows):
        mine = POSTS.claim(rows, "x", NOW, LASTS)
        assert mine is not None
        assert mine.count() == 1
        POSTS.claim(rows, "y", LATER, LASTS)
        assert mine.count() == 0

    def test_one_that_ran_out_is_claimed_by_another_at_that_moment_and_not_before(self, rows):
        POSTS.claim(rows, "x", NOW, LASTS)
        assert POSTS.claim(rows, "y", LATER - timedelta(microseconds=1), LASTS) is None
        assert POSTS.claim(rows, "y", LATER, LASTS) is not None

    def test_the_holder_claims_again_and_so_renews(self, rows):
        POSTS.claim(rows, "x", NOW, LASTS)
        assert POSTS.claim(rows, "x", NOW + LASTS / 2, LASTS) is not None
        assert columns(rows) == ("x", NOW + LASTS * 1.5)

    def test_what_is_written_with_a_claim_is_written_only_if_it_succeeds(self, rows):
        assert POSTS.claim(rows, "x", NOW, LASTS, post="renamed") is not None
        rows = Leadership.objects.filter(post="renamed")
        assert POSTS.claim(rows, "y", NOW, LASTS, post="again") is None
        assert rows.exists()

    def test_what_is_not_there_is_not_claimed(self, rows):
        assert POSTS.claim(rows.filter(post="none"), "x", NOW, LASTS) is None

    def test_renewed_by_its_holder_it_lasts_longer(self, rows):
        POSTS.claim(rows, "x", NOW, LASTS)
        assert POSTS.renew(rows, "x", NOW + 3 * LASTS)
        assert POSTS.claim(rows, "y", LATER, LASTS) is None

    def test_a_holder_that_was_late_keeps_it_while_no_other_took_it(self, rows):
        POSTS.claim(rows, "x", NOW, LASTS)
        assert POSTS.renew(rows, "x", LATER + 2 * LASTS)
        assert columns(rows) == ("x", LATER + 2 * LASTS)

    def test_an_old_holder_renews_and_releases_nothing(self, rows):
        POSTS.claim(rows, "x", NOW, LASTS)
        POSTS.claim(rows, "y", LATER, LASTS)
        assert not POSTS.renew(rows, "x", LATER + 9 * LASTS)
        assert not POSTS.release(rows, "x", post="renamed")
        assert columns(rows) == ("y", LATER + LASTS)

    def test_released_it_is_free_at_once(self, rows):
        POSTS.claim(rows, "x", NOW, LASTS)
        assert POSTS.release(rows, "x")
        assert columns(rows) == ("", None)
        assert POSTS.claim(rows, "y", NOW, LASTS) is not None

    def test_releasing_again_changes_nothing(self, rows):
        POSTS.claim(rows, "x", NOW, LASTS)
        assert POSTS.release(rows, "x")
        assert not POSTS.release(rows, "x")

    def test_other_rows_stay_as_they_are(self, rows):
        POSTS.claim(rows, "x", NOW, LASTS)
        POSTS.release(rows, "x")
        assert columns(Leadership.objects.filter(post="another")) == ("b", LATER)


@pytest.mark.django_db
class TestDueTimes:
    @pytest.fixture
    def events(self) -> QuerySet[OutboxEvent]:
        for minutes, topic in ((-1, "late"), (-5, "later"), (0, "now"), (1, "not yet"), (None, "never")):
            at = None if minutes is None else NOW + timedelta(minutes=minutes)
            OutboxEvent.objects.create(topic=topic, subject=new_id(), next_try_at=at)
        return OutboxEvent.objects.all()

    def test_a_sweep_finds_what_is_due_the_oldest_first_and_nothing_else(self, events):
        assert [one.topic for one in due(events, "next_try_at", NOW)] == ["later", "late", "now"]

    def test_of_two_that_claim_one_gets_it(self, events):
        row = events.filter(topic="late")
        assert claim_due(row, "next_try_at", NOW, LASTS) is not None
        assert claim_due(row, "next_try_at", NOW, LASTS) is None
        assert row.get().next_try_at == LATER

    @pytest.mark.parametrize("topic", ["not yet", "never"])
    def test_what_is_not_due_is_not_claimed(self, events, topic):
        assert claim_due(events.filter(topic=topic), "next_try_at", NOW, LASTS, failures=9) is None
        assert events.get(topic=topic).failures == 0

    def test_a_claim_that_ran_out_is_claimed_by_another(self, events):
        row = events.filter(topic="late")
        first = claim_due(row, "next_try_at", NOW, LASTS)
        second = claim_due(row, "next_try_at", LATER, LASTS)
        assert second is not None
        assert first is not None
        assert first.update(failures=7) == 0
        assert second.update(failures=1) == 1

    def test_marked_as_due_meanwhile_the_holder_writes_nothing(self, events):
        row = events.filter(topic="late")
        mine = claim_due(row, "next_try_at", NOW, LASTS)
        row.update(next_try_at=NOW)
        assert mine is not None
        assert mine.update(next_try_at=None) == 0
        assert row.get().next_try_at == NOW

    def test_what_is_written_with_the_claim_may_count(self, events):
        claim_due(events.filter(topic="late"), "next_try_at", NOW, LASTS, failures=F("failures") + 1)
        assert events.get(topic="late").failures == 1


@pytest.mark.postgres
def test_of_eight_threads_that_claim_one_gets_it(postgres_db):
    Leadership.objects.create(post="a")
    gate = threading.Barrier(8)

    def claim(name: str) -> bool:
        gate.wait(30)
        try:
            return POSTS.claim(Leadership.objects.filter(post="a"), name, NOW, LASTS) is not None
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(claim, "abcdefgh")) == [False] * 7 + [True]

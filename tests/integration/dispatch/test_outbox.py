"""Events reach their reader once, whatever fails on the way."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, transaction
from django.utils import timezone

from apps.dispatch.models import OutboxEvent
from apps.dispatch.outbox import AT_ONCE, FIRST_PAUSE, deliver, publish
from tests.real.postgres import postgres_cluster, postgres_db

__all__ = ["postgres_cluster", "postgres_db"]

TOPIC = "a.topic"
ONE, TWO = uuid.UUID(int=1), uuid.UUID(int=2)


@pytest.mark.django_db
class TestDelivery:
    def test_the_oldest_comes_first_and_each_once(self):
        publish(TOPIC, ONE, number=1)
        publish(TOPIC, TWO, number=2)
        publish("another.topic", ONE)
        seen = []
        assert deliver(TOPIC, lambda event: seen.append((event.subject, event.facts))) == 2
        assert seen == [(ONE, {"number": 1}), (TWO, {"number": 2})]
        assert deliver(TOPIC, seen.append) == 0
        assert OutboxEvent.objects.get().topic == "another.topic"

    def test_what_is_rolled_back_never_happened(self):
        with transaction.atomic():
            publish(TOPIC, ONE)
            transaction.set_rollback(True)
        assert not OutboxEvent.objects.exists()

    def test_an_event_that_cannot_be_handled_stays_and_holds_up_no_other(self, caplog):
        publish(TOPIC, ONE)
        publish(TOPIC, TWO)

        def handle(event):
            if event.subject == ONE:
                raise ValueError("a bug")

        assert deliver(TOPIC, handle) == 1
        assert "could not be handled" in caplog.text
        assert [event.subject for event in OutboxEvent.objects.all()] == [ONE]

    def test_any_number_that_always_fails_holds_up_no_later_one(self):
        OutboxEvent.objects.bulk_create(OutboxEvent(topic=TOPIC, subject=ONE) for _ in range(AT_ONCE))
        publish(TOPIC, TWO)

        def handle(event):
            if event.subject == ONE:
                raise ValueError("a bug")

        assert [deliver(TOPIC, handle), deliver(TOPIC, handle)] == [0, 1]
        assert OutboxEvent.objects.filter(subject=ONE).count() == AT_ONCE

    def test_an_event_that_fails_is_tried_again_later_each_time_and_then_handled(self):
        publish(TOPIC, ONE)
        now = timezone.now()

        def handle(event):
            raise ValueError("a bug")

        for pause in (FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE):
            for _ in range(2):  # the second is not due
                deliver(TOPIC, handle, clock=lambda at=now: at)
            assert OutboxEvent.objects.get().next_try_at == now + pause
            now += pause
        assert deliver(TOPIC, lambda event: None, clock=lambda: now) == 1

    def test_one_call_takes_a_bounded_number(self):
        OutboxEvent.objects.bulk_create(OutboxEvent(topic=TOPIC, subject=ONE) for _ in range(AT_ONCE + 5))
        assert [deliver(TOPIC, lambda event: None) for _ in range(3)] == [AT_ONCE, 5, 0]


@pytest.mark.postgres
def test_of_several_workers_one_handles_an_event(postgres_db):
    publish(TOPIC, ONE)
    seen = []

    def work(_):
        try:
            return deliver(TOPIC, seen.append)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(work, range(4))) == 1
    assert len(seen) == 1

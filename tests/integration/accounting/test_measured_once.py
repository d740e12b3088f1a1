"""What was measured counts once, and a sum of use is of one moment."""

from __future__ import annotations

import threading
from datetime import UTC, date, datetime, timedelta

import pytest
from django.db import connection

from apps.accounting import use as use_module
from apps.accounting.measuring import day_measure
from apps.accounting.models import MeasuredDay
from apps.accounting.rollup import usage_sweep
from apps.accounting.use import use
from apps.jobs.models import Reservation, TaskFact
from yardmaster.ids import new_id

MIDNIGHT = datetime(2026, 11, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)


def reserved(job_id, since: datetime, until: datetime | None) -> Reservation:
    return Reservation.objects.create(
        job_id=job_id, job_name="x", namespace_id=new_id(), namespace_slug="x", owner_id=new_id(), owner_name="ada",
        engine="local", attempt=1, role="worker", tasks=1, cpu=1, memory=1 << 30, gpus=0, reserved_at=since,
        released_at=until,
    )  # fmt: skip


def test_an_attempt_that_was_admitted_twice_is_measured_once(world, ada):
    job = world.launch(ada)
    reserved(job.pk, MIDNIGHT - 5 * HOUR, MIDNIGHT - 4 * HOUR)
    reserved(job.pk, MIDNIGHT - HOUR, MIDNIGHT + HOUR)
    begin = (MIDNIGHT - HOUR).timestamp()
    TaskFact.objects.create(
        job=job,
        attempt=1,
        role="worker",
        index=0,
        usage_samples=[[begin, 0.0, 1 << 20], [begin + 3600, 1800.0, 1 << 20]],
    )
    day_measure(date(2026, 11, 1))
    assert not MeasuredDay.objects.exists(), "its last run is released on the day after"
    day_measure(date(2026, 11, 2))
    assert [one.used for one in MeasuredDay.objects.filter(resource="cpu")] == [1_800_000]


@pytest.mark.postgres
def test_a_day_that_is_closed_while_use_is_summed_is_counted_once(postgres_db, monkeypatch):
    reserved(new_id(), MIDNIGHT - 30 * HOUR, MIDNIGHT - 20 * HOUR)
    reserved(new_id(), MIDNIGHT - 10 * HOUR, MIDNIGHT - 5 * HOUR)
    usage_sweep(MIDNIGHT - HOUR)

    def amount() -> int:
        found = use(MIDNIGHT - 48 * HOUR, MIDNIGHT + HOUR, ())
        return sum(one["cpu"] for one in found.values())

    expected = 15 * 3600 * 1000
    assert amount() == expected
    summed, closed = use_module._summed, []

    def close_day() -> None:
        closed.append(usage_sweep(MIDNIGHT + 2 * HOUR))
        connection.close()

    def and_a_day_is_closed(*given):
        found = summed(*given)
        thread = threading.Thread(target=close_day)
        thread.start()
        thread.join(60)
        return found

    monkeypatch.setattr(use_module, "_summed", and_a_day_is_closed)
    assert amount() == expected
    assert closed == [1], "the day was closed in between"
    monkeypatch.undo()
    assert amount() == expected

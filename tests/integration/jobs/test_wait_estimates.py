"""Estimates of waits: made after a pass, from what the ledger says of jobs that ended; read by people and programs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError

from apps.jobs.explanations.wait_estimates import right_of, words_of
from apps.jobs.models import Job, QueuePass, Reservation, WaitEstimate
from apps.jobs.state.holds import hold
from apps.jobs.worker import estimating
from apps.jobs.worker.estimating import waits_estimate
from apps.jobs.worker.queue_pass import admit_queue
from apps.namespaces.models import Quota
from tests.integration.jobs.test_queue_pass import fill, statements
from yardmaster.errors import Unavailable
from yardmaster.ids import new_id
from yardmaster.job.spec import Resources


@pytest.fixture
def busy(world, ada):
    """Four jobs run, six wait for the quota of their namespace; twelve have ended, each after ten minutes."""
    world.engine._capacity = type(world.engine._capacity)(*[Resources(cpu=1000, memory=1 << 50)] * 3)
    jobs = fill(world, ada, 10)
    Quota.objects.update(cpu=12)
    Reservation.objects.bulk_create(
        Reservation(
            job_id=new_id(), job_name=f"job {n}", namespace=jobs[0].namespace, owner_id=ada.pk, engine="staged",
            attempt=1, role="worker", tasks=1, cpu=1, memory=1, gpus=0, reserved_at=world.now - timedelta(hours=n + 1),
            released_at=world.now - timedelta(hours=n + 1) + timedelta(minutes=10),
        )
        for n in range(12)
    )  # fmt: skip
    admit_queue("staged", clock=world.clock)
    assert Job.objects.waiting().count() == 6
    return jobs


def estimated(world) -> dict:
    QueuePass.objects.update(estimate_at=None)
    waits_estimate("staged", clock=world.clock)
    return {one.job_id: one for one in WaitEstimate.objects.all()}


def minutes(world, at) -> float:
    return (at - world.now).total_seconds() / 60


def test_those_that_wait_are_given_a_range_and_those_ahead_come_sooner(world, busy):
    found = estimated(world)
    waiting = list(Job.objects.waiting().order_by("position"))
    assert set(found) == {one.pk for one in waiting}
    first, last = found[waiting[0].pk], found[waiting[-1].pk]
    # Four at a time, ten minutes each; a range that was never tried is widened to half and to twice.
    assert minutes(world, first.starts_from) < 10 < minutes(world, first.starts_until) < 25
    assert minutes(world, last.starts_from) < 20 < minutes(world, last.starts_until) < 45
    assert first.starts_from < last.starts_from


def test_the_first_range_stays_for_the_measure_and_the_newest_is_shown(world, busy):
    before = estimated(world)
    world.now += timedelta(minutes=4)
    after = estimated(world)
    for key, one in after.items():
        assert (one.said_at, one.raw_low, one.said_high) == (before[key].said_at, before[key].raw_low,
                                                             before[key].said_high)  # fmt: skip
        assert one.made_at == world.now
        assert one.starts_until != before[key].starts_until


def test_an_estimate_is_not_made_again_at_once(world, busy):
    assert waits_estimate("staged", clock=world.clock) == 6
    assert waits_estimate("staged", clock=world.clock) == 0
    world.now += timedelta(minutes=10)
    assert waits_estimate("staged", clock=world.clock) == 6


def test_a_start_is_noted_and_a_held_job_has_no_estimate(world, busy, admin_user):
    estimated(world)
    waiting = list(Job.objects.waiting().order_by("position"))
    hold(waiting[1], reason="a look first", actor=admin_user)
    Quota.objects.update(cpu=15)
    world.now += timedelta(minutes=3)
    admit_queue("staged", clock=world.clock)
    found = estimated(world)
    assert found[waiting[0].pk].started_at == world.now
    assert found[waiting[1].pk].starts_from is None
    assert found[waiting[2].pk].starts_from is not None


def test_a_job_that_was_taken_back_after_a_start_and_is_held_has_no_estimate(world, busy, admin_user):
    estimated(world)
    first = Job.objects.waiting().order_by("position")[0]
    WaitEstimate.objects.filter(job=first).update(started_at=world.now)
    hold(first, reason="a look first", actor=admin_user)
    world.now += timedelta(minutes=3)
    one = estimated(world)[first.pk]
    assert (one.starts_from, one.starts_until, one.made_at) == (None, None, world.now)


def test_the_wait_between_two_admissions_of_an_attempt_is_no_run_time(world, busy):
    before = sorted(seconds for _, seconds in estimating._ended("staged"))
    one = Reservation.objects.filter(released_at__isnull=False).latest("released_at")
    again = {"reserved_at": one.released_at + timedelta(hours=9), "released_at": one.released_at + timedelta(hours=10)}
    for role in ("worker", "ps"):
        Reservation.objects.create(
            job_id=one.job_id, job_name=one.job_name, namespace=one.namespace, owner_id=one.owner_id, engine="staged",
            attempt=1, role=role, tasks=1, cpu=1, memory=1, gpus=0, **again,
        )  # fmt: skip
    assert sorted(seconds for _, seconds in estimating._ended("staged")) == sorted([*before, 3600.0])


def test_a_job_that_is_removed_meanwhile_leaves_the_estimates_as_they_are(world, busy, monkeypatch):
    before = estimated(world)

    def fails(*args):
        WaitEstimate.objects.all().delete()
        raise IntegrityError("FOREIGN KEY constraint failed")

    monkeypatch.setattr(estimating, "_write", fails)
    assert estimated(world) == before


def test_an_engine_that_does_not_answer_or_too_few_ended_jobs_say_nothing(world, busy, monkeypatch):
    Reservation.objects.filter(released_at__isnull=False)._raw_delete("default")
    assert estimated(world) == {}

    def away():
        raise Unavailable("The engine is away.")

    monkeypatch.setattr(world.engine, "capacity", away)
    assert estimated(world) == {}


def test_it_costs_the_same_statements_however_many_jobs_wait(world, ada, busy):
    few = statements(lambda: estimated(world))
    fill(world, ada, 300, namespaces=20)
    admit_queue("staged", clock=world.clock)
    many = statements(lambda: estimated(world))
    assert WaitEstimate.objects.count() > 150
    few, many = ([sql for sql in each if not sql.startswith("INSERT")] for each in (few, many))
    assert len(many) <= len(few) <= 25, "SQLite takes so many values at once; all others are one each"


def test_owners_read_it_and_administrators_how_right_it_was(world, busy, client, ada, admin_user):
    estimated(world)
    job = Job.objects.waiting().order_by("position")[0]
    client.force_login(admin_user)
    assert "Estimated start: <strong>" in client.get(f"/jobs/{job.pk}/").content.decode()
    said = client.get(f"/api/v1/jobs/{job.pk}/why/").json()["estimate"]
    assert said["words"].startswith("in ")
    assert said["starts_from"] < said["until"]
    page = client.get("/admin/queue/?engine=staged").content.decode()
    assert "starts in " in page
    assert "of the last" not in page.lower()
    for n in range(25):
        one = Job.objects.create(
            id=new_id(), namespace=job.namespace, owner=ada, name=f"old {n}", engine="staged", spec={},
            strategy="single", phase="SUCCEEDED", needs={}, queued_at=world.now,
        )  # fmt: skip
        WaitEstimate.objects.create(
            job=one, attempt=1, engine="staged", said_at=world.now, raw_low=1, raw_high=2, said_low=10, said_high=60,
            made_at=world.now, started_at=world.now + timedelta(seconds=30 if n < 20 else 300),
        )  # fmt: skip
    assert right_of("staged") == (20, 25)
    page = client.get("/admin/queue/?engine=staged").content.decode()
    assert "Of the last 25 estimated waits for staged, 20 ended within the range" in page
    assert "(80 %)" in page


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0, 30, "within a minute"),
        (20, 570, "within 10 minutes"),
        (300, 1190, "in 5 to 20 minutes"),
        (3000, 9000, "in 50 minutes to 3 hours"),
        (7300, 7400, "in 2 to 3 hours"),
        (3600 * 30, 3600 * 100, "in 30 hours to 5 days"),
        (600, None, "in more than 10 minutes"),
        (5, None, "at an unknown time"),
        (-900, -60, "soon; it waits longer than was estimated"),
    ],
)
def test_ranges_in_words(world, low, high, words):
    at = world.now
    assert words_of(at + timedelta(seconds=low), None if high is None else at + timedelta(seconds=high), at) == words

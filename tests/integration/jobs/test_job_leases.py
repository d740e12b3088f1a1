"""Leases: one worker at a time, and no wake-up lost between a holder's last look and the end of its lease."""

from __future__ import annotations

from datetime import timedelta

from apps.jobs import services
from apps.jobs.models import Job
from apps.jobs.state import leases
from apps.jobs.worker.reconcile import MOST_LOOKS
from yardmaster.errors import Unavailable


def test_a_job_has_one_worker(world, ada):
    job = world.launch(ada)
    assert leases.claim(job.pk, world.now) is not None
    assert leases.claim(job.pk, world.now) is None


def test_a_lease_that_ran_out_is_free(world, ada, settings):
    job = world.launch(ada)
    old = leases.claim(job.pk, world.now)
    new = leases.claim(job.pk, world.now + settings.YARDMASTER_JOB_LEASE)
    assert new is not None
    assert leases.release(old, next_look_at=None), "the old holder has nothing to let go"
    assert world.again(job).lease_owner == new.owner


def test_who_finds_a_job_leased_is_looked_after_by_the_holder(world, ada):
    job = world.launch(ada)
    lease = leases.claim(job.pk, world.now)
    leases.claim(job.pk, world.now)
    assert not leases.release(lease, next_look_at=None)
    assert leases.release(lease, next_look_at=None)
    assert world.again(job).next_look_at is None


def test_a_worker_that_is_killed_leaves_a_job_that_the_sweep_finds(world, ada, settings):
    job = world.launch(ada)
    leases.claim(job.pk, world.now)
    assert world.again(job).next_look_at == world.now + settings.YARDMASTER_JOB_LEASE


def test_a_stop_that_comes_during_a_failed_look_does_not_wait_out_the_pause(world, ada):
    job = world.launch(ada)
    Job.objects.filter(pk=job.pk).update(setbacks=9)
    world.engine.before_verb = lambda verb: services.job_stop(user=ada, job=job)
    world.engine.error = Unavailable("The engine does not answer.")
    job = world.look(job)
    assert job.next_look_at - world.now <= timedelta(seconds=2)
    world.now = job.next_look_at
    assert world.look(job).phase == "STOPPED"


def test_wake_ups_without_end_do_not_keep_a_worker(world, ada):
    job = world.launch(ada)
    world.settle()
    looks = []

    def wake(verb: str) -> None:
        looks.append(verb)
        leases.claim(job.pk, world.now)

    world.engine.before_verb = wake
    job = world.look(job)
    assert looks == ["observe"] * MOST_LOOKS
    assert not job.lease_owner
    assert job.next_look_at == world.now

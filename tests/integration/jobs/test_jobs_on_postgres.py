"""What only a real database shows: two workers at once."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from django.db import connection

from apps.accounts.models import User
from apps.jobs import services
from apps.jobs.models import Job, JobEvent, Reservation
from apps.jobs.state import leases
from apps.jobs.worker.queue_pass import admit_queue
from apps.jobs.worker.reconcile import reconcile
from apps.namespaces.models import Namespace, Quota
from tests.integration.jobs.world import World
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import TaskPhase

pytestmark = pytest.mark.postgres


def at_once(*deeds: Callable[[], object]) -> None:
    """Run all in threads that begin together; the first failure is raised."""
    gate, failures = threading.Barrier(len(deeds)), []

    def run(deed: Callable[[], object]) -> None:
        try:
            gate.wait()
            deed()
        except BaseException as error:  # noqa: BLE001 - raised below, in the test's own thread
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(deed,)) for deed in deeds]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if failures:
        raise failures[0]


@pytest.fixture
def carl(postgres_world) -> User:
    return User.objects.create_user("carl", "carl@example.org", "correct horse battery")


def test_eight_workers_at_once_bring_a_job_forward_as_one_would(postgres_world, carl):
    world: World = postgres_world
    job = world.launch(carl)
    at_once(
        *[lambda: admit_queue("staged", clock=world.clock)] * 4, *[lambda: reconcile(job.pk, clock=world.clock)] * 4
    )
    at_once(*[lambda: reconcile(job.pk, clock=world.clock)] * 8)
    world.settle()
    assert world.again(job).phase == "RUNNING"
    assert world.engine.submits == [job.key]
    phases = list(JobEvent.objects.filter(job=job, kind="phase").order_by("pk").values_list("phase_to", flat=True))
    assert phases == ["QUEUED", "STARTING", "RUNNING"]
    assert Reservation.objects.filter(job=job).count() == 2


def test_the_last_room_is_promised_once_when_many_ask_for_it_at_once(postgres_world, carl):
    """trainer#1264, volcano#1387: two jobs half-started and dead-locked."""
    world: World = postgres_world
    Quota.objects.filter(namespace__owner=carl).update(cpu=4)
    jobs = [world.launch(carl) for _ in range(4)]  # each needs 3 cores
    passes = [lambda: admit_queue("staged", clock=world.clock)] * 4
    at_once(*passes, *[lambda job=job: reconcile(job.pk, clock=world.clock) for job in jobs])
    world.settle()
    started = [job for job in jobs if world.again(job).phase == "RUNNING"]
    assert len(started) == 1
    assert sum(row.cpu for row in Reservation.objects.filter(released_at__isnull=True)) == 3
    world.engine.succeed(started[0])
    world.passes(60)
    assert sum(world.again(job).phase == "RUNNING" for job in jobs) == 1


def test_a_stop_while_a_worker_looks_is_not_lost(postgres_world, carl):
    world: World = postgres_world
    job = world.launch(carl)
    world.settle()
    lease = leases.claim(job.pk, world.now)
    at_once(lambda: services.job_stop(user=carl, job=job))
    assert not leases.release(lease, next_look_at=None), "the holder must look once more"


def test_two_who_stop_and_a_verdict_at_once_leave_one_end(postgres_world, carl):
    world: World = postgres_world
    job = world.launch(carl)
    world.settle()
    world.engine.succeed(job)
    at_once(
        lambda: services.job_stop(user=carl, job=job),
        lambda: services.job_stop(user=carl, job=job),
        *[lambda: reconcile(job.pk, clock=world.clock)] * 3,
    )
    world.until_quiet()
    job = world.again(job)
    assert job.phase in {"SUCCEEDED", "STOPPED"}
    finals = JobEvent.objects.filter(job=job, kind="phase", phase_to__in=["SUCCEEDED", "FAILED", "STOPPED"])
    assert finals.count() == 1
    assert job.is_over


def test_of_two_retries_at_once_one_begins_an_attempt(postgres_world, carl):
    from apps.errors import Conflict

    world: World = postgres_world
    job = world.launch(carl)
    world.settle()
    world.engine.succeed(job)
    world.until_quiet()
    refused = []

    def retry() -> None:
        try:
            services.job_retry(user=carl, job=world.again(job))
        except Conflict as error:
            refused.append(error)

    at_once(retry, retry)
    assert len(refused) == 1
    assert world.again(job).attempt == 2


@pytest.mark.parametrize("message", ["a\x00b", "a\ud800b"])
def test_a_message_that_this_database_does_not_take_ends_the_job_and_returns_its_quota(postgres_world, carl, message):
    world: World = postgres_world
    job = world.launch(carl, retries=0)
    world.until_running(job)
    world.engine.set(job, Role.WORKER, 0, TaskPhase.FAILED, exit_code=1, reason="ScriptFailed", message=message)
    world.until_quiet()
    job = world.again(job)
    assert (job.phase, job.is_over) == ("FAILED", True)
    assert not Reservation.objects.filter(job=job, released_at__isnull=True).exists()


def test_a_namespace_of_its_own_waits_for_nobody_elses_quota(postgres_world, carl):
    world: World = postgres_world
    dora = User.objects.create_user("dora", "dora@example.org", "correct horse battery")
    Quota.objects.filter(namespace__owner=carl).update(cpu=1)
    stuck = world.launch(carl)
    free = world.launch(dora, namespace=Namespace.objects.get(owner=dora))
    world.settle()
    assert world.again(stuck).reason == "ExceedsMaxQuota"
    assert world.again(free).phase == "RUNNING"
    assert world.engine.alive(free) == ["ps-0", "worker-0", "worker-1"]
    assert Job.objects.filter(pk=stuck.pk, next_look_at__isnull=False).exists()
    assert Role.PS in {Role(row.role) for row in Reservation.objects.filter(job=free)}

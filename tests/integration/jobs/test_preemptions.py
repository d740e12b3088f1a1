"""Preemption acted on: who goes, what of it is told, that nothing is lost or done twice, and what it costs."""

from __future__ import annotations

from datetime import timedelta

import pytest

from apps.accounting.use import use
from apps.accounts.models import User
from apps.audit.models import AuditEvent
from apps.dispatch.models import OutboxEvent
from apps.jobs.models import Job, JobAttempt, JobEvent, Preemption, PreemptionPolicy, Reservation
from apps.jobs.services import job_stop
from apps.jobs.state import preemptions
from apps.jobs.worker.queue_pass import admit_queue
from apps.jobs.worker.reconcile import reconcile
from apps.namespaces.models import Namespace, PriorityClass, Quota, ShareNode
from apps.notifications.happenings import happenings_note
from apps.notifications.models import Announcement
from tests.integration.jobs.test_queue_pass import check_reasons, fill, statements
from tests.integration.jobs.test_task_api import sent
from tests.integration.jobs.world import task_of
from yardmaster.job.spec import Resources

ROOM = Resources(cpu=4, memory=64 << 30)
"""For one job, and a core."""


@pytest.fixture
def small(world, monkeypatch):
    """An engine with room for one job, where preemption is allowed."""
    world.engine._capacity = type(world.engine._capacity)(*[ROOM] * 3)
    PreemptionPolicy.objects.create(engine="staged", is_on=True)
    PriorityClass.objects.create(name="urgent", value=500, preempts=True)
    monkeypatch.setattr(world.engine, "stop", lambda key, grace: None)  # tasks take their time: `ends`
    return world


def running(world, owner, step: int | None = 7, minutes: float = 20, **changes) -> Job:
    """A job that has run for a while, with a checkpoint."""
    job = world.launch(owner, **changes)
    world.until_running(job)
    if step is not None:
        sent(task_of(job, world.again(job).attempt), "checkpoints", step=step)
    world.now += timedelta(minutes=minutes)
    return world.again(job)


def ends(world, job: Job) -> None:
    """Its tasks end, as they were asked to."""
    for name in world.engine.alive(job):
        role, index = name.rsplit("-", 1)
        world.engine.set_task(job.key, _role(role), int(index), phase=_released(), exit_code=0)
    world.passes(20)


def _role(name):
    from yardmaster.job.spec import Role

    return Role(name)


def _released():
    from yardmaster.lifecycle.phases import TaskPhase

    return TaskPhase.RELEASED


def test_a_job_of_a_higher_class_takes_the_place_and_the_other_continues_from_its_checkpoint(small, ada, bob):
    User.objects.filter(pk=bob.pk).update(email="bob@example.org")
    old = running(small, bob)
    turn = old.queued_at
    urgent = small.launch(ada, priority_class="urgent")
    small.settle()
    old = small.again(old)
    assert old.phase == "STOPPING"
    assert old.preempted_at == small.now
    assert small.again(urgent).phase == "QUEUED", "the place is not free yet"
    assert Reservation.objects.filter(job=old, released_at__isnull=True).exists()
    small.now += timedelta(seconds=10)
    small.settle()
    assert "1 running job gives up its place for it" in small.again(urgent).message
    ends(small, old)
    assert small.again(urgent).phase == "RUNNING"
    old = small.again(old)
    assert (old.phase, old.attempt, old.turn_at, old.wanted, old.preempted_at) == ("QUEUED", 2, turn, "RUN", None)
    assert "WaitingForCapacity" in old.reason
    last = JobAttempt.objects.get(job=old, number=1)
    assert (last.phase, last.reason, last.blame) == ("STOPPED", "Preempted", "platform")
    assert f"A job of the namespace {urgent.namespace.slug}, whose priority class urgent is higher" in last.message
    assert urgent.name not in last.message.replace(urgent.namespace.slug, ""), "a foreign job's name is its team's"
    assert JobEvent.objects.get(job=old, kind="preempted").message == last.message
    assert AuditEvent.objects.get(action="job.preempt").facts["for_class"] == "urgent"
    assert OutboxEvent.objects.filter(facts__event="job.preempted").exists()
    happenings_note()
    mail = Announcement.objects.get(user=bob)
    assert mail.subject == f"[Yardmaster] Job {old.name} was preempted"
    assert last.message in mail.body
    small.engine.succeed(urgent)
    small.passes(60)
    assert small.again(old).phase == "RUNNING"
    order = task_of(old, 2).get("/api/v1/task/order/", {"role": "worker", "index": 0}).json()
    assert order["checkpoint"]["step"] == 7
    assert old.returns == 0


def test_one_that_gave_up_its_place_is_served_before_later_jobs_of_its_own_namespace(small, ada, bob):
    old = running(small, bob)
    later = small.launch(bob)
    urgent = small.launch(ada, priority_class="urgent")
    small.settle()
    ends(small, old)
    assert small.again(urgent).phase == "RUNNING"
    back = small.again(old)
    assert back.place_at < later.queued_at < back.queued_at, "it waits again, at its place"
    small.engine.succeed(urgent)
    small.passes(60)
    assert (small.again(old).phase, small.again(later).phase) == ("RUNNING", "QUEUED")


@pytest.mark.parametrize(
    "why", ["off", "no checkpoint", "just started", "spared class", "class may not", "enough today"]
)
def test_who_is_protected_stays(small, ada, bob, why):
    step = None if why == "no checkpoint" else 7
    spared = PriorityClass.objects.create(name="steady", value=10, is_preemptible=False)
    changes = {"priority_class": spared.name} if why == "spared class" else {}
    old = running(small, bob, step, 5 if why == "just started" else 20, **changes)
    if why == "off":
        PreemptionPolicy.objects.update(is_on=False)
    if why == "class may not":
        PriorityClass.objects.filter(name="urgent").update(preempts=False)
    if why == "enough today":
        for number in (7, 8, 9):
            Preemption.objects.create(
                policy_id="staged", job=old, attempt=number, for_namespace="x", is_guaranteed=False, message="x",
                at=small.now - timedelta(hours=20), ended_at=small.now,
            )  # fmt: skip
    urgent = small.launch(ada, priority_class="urgent")
    small.settle()
    assert small.again(old).phase == "RUNNING"
    assert small.again(urgent).phase == "QUEUED"
    if why == "just started":
        small.passes(6 * 60)
        assert small.again(old).phase == "STOPPING", "and goes when it has run long enough"


def test_a_pass_that_is_repeated_or_fails_takes_no_job_twice(small, ada, bob, monkeypatch):
    small.engine._capacity = type(small.engine._capacity)(*[Resources(cpu=7, memory=64 << 30)] * 3)
    jobs = [running(small, bob, minutes=0.1), running(small, bob)]
    small.launch(ada, priority_class="urgent")
    real = preemptions._write

    def fails(*args):
        real(*args)
        raise ValueError("killed here")

    monkeypatch.setattr(preemptions, "_write", fails)
    admit_queue("staged", clock=small.clock)
    assert Preemption.objects.count() == 0, "all of it or nothing"
    assert Job.objects.filter(preempted_at__isnull=False).count() == 0
    monkeypatch.setattr(preemptions, "_write", real)
    for _ in range(3):
        small.now += timedelta(seconds=30)
        admit_queue("staged", clock=small.clock)
    assert Preemption.objects.count() == 1
    small.now += timedelta(hours=1)
    small.settle()
    admit_queue("staged", clock=small.clock)
    assert sorted(small.again(one).phase for one in jobs)[0] in ("QUEUED", "RUNNING", "STOPPING")
    assert Preemption.objects.count() == 1


def test_a_worker_that_is_killed_while_it_returns_the_job_loses_nothing(small, ada, bob, monkeypatch):
    old = running(small, bob)
    urgent = small.launch(ada, priority_class="urgent")
    small.settle()
    from apps.jobs.worker import steps

    def killed(*args, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(steps.phase_gate, "requeue", killed)
        for name in small.engine.alive(old):
            role, index = name.rsplit("-", 1)
            small.engine.set_task(old.key, _role(role), int(index), phase=_released(), exit_code=0)
        small.now += timedelta(seconds=30)
        with pytest.raises(KeyboardInterrupt):
            reconcile(old.pk, clock=small.clock)
    assert small.again(old).phase == "STOPPING"
    assert Reservation.objects.filter(job=old, released_at__isnull=True).exists(), "all of it or nothing"
    small.now += timedelta(minutes=30)
    small.settle()
    assert small.again(old).attempt == 2
    assert small.again(urgent).phase == "RUNNING"


def test_who_stops_a_job_that_is_preempted_stops_it(small, ada, bob):
    old = running(small, bob)
    urgent = small.launch(ada, priority_class="urgent")
    small.settle()
    job_stop(user=bob, job=small.again(old))
    ends(small, old)
    old = small.again(old)
    assert (old.phase, old.attempt) == ("STOPPED", 1)
    assert small.again(urgent).phase == "RUNNING"
    assert Preemption.objects.get().ended_at is not None


def test_a_job_that_is_done_before_it_is_stopped_has_succeeded(small, ada, bob):
    old = running(small, bob)
    small.launch(ada, priority_class="urgent")
    admit_queue("staged", clock=small.clock)
    assert small.again(old).preempted_at is not None
    small.engine.succeed(old)
    small.settle()
    assert (small.again(old).phase, small.again(old).attempt) == ("SUCCEEDED", 1)


def test_an_engine_that_is_away_gets_its_quota_back_and_the_job_continues_when_it_is_there(small, ada, bob):
    old = running(small, bob)
    small.launch(ada, priority_class="urgent")
    small.settle()
    small.engine.error = ConnectionError("away")
    small.passes(15 * 60)
    assert small.again(old).phase == "STOPPING"
    assert not Reservation.objects.filter(job=old, released_at__isnull=True).exists()
    small.engine.error = None
    ends(small, old)
    small.passes(180)
    assert small.again(old).attempt == 2


def test_what_is_guaranteed_comes_back_from_a_borrower(small, ada, bob):
    mine = Namespace.objects.get(owner=ada)
    ShareNode.objects.create(namespace=mine, guaranteed={"cpu": 4})
    old = running(small, bob)
    lender = small.launch(ada)
    small.settle()
    old = small.again(old)
    assert old.phase == "STOPPING"
    assert "to whose namespace what this job held is guaranteed" in Preemption.objects.get().message
    ends(small, old)
    assert small.again(lender).phase == "RUNNING"
    small.passes(900)
    assert small.again(old).attempt == 2, "it waits, and takes nothing back"
    assert small.again(lender).phase == "RUNNING"


@pytest.mark.long
def test_who_stays_within_a_guarantee_is_not_taken_by_another_namespace(small, ada, bob):
    ShareNode.objects.create(namespace=Namespace.objects.get(owner=bob), guaranteed={"cpu": 4})
    old = running(small, bob)
    small.launch(ada, priority_class="urgent")
    small.passes(900)
    assert small.again(old).phase == "RUNNING"


def test_the_use_is_exact_across_a_preemption(small, ada, bob):
    old = running(small, bob)
    begun = small.again(old).admitted_at
    urgent = small.launch(ada, priority_class="urgent")
    small.settle()
    small.now += timedelta(seconds=40)
    ends(small, old)
    first = (Preemption.objects.get().ended_at - begun).total_seconds()
    small.now += timedelta(minutes=5)
    small.engine.succeed(urgent)
    small.passes(60)
    again = small.again(old)
    assert again.phase == "RUNNING"
    small.now = again.admitted_at + timedelta(seconds=100)
    found = use(begun, small.now, ("namespace",), {"namespace_id": old.namespace_id})
    (amounts,) = found.values()
    assert amounts["cpu"] == 3 * 1000 * (first + 100)


@pytest.mark.postgres
@pytest.mark.long
def test_a_pass_over_a_thousand_jobs_that_preempts_costs_at_most_twenty_statements(postgres_world):
    from apps.accounts.models import User

    world = postgres_world
    world.engine._capacity = type(world.engine._capacity)(*[Resources(cpu=24, memory=64 << 30)] * 3)
    carl = User.objects.create_user("carl", "carl@example.org", "correct horse battery")
    fill(world, carl, 1000, namespaces=200)
    Quota.objects.update(cpu=64)
    PreemptionPolicy.objects.create(engine="staged", is_on=True)
    PriorityClass.objects.create(name="urgent", value=500, preempts=True)
    ShareNode.objects.create(name="everyone", is_default=True)
    first = statements(lambda: admit_queue("staged", clock=world.clock))
    assert len(first) <= 20
    Job.objects.filter(phase="STARTING").update(phase="RUNNING", started_at=world.now)
    one = Job.objects.waiting().first()
    Job.objects.filter(pk=one.pk).update(priority=500, priority_class="urgent")
    world.now += timedelta(minutes=20)
    again = statements(lambda: admit_queue("staged", clock=world.clock))
    assert len(again) <= 20, "\n".join(one[:150] for one in again)
    check_reasons(world)

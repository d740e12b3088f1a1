"""A pass over a queue: what it costs, who makes it, and what it writes."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.jobs.models import AdmissionLock, Job, JobEvent, QueuePass, Reservation
from apps.jobs.services import job_retry, job_stop
from apps.jobs.state import nudges
from apps.jobs.state.books import books_of, queued_on
from apps.jobs.worker import queue_pass
from apps.jobs.worker.queue_pass import admit_queue
from apps.jobs.worker.reconcile import reconcile
from apps.namespaces.models import Namespace, Quota
from yardmaster.ids import new_id
from yardmaster.job.spec import Resources
from yardmaster.job.spec_json import spec_from_json
from yardmaster.queueing.admission import Fit, admit
from yardmaster.queueing.queue_decision import decide_queue


def fill(world, owner, count: int, namespaces: int = 1) -> list[Job]:
    """Jobs like one that is launched, each queued a millisecond after the one before."""
    AdmissionLock.objects.get_or_create(pk=1)
    QueuePass.objects.get_or_create(engine="staged")
    model = world.launch(owner)
    spaces = [Namespace.objects.create(slug=f"team-{uuid.uuid4().hex[:12]}") for _ in range(namespaces)]
    Quota.objects.bulk_create([Quota(namespace=one, cpu=4) for one in spaces])
    jobs = [
        Job(
            id=new_id(), namespace=spaces[n % namespaces], owner=owner, name=f"job {n}", engine="staged",
            spec=model.spec, strategy=model.strategy, needs=model.needs,
            queued_at=world.now + timedelta(milliseconds=n),
        )
        for n in range(count)
    ]  # fmt: skip
    Job.objects.filter(pk=model.pk).delete()
    return Job.objects.bulk_create(jobs)


def statements(action) -> list[str]:
    with CaptureQueriesContext(connection) as found:
        action()
    return [one["sql"] for one in found.captured_queries]


def test_a_pass_costs_the_same_statements_however_many_jobs_wait_and_reads_no_specification(world, ada):
    fill(world, ada, 10, namespaces=2)
    few = statements(lambda: admit_queue("staged", clock=world.clock))
    Job.objects.all().delete()
    world.engine._capacity = type(world.engine._capacity)(*[Resources(cpu=1000, memory=1 << 50)] * 3)
    fill(world, ada, 400, namespaces=40)
    many = statements(lambda: admit_queue("staged", clock=world.clock))
    assert Job.objects.waiting().filter(reason="WaitingForQuota").count() == 360
    few, many = ([sql for sql in each if not sql.startswith("INSERT")] for each in (few, many))
    assert len(many) <= len(few) <= 20, "SQLite takes so many values at once; all others are one each"
    assert not any('"spec"' in sql for sql in (*few, *many))


MOST_CHECKED = 60


def check_reasons(world) -> None:
    """What is written is what `admit` says of each job that still waits; of a long queue, of some from all of it: what
    each would be told alone costs as much as the whole queue."""
    waiting = [one.candidate for one in queued_on("staged", world.engine.capacity())]
    books = books_of("staged", world.engine.capacity(), {one.namespace_id for one in waiting})
    assert waiting
    for one in waiting[:: max(1, len(waiting) // MOST_CHECKED)]:
        said, job = admit(one, waiting, books, world.now), Job.objects.get(pk=one.job_id)
        assert said.fit is Fit.WAITS
        assert (job.reason, job.message, job.position) == (said.code.value, said.message, said.position)
        assert job.waiting["ahead"] == [str(job_id) for job_id in said.ahead]
        assert [one["job"] for one in job.waiting["holders"]] == [str(one.job_id) for one in said.holders]


def test_what_is_written_is_what_each_job_would_be_told_alone(world, ada):
    world.engine._capacity = type(world.engine._capacity)(*[Resources(cpu=16, memory=64 << 30)] * 3)
    fill(world, ada, 60, namespaces=8)
    admit_queue("staged", clock=world.clock)
    check_reasons(world)
    first = Job.objects.filter(phase="STARTING").first()
    Job.objects.waiting().filter(namespace=first.namespace).first().delete()
    world.now += timedelta(seconds=20)
    admit_queue("staged", clock=world.clock)
    check_reasons(world)


@pytest.mark.postgres
def test_and_so_it_is_on_postgres(postgres_world):
    from apps.accounts.models import User

    world = postgres_world
    world.engine._capacity = type(world.engine._capacity)(*[Resources(cpu=16, memory=64 << 30)] * 3)
    carl = User.objects.create_user("carl", "carl@example.org", "correct horse battery")
    fill(world, carl, 60, namespaces=8)
    few = statements(lambda: admit_queue("staged", clock=world.clock))
    check_reasons(world)
    events = JobEvent.objects.filter(kind="waiting").count()
    assert events == Job.objects.waiting().count()
    admit_queue("staged", clock=world.clock)
    assert JobEvent.objects.filter(kind="waiting").count() == events
    fill(world, carl, 600, namespaces=8)
    world.now += timedelta(seconds=20)
    assert len(statements(lambda: admit_queue("staged", clock=world.clock))) <= len(few) <= 21
    check_reasons(world)


def test_a_pass_that_changes_nothing_writes_nothing(world, ada):
    fill(world, ada, 30, namespaces=3)
    admit_queue("staged", clock=world.clock)
    again = statements(lambda: admit_queue("staged", clock=world.clock))
    assert not any("UPDATE" in sql and "jobs_job" in sql for sql in again)


def test_as_many_as_are_allowed_start_in_one_pass_and_the_next_one_follows_at_once(world, ada, monkeypatch):
    monkeypatch.setattr(queue_pass, "MOST_ADMITTED", 2)
    jobs = fill(world, ada, 7, namespaces=7)
    admit_queue("staged", clock=world.clock)
    assert Job.objects.filter(pk__in=[job.pk for job in jobs], phase="STARTING").count() == 7


def test_one_worker_at_a_time_decides_a_queue_and_looks_again_when_it_is_asked_to(world, ada):
    first = world.launch(ada)
    seen = []

    def another(verb: str) -> None:
        if verb == "capacity":
            seen.append(verb)
            assert queue_pass._claim("staged", world.now) is None
            if len(seen) == 1:
                QueuePass.objects.update(asked=True)

    second = world.launch(ada)
    world.engine.after_verb = another
    Quota.objects.filter(namespace__owner=ada).update(cpu=4)
    admit_queue("staged", clock=world.clock)
    assert seen == ["capacity"] * 2
    assert [world.again(job).phase for job in (first, second)] == ["STARTING", "QUEUED"]


def test_a_worker_that_lost_its_lease_admits_nothing(world, ada):
    job = world.launch(ada)
    world.engine.after_verb = lambda verb: QueuePass.objects.update(lease_owner="another")
    admit_queue("staged", clock=world.clock)
    assert world.again(job).phase == "QUEUED"
    assert QueuePass.objects.get().lease_owner == "another"


def test_a_queue_whose_worker_was_killed_is_free_when_the_lease_runs_out(world, ada, settings):
    job = world.launch(ada)
    assert queue_pass._claim("staged", world.now)
    admit_queue("staged", clock=world.clock)
    assert world.again(job).phase == "QUEUED"
    world.now += settings.YARDMASTER_JOB_LEASE
    world.settle()
    assert world.again(job).phase == "RUNNING"


def test_who_is_wanted_to_stop_in_the_middle_of_a_pass_does_not_start(world, ada):
    job = world.launch(ada)
    world.engine.after_verb = lambda verb: Job.objects.filter(pk=job.pk).update(wanted="STOP")
    admit_queue("staged", clock=world.clock)
    world.engine.after_verb = lambda verb: None
    assert world.look(job).phase == "STOPPED"


def test_a_job_that_is_retried_larger_in_the_middle_of_a_pass_starts_only_as_what_it_is_now(world, ada, monkeypatch):
    job = world.launch(ada, strategy="single", roles={"worker": {"cpu": 1}})
    large = spec_from_json(world.spec_json(ada, strategy="single", roles={"worker": {"cpu": 6}}))
    decided = []

    def meanwhile(*given, **named):
        found = decide_queue(*given, **named)
        if not decided:
            job_stop(user=ada, job=world.again(job))
            reconcile(job.pk, clock=world.clock)
            reconcile(job.pk, clock=world.clock)
            job_retry(user=ada, job=world.again(job), spec=large)
        decided.append(found)
        return found

    monkeypatch.setattr(queue_pass, "decide_queue", meanwhile)
    # On PostgreSQL these are other workers: here they look at the engine within the transaction of the pass.
    world.engine.before_verb = lambda verb: None
    admit_queue("staged", clock=world.clock)
    assert len(decided) == 2
    rows = Reservation.objects.filter(job=job).values_list("attempt", "cpu", "released_at")
    assert list(rows) == [(2, 6, None)]
    world.engine.begin_at_once = True
    world.until_running(job)
    world.engine.succeed(world.again(job))
    world.until_quiet()
    assert not Reservation.objects.filter(released_at__isnull=True).exists()


def test_a_job_that_starts_with_anothers_turn_leaves_it_its_own(world, ada, admin):
    Quota.objects.filter(namespace__owner=ada).update(cpu=4)
    world.launch(ada)
    world.settle()
    low = world.launch(ada, strategy="single", roles={"worker": {"cpu": 4}})
    world.now += timedelta(seconds=1)
    high = world.launch(ada, strategy="single", roles={"worker": {"cpu": 1}}, priority=9)
    world.settle()
    low, high = world.again(low), world.again(high)
    assert (low.phase, high.phase) == ("QUEUED", "RUNNING")
    assert (low.turn_at, high.turn_at) == (high.queued_at, low.queued_at)


def test_ten_thousand_changes_are_a_few_hundred_nudges(monkeypatch, db, django_capture_on_commit_callbacks):
    sent = []
    monkeypatch.setattr(nudges._nudger, "add", lambda change, namespace: sent.append((change, namespace)))
    spaces = [uuid.uuid4() for _ in range(40)]
    jobs = [(uuid.uuid4(), spaces[n % 40]) for n in range(10_000)]
    with django_capture_on_commit_callbacks(execute=True):
        nudges.jobs_changed(jobs)
    assert len(sent) <= 2 * nudges.MOST_AT_ONCE
    assert {namespace for _, namespace in sent} == set(spaces)
    assert [change.job_id for change, _ in sent[:100]] == [job_id for job_id, _ in jobs[:100]]


def test_a_ceiling_that_is_raised_counts_between_namespaces(world, ada, bob, admin, signed_in):
    world.engine._capacity = type(world.engine._capacity)(*[Resources(cpu=3, memory=64 << 30)] * 3)
    world.launch(ada)
    world.settle()
    world.now += timedelta(seconds=1)
    first = world.launch(ada)
    world.now += timedelta(seconds=1)
    high = world.launch(bob, priority=1000)
    world.settle()
    assert (world.again(first).position, world.again(high).position) == (0, 1)
    limits = {"cpu": None, "memory": None, "gpus": None, "storage": None, "running_jobs": None}
    quota = f"/api/v1/namespaces/{high.namespace_id}/quota/"
    assert signed_in(bob).put(quota, {**limits, "priority_ceiling": 5}).status_code == 403
    assert signed_in(admin).put(quota, {**limits, "priority_ceiling": 5}).data["priority_ceiling"] == 5
    world.passes(5)
    assert (world.again(first).position, world.again(high).position) == (1, 0)

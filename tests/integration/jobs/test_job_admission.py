"""Waiting for room: who starts, who is told what, and who is woken when there is some."""

from __future__ import annotations

import pytest

from apps.dispatch import messages
from apps.jobs import services
from apps.jobs.engines.namespaces import bounds_of
from apps.jobs.explanations.why import why
from apps.jobs.models import Job, JobEvent, Reservation
from apps.jobs.selectors import resources_used
from apps.namespaces.models import Membership, Namespace, Quota
from yardmaster.engines.base import Capacity
from yardmaster.job.spec import Resources, Role
from yardmaster.lifecycle.phases import TaskPhase


@pytest.fixture
def small(ada):
    """Ada may hold four cores: room for one job of three."""
    Quota.objects.filter(namespace__owner=ada).update(cpu=4)


def test_of_two_jobs_that_half_fit_one_starts_whole_and_the_other_waits_whole(world, ada, small):
    """trainer#1264, volcano#1387: quota for one, two submitted, both half-started and dead-locked."""
    first, second = world.launch(ada), world.launch(ada)
    world.settle()
    assert [world.again(job).phase for job in (first, second)] == ["RUNNING", "QUEUED"]
    assert len(world.engine.alive(first)) == 3
    assert not Reservation.objects.filter(job=second).exists()
    world.engine.succeed(first)
    world.passes(60)
    assert [world.again(job).phase for job in (first, second)] == ["SUCCEEDED", "RUNNING"]


def test_a_waiting_job_says_what_lacks_how_much_and_who_holds_it(world, ada, small):
    """pai#824, kueue#189, kueue#2833: why does it wait, which resource, who is ahead and what do they hold."""
    first, second, third = (world.launch(ada, name=name) for name in ("first", "second", "third"))
    world.settle()
    told = why(ada, world.again(third), (), world.now)
    assert told.reason == "WaitingForQuota"
    assert told.position == 1
    assert [one["name"] for one in told.ahead] == ["second"]
    assert [one["name"] for one in told.holders] == ["first"]
    cpu = next(one for one in told.numbers if one["resource"] == "cpu")
    assert (cpu["needs"], cpu["unused"], cpu["limit"], cpu["short_by"]) == (3, 1, 4, 2)
    assert "CPU" in told.message
    assert told.remedy
    assert first.pk != second.pk


def test_a_job_that_can_never_start_says_so(world, ada, small):
    """coder#6465: pending may mean that nobody can ever run it; show which."""
    job = world.launch(ada, roles={"worker": {"replicas": 9, "cpu": 1}, "ps": {"replicas": 1, "cpu": 1}})
    world.settle()
    job = world.again(job)
    assert (job.phase, job.reason, job.position) == ("QUEUED", "ExceedsMaxQuota", None)
    assert job.remedy


def test_what_the_reader_may_not_see_is_counted_and_not_named(world, ada, bob):
    world.engine._capacity = type(world.engine._capacity)(*[world.engine._capacity.total * 0] * 3)
    full = world.launch(ada)
    world.settle()
    assert world.again(full).reason in {"ExceedsCapacity", "NoMatchingFlavor"}
    Job.objects.filter(pk=full.pk).update(
        waiting={"ahead": [str(full.pk)], "numbers": [], "holders": [{"job": str(full.pk), "resources": {}}]}
    )
    other = world.launch(bob)
    Job.objects.filter(pk=other.pk).update(waiting=Job.objects.get(pk=full.pk).waiting)
    told = why(bob, world.again(other), (), world.now)
    assert (told.ahead, told.ahead_hidden, told.holders, told.holders_hidden) == ([], 1, [], 1)
    namespace = Namespace.objects.get(owner=ada)
    Membership.objects.create(namespace=namespace, user=bob, role="viewer")
    assert [one["name"] for one in why(bob, world.again(other), (), world.now).ahead] == ["digits"]


def test_a_reason_is_an_event_only_when_it_is_another_one(world, ada, small):
    world.launch(ada)
    second = world.launch(ada)
    world.settle()
    world.passes(120)
    assert JobEvent.objects.filter(job=second, kind="waiting").count() == 1


def test_room_that_is_freed_has_the_queue_decided_at_once(world, ada, small, sent, django_capture_on_commit_callbacks):
    first, second = world.launch(ada), world.launch(ada)
    world.settle()
    world.engine.set(first, Role.WORKER, 0, TaskPhase.FAILED, reason="ScriptFailed", exit_code=1)
    with django_capture_on_commit_callbacks(execute=True):
        world.look(first)
    assert sent.count((messages.ADMIT, "staged")) == 1
    world.settle()
    assert world.again(second).phase == "RUNNING"


def test_more_quota_has_those_decided_who_wait_for_it(
    world, ada, admin, signed_in, small, sent, django_capture_on_commit_callbacks
):
    world.launch(ada)
    second = world.launch(ada)
    world.settle()
    namespace = Namespace.objects.get(owner=ada)
    more = {"cpu": 8, "memory": None, "gpus": None, "storage": None, "running_jobs": None}
    with django_capture_on_commit_callbacks(execute=True):
        assert signed_in(admin).put(f"/api/v1/namespaces/{namespace.pk}/quota/", more).status_code == 200
    assert sent.count((messages.ADMIT, "staged")) == 1
    world.settle()
    assert world.again(second).phase == "RUNNING"


def test_stopping_a_waiting_job_needs_no_engine(world, ada, small):
    world.launch(ada)
    second = world.launch(ada)
    world.settle()
    services.job_stop(user=ada, job=world.again(second))
    world.engine.error = AssertionError("the engine was asked")
    world.look(second)
    second = world.again(second)
    assert second.phase == "STOPPED"


def test_the_higher_priority_starts_first(world, ada, small):
    running, low, high = world.launch(ada), world.launch(ada, name="low"), world.launch(ada, name="high", priority=5)
    world.settle()
    world.engine.succeed(running)
    world.passes(60)
    assert [world.again(job).phase for job in (low, high)] == ["QUEUED", "RUNNING"]


def test_a_smaller_job_passes_one_that_does_not_fit_but_not_for_ever(world, ada, small, settings):
    """volcano#2534: a job that would fit waited behind one that did not."""
    running = world.launch(ada, strategy="single", roles={"worker": {"cpu": 2}})
    large = world.launch(ada, strategy="single", roles={"worker": {"cpu": 4}})
    small_one = world.launch(ada, strategy="single", roles={"worker": {"cpu": 2}})
    world.settle()
    assert [world.again(job).phase for job in (running, large, small_one)] == ["RUNNING", "QUEUED", "RUNNING"]
    world.engine.succeed(small_one)
    world.passes(settings.YARDMASTER_PASSING_LIMIT.total_seconds() + 60)
    late = world.launch(ada, strategy="single", roles={"worker": {"cpu": 2}})
    world.settle()
    assert world.again(late).phase == "QUEUED"
    world.engine.succeed(running)
    world.passes(60)
    assert world.again(large).phase == "RUNNING"


def test_the_number_of_running_jobs_is_a_quota_and_ends_with_the_verdict(world, ada):
    Quota.objects.filter(namespace__owner=ada).update(running_jobs=1)
    first, second = world.launch(ada, reclaim_delay=600), world.launch(ada)
    world.settle()
    assert world.again(second).reason == "WaitingForQuota"
    world.engine.succeed(first)
    world.look(first)
    world.passes(5)
    assert world.again(second).phase == "RUNNING"
    assert resources_used(Namespace.objects.get(owner=ada))["running_jobs"] == 1


def test_what_is_held_without_a_limit_of_its_own_is_shown_with_the_one_that_follows(world, ada, client):
    """A limit on GPUs that came after: what runs goes on, above it."""
    extended = {"nvidia.com/mig-1g.5gb": 1, "rdma/hca": 3}
    total = Resources(8, 64 << 30, extended=dict.fromkeys(extended, 8))
    world.engine._capacity = Capacity(total, total, total)
    small = {"replicas": 1, "cpu": 1, "memory": "1Gi"}
    world.until_running(world.launch(ada, roles={"worker": {**small, "extended": extended}, "ps": small}))
    address = f"/api/v1/namespaces/{ada.personal_namespace.pk}/quota/"
    client.force_login(ada)
    held = {name: {"hard": None, "used": amount} for name, amount in extended.items()}
    assert client.get(address).json()["extended"] == held
    Quota.objects.filter(namespace=ada.personal_namespace).update(gpus=0)
    held["nvidia.com/mig-1g.5gb"]["hard"] = 0
    assert client.get(address).json()["extended"] == held
    assert bounds_of(ada.personal_namespace.pk, "staged").extended["nvidia.com/mig-1g.5gb"] == 1


def test_what_is_used_is_what_is_reserved(world, ada):
    world.launch(ada)
    world.settle()
    used = resources_used(Namespace.objects.get(owner=ada))
    assert (used["cpu"], used["memory"], used["gpus"], used["running_jobs"]) == (3, 3 << 30, 0, 1)

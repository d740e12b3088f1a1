"""Jobs whose stored specification breaks today's rules, or is none any more: they end properly and their pages open."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import models
from django.urls import reverse

from apps.jobs import services
from apps.jobs.models import Job, JobAttempt, Reservation, TaskFact
from apps.jobs.state import ledger
from apps.jobs.worker.queue_pass import admit_queue
from apps.jobs.worker.reconcile import reconcile
from yardmaster.errors import SpecRejected, SpecUnreadable
from yardmaster.job.spec import Role
from yardmaster.job.spec_limits import SpecLimits
from yardmaster.lifecycle.phases import TaskPhase

STRICT = SpecLimits(size=256 << 10, tasks=1, arguments=0, variables=0, retries=0, memory=1 << 20)


@pytest.fixture
def tightened(settings):
    """A release whose rules none of the jobs here obeys comes while they are there."""

    def tighten() -> None:
        settings.YARDMASTER_SPEC_LIMITS = STRICT

    return tighten


@pytest.fixture
def running(world, ada) -> Job:
    job = world.launch(ada, arguments=["--steps=600"], environment={"A": "1"})
    world.until_running(job)
    return world.again(job)


COLUMNS_TOO = {"strategy": "of another release"}


def damage(job: Job, spec: Any) -> None:
    """Write this in the place of the stored specification, past every rule; with `COLUMNS_TOO` also a strategy and
    roles that this release does not know."""
    Job.objects.filter(pk=job.pk).update(spec=spec)
    JobAttempt.objects.filter(job=job).update(spec=spec)
    if spec is COLUMNS_TOO:
        Job.objects.filter(pk=job.pk).update(strategy="tpu_pods")
        TaskFact.objects.filter(job=job, role="ps").update(role="sidecar")
        models.QuerySet.update(models.QuerySet(Reservation).filter(job=job, role="ps"), role="sidecar")


def test_a_running_job_goes_on_under_tightened_rules_and_succeeds(world, running, tightened):
    tightened()
    world.passes(60)
    assert world.again(running).phase == "RUNNING"
    world.engine.succeed(running)
    world.until_quiet()
    assert world.again(running).phase == "SUCCEEDED"
    assert not ledger.held_roles(running)


def test_a_queued_job_starts_under_tightened_rules(world, ada, tightened):
    job = world.launch(ada)
    tightened()
    world.until_running(job)


def test_a_stopping_job_ends_under_tightened_rules_and_returns_its_quota(world, ada, running, tightened):
    world.engine.stubborn = {(Role.WORKER, 0)}
    services.job_stop(user=ada, job=running)
    world.settle()
    assert world.again(running).phase == "STOPPING"
    tightened()
    world.until_quiet()
    assert world.again(running).is_over
    assert not ledger.held_roles(running)


def test_a_retry_is_checked_and_says_what_is_wrong_now(world, ada, running, tightened):
    services.job_stop(user=ada, job=running)
    world.until_quiet()
    tightened()
    with pytest.raises(SpecRejected) as refused:
        services.job_retry(user=ada, job=world.again(running))
    assert {"roles", "arguments", "environment", "retries"} <= {one.field for one in refused.value.problems}
    assert world.again(running).attempt == 1


@pytest.mark.parametrize("stored", ["tightened", "damaged", "empty", "columns"])
@pytest.mark.parametrize("page", ["job_page", "job_delete_page", "log_page"])
def test_the_pages_of_an_old_job_open_whatever_its_specification_is(
    world, ada, client, running, tightened, stored, page
):
    services.job_stop(user=ada, job=running)
    world.until_quiet()
    tightened()
    if stored != "tightened":
        damaged = {"strategy": "between_graph", "roles": "two"}
        damage(running, {"damaged": damaged, "columns": COLUMNS_TOO}.get(stored, {}))
    client.force_login(ada)
    assert client.get(reverse(page, args=[running.pk])).status_code == 200
    for address in ("", "why/", "tasks/", "attempts/"):
        assert client.get(f"/api/v1/jobs/{running.pk}/{address}").status_code == 200
    assert client.get(reverse("job_compare_page"), {"job": str(running.pk)}).status_code == 200


def test_a_failure_of_a_task_whose_role_is_of_another_release_is_shown_without_its_lines(world, ada, client, running):
    world.engine.set(running, Role.WORKER, 0, TaskPhase.FAILED, exit_code=1, reason="ScriptFailed")
    world.until_quiet()
    JobAttempt.objects.filter(job=running).update(role="sidecar")
    client.force_login(ada)
    assert client.get(reverse("job_page", args=[running.pk])).status_code == 200
    why = client.get(f"/api/v1/jobs/{running.pk}/why/").json()
    assert (why["task"]["role"], why["last_lines"]) == ("sidecar", [])


DAMAGED = [[], {}, {"strategy": "between_graph", "roles": {"worker": {"replicas": "two"}}}, "text", COLUMNS_TOO]


@pytest.mark.parametrize("spec", DAMAGED)
def test_a_running_job_with_an_unreadable_specification_fails_by_the_platform_and_leaves_nothing(world, running, spec):
    damage(running, spec)
    world.until_quiet()
    job = world.again(running)
    assert (job.phase, job.reason, job.is_over) == ("FAILED", "SpecUnreadable", True)
    assert JobAttempt.objects.get(job=job).blame == "platform"
    assert not world.engine.has(job)
    assert not Reservation.objects.filter(job=job, released_at__isnull=True).exists()


@pytest.mark.parametrize("spec", DAMAGED)
def test_a_stopping_job_with_an_unreadable_specification_stops_and_leaves_nothing(world, ada, running, spec):
    world.engine.stubborn = {(Role.WORKER, 0)}
    services.job_stop(user=ada, job=running)
    world.settle()
    damage(running, spec)
    world.until_quiet()
    job = world.again(running)
    assert (job.phase, job.is_over) == ("STOPPED", True)
    assert not world.engine.has(job)
    assert not Reservation.objects.filter(job=job, released_at__isnull=True).exists()


def test_an_unreadable_job_that_is_to_stop_stops_and_does_not_fail(world, ada, running):
    damage(running, {})
    services.job_stop(user=ada, job=running)
    world.until_quiet()
    assert world.again(running).phase == "STOPPED"


def test_a_queued_job_with_an_unreadable_specification_fails(world, ada):
    job = world.launch(ada)
    damage(job, {})
    world.until_quiet()
    assert (world.again(job).phase, world.again(job).reason) == ("FAILED", "SpecUnreadable")


def test_after_a_verdict_an_unreadable_specification_holds_up_nothing(world, running):
    world.engine.set(running, Role.WORKER, 0, TaskPhase.FAILED, exit_code=1, reason="ScriptFailed")
    world.engine.stubborn = {(Role.WORKER, 1)}
    world.look(running)
    damage(running, {})
    world.until_quiet()
    job = world.again(running)
    assert job.is_over
    assert not ledger.held_roles(job)


def test_retrying_an_unreadable_job_is_refused_and_says_why(world, ada, running):
    services.job_stop(user=ada, job=running)
    world.until_quiet()
    damage(running, {"strategy": "between_graph"})
    with pytest.raises(SpecUnreadable, match="roles is missing"):
        services.job_retry(user=ada, job=world.again(running))


def test_a_job_from_before_an_upgrade_is_given_how_long_it_runs_at_most(world, ada):
    waiting, running = world.launch(ada, max_runtime=3600), world.launch(ada, max_runtime=3600)
    Job.objects.filter(pk=waiting.pk).update(held_back_until=world.now + timedelta(days=1))
    world.until_running(running)
    for job in (waiting, running):
        needs = world.again(job).needs
        assert needs["longest"] > 3600
        without = {name: value for name, value in needs.items() if name != "longest"}
        Job.objects.filter(pk=job.pk).update(needs=without)
        reconcile(job.pk, clock=world.clock)
        assert world.again(job).needs == needs


DAMAGED_NEEDS = [{}, [], {"cpu": "two", "memory": 1, "gpus": 0, "extended": {}, "tasks": {}, "roles": {}}]


@pytest.mark.parametrize("needs", DAMAGED_NEEDS)
def test_damaged_needs_of_a_queued_job_stop_no_other_and_are_mended_by_the_next_look(world, ada, needs):
    damaged, healthy = world.launch(ada), world.launch(ada)
    Job.objects.filter(pk=damaged.pk).update(needs=needs)
    admit_queue("staged", clock=world.clock)
    assert [world.again(job).phase for job in (damaged, healthy)] == ["QUEUED", "STARTING"]
    world.until_running(damaged)

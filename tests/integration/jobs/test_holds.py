"""Engines, namespaces and jobs that are held: what waits is told why, what runs goes on, and lifting starts it."""

from __future__ import annotations

import pytest

from apps.audit.models import AuditEvent
from apps.jobs.models import Cause, Hold
from apps.jobs.services import job_retry, job_stop
from apps.jobs.state.holds import hold, lift
from apps.jobs.worker.queue_pass import admit_queue


def decide(world, job):
    admit_queue("staged", clock=world.clock)
    job.refresh_from_db()
    return job


@pytest.mark.parametrize(
    ("target", "code"), [("engine", "Suspended"), ("namespace", "Suspended"), ("job", "Held")]
)  # fmt: skip
def test_what_is_held_does_not_start_and_says_why_until_the_hold_is_lifted(world, ada, admin, target, code):
    job = world.launch(ada)
    held = {"engine": "staged", "namespace": job.namespace, "job": job}[target]
    hold(held, reason="The disks are replaced until 18:00.", actor=admin)
    decide(world, job)
    assert (job.phase, job.reason) == ("QUEUED", code)
    assert job.message.endswith("The disks are replaced until 18:00.")
    assert lift(held, actor=admin)
    assert decide(world, job).phase == "STARTING"
    assert not lift(held, actor=admin), "nothing held it any more"
    told = AuditEvent.objects.filter(action__startswith="hold.").order_by("pk")
    assert [one.action for one in told] == ["hold.set", "hold.lift"]


def test_a_budget_and_an_administrator_hold_a_namespace_each_for_themselves(world, ada, admin):
    job = world.launch(ada)
    hold(job.namespace, reason="", actor=None, cause=Cause.BUDGET)
    assert decide(world, job).reason == "BudgetSpent"
    hold(job.namespace, reason="Old reason", actor=admin)
    hold(job.namespace, reason="Moved", actor=admin)
    assert Hold.objects.count() == 2, "held again: the newest reason counts"
    assert decide(world, job).reason == "Suspended"
    lift(job.namespace, actor=None, cause=Cause.BUDGET)
    assert decide(world, job).message.endswith("Moved")


def test_others_go_on_while_a_namespace_is_held(world, ada, bob, admin):
    held, free = world.launch(ada), world.launch(bob)
    hold(held.namespace, reason="", actor=admin)
    assert decide(world, free).phase == "STARTING"
    assert decide(world, held).phase == "QUEUED"


def test_a_retry_is_not_held_for_what_its_last_attempt_waited_for(world, ada, admin):
    job = world.launch(ada)
    hold(job, reason="Ask first", actor=admin)
    job_stop(user=ada, job=decide(world, job))
    world.until_quiet()
    job_retry(user=ada, job=world.again(job))
    assert decide(world, job).phase == "STARTING"

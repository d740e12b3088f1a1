"""Launching with a class of priority: who may, and what becomes of it."""

from __future__ import annotations

import pytest

from apps.jobs.services import job_retry
from apps.jobs.state.books import queued_on
from apps.namespaces.models import PriorityClass, Quota
from apps.namespaces.share_models import Users
from yardmaster.errors import SpecRejected


def test_a_class_gives_the_job_its_number_which_counts_above_the_ceiling(world, ada):
    PriorityClass.objects.create(name="urgent", value=500)
    job = world.launch(ada, priority_class="urgent")
    assert (job.priority, job.priority_class, job.spec["priority"]) == (500, "urgent", 500)
    (one,) = queued_on("staged", world.engine.capacity())
    assert one.candidate.is_granted
    assert Quota.objects.get(namespace=job.namespace).priority_ceiling == 0


def test_a_class_one_has_no_right_to_is_refused_with_those_one_has(world, ada, admin):
    PriorityClass.objects.create(name="urgent", value=500, users=Users.ADMINISTRATORS)
    PriorityClass.objects.create(name="usual", value=10)
    named = PriorityClass.objects.create(name="paper", value=100, users=Users.NAMESPACES)
    for name in ("urgent", "paper", "unknown"):
        with pytest.raises(SpecRejected) as refused:
            world.launch(ada, priority_class=name)
        (problem,) = refused.value.problems
        assert (problem.field, problem.code) == ("priority_class", "priority_class_forbidden")
        assert problem.remedy == "Use one of: usual."
    named.namespaces.add(ada.personal_namespace)
    assert world.launch(ada, priority_class="paper").priority == 100
    assert world.launch(admin, priority_class="urgent").priority == 500


def test_the_default_class_is_of_jobs_that_say_neither(world, ada):
    PriorityClass.objects.create(name="usual", value=10, is_default=True)
    said, unsaid = world.launch(ada, priority=-5), world.launch(ada)
    assert (said.priority, said.priority_class) == (-5, "")
    assert (unsaid.priority, unsaid.priority_class) == (10, "usual")


def test_a_retry_does_without_a_class_that_is_gone_or_no_longer_allowed(world, ada):
    gone = PriorityClass.objects.create(name="usual", value=10, is_default=True)
    job = world.launch(ada)
    world.until_running(job)
    world.engine.succeed(job)
    world.until_quiet()
    gone.delete()
    job_retry(user=ada, job=world.again(job))
    assert (world.again(job).priority, world.again(job).priority_class) == (0, "")

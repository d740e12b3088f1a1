"""Parameter servers that fail once their workers have ended: the job has succeeded, and none of them has failed."""

from __future__ import annotations

import pytest

from apps.jobs.explanations.task_cards import task_cards
from apps.jobs.models import JobEvent, TaskFact
from apps.jobs.selectors import facts_of
from yardmaster.job.spec import Role
from yardmaster.job.spec_stored import stored_spec
from yardmaster.lifecycle.phases import TaskPhase

pytestmark = pytest.mark.django_db


def server_of(job):
    return TaskFact.objects.get(job=job, role="ps", index=0)


def test_a_server_that_fails_after_the_verdict_is_released(world, ada):
    job = world.launch(ada, reclaim_delay=300)
    world.until_running(job)
    world.engine.succeed(job)
    world.look(job)
    assert world.again(job).phase == "SUCCEEDED"
    world.engine.set(job, Role.PS, 0, TaskPhase.FAILED, exit_code=134, reason="Crashed", message="It aborted.")
    world.look(job)
    assert (server_of(job).phase, server_of(job).message) == ("RELEASED", "")
    assert not JobEvent.objects.filter(job=job, kind="task_failed").exists()
    TaskFact.objects.filter(pk=server_of(job).pk).update(reported={"message": "The script was killed.", "exit_code": 1})
    job = world.again(job)
    card = next(one for one in task_cards(job, stored_spec(job.spec), facts_of(job), world.now) if one.name == "ps-0")
    assert (card.phase, card.exit_words, card.message) == ("RELEASED", "", "")


def test_a_server_that_is_seen_to_fail_together_with_the_end_of_the_workers_is_released(world, ada):
    job = world.launch(ada, reclaim_delay=300)
    world.until_running(job)
    world.engine.succeed(job)
    world.engine.set(job, Role.PS, 0, TaskPhase.FAILED, exit_code=134, reason="Crashed", message="It aborted.")
    world.look(job)
    assert world.again(job).phase == "SUCCEEDED"
    assert server_of(job).phase == "RELEASED"


def test_a_server_that_fails_while_it_is_needed_has_failed(world, ada):
    job = world.launch(ada, retries=0)
    world.until_running(job)
    world.engine.set(job, Role.PS, 0, TaskPhase.FAILED, exit_code=1)
    world.until_quiet()
    assert world.again(job).phase == "FAILED"
    assert server_of(job).phase == "FAILED"
    assert JobEvent.objects.filter(job=job, kind="task_failed").exists()

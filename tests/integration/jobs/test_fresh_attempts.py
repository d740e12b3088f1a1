"""A new attempt continues from the newest checkpoint or starts from the beginning; each has its own curves."""

from __future__ import annotations

import pytest

from apps.jobs.models import ScalarPoint
from apps.jobs.services import job_retry
from tests.integration.jobs.test_task_api import report, sent
from tests.integration.jobs.world import task_of
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import TaskPhase

pytestmark = pytest.mark.django_db


@pytest.fixture
def succeeded(world, job):
    sent(task_of(job), "checkpoints", step=7)
    world.engine.succeed(job)
    world.until_quiet()
    assert world.again(job).phase == "SUCCEEDED"
    return world.again(job)


def step_of(job) -> int | None:
    """The step from which a task of the job's current attempt continues."""
    order = task_of(job, attempt=job.attempt).get("/api/v1/task/order/", {"role": "worker", "index": 0}).json()
    return order["checkpoint"] and order["checkpoint"]["step"]


def fail(world, job):
    world.until_running(world.again(job))
    world.engine.set(world.again(job), Role.WORKER, 0, TaskPhase.FAILED, reason="ScriptFailed", exit_code=1)
    world.until_quiet()
    return world.again(job)


@pytest.mark.parametrize(("body", "step"), [({}, None), ({"resume": False}, None), ({"resume": True}, 7)])
def test_a_job_that_has_succeeded_starts_afresh_unless_it_is_to_continue(world, succeeded, ada, signed_in, body, step):
    answer = signed_in(ada).post(f"/api/v1/jobs/{succeeded.pk}/retry/", body, format="json")
    assert answer.status_code == 200, answer.json()
    assert step_of(world.again(succeeded)) == step


@pytest.mark.parametrize(("body", "step"), [({}, 7), ({"resume": None}, 7), ({"resume": False}, None)])
def test_a_job_that_has_failed_continues_unless_it_is_to_start_afresh(world, job, ada, signed_in, body, step):
    sent(task_of(job), "checkpoints", step=7)
    fail(world, job)
    assert signed_in(ada).post(f"/api/v1/jobs/{job.pk}/retry/", body, format="json").status_code == 200
    assert step_of(world.again(job)) == step


def test_earlier_checkpoints_do_not_count_again_after_a_fresh_attempt(world, succeeded, ada):
    job_retry(user=ada, job=succeeded)
    failed = fail(world, succeeded)
    job_retry(user=ada, job=failed)
    assert step_of(world.again(failed)) is None
    sent(task_of(failed, attempt=3), "checkpoints", step=2)
    failed = fail(world, failed)
    job_retry(user=ada, job=failed)
    assert step_of(world.again(failed)) == 2


def test_a_value_that_is_no_word_for_it_is_refused(succeeded, ada, signed_in):
    answer = signed_in(ada).post(f"/api/v1/jobs/{succeeded.pk}/retry/", {"resume": "perhaps"}, format="json")
    assert answer.status_code == 422 or answer.status_code == 400
    assert "resume" in answer.content.decode()


@pytest.mark.parametrize(
    ("begin", "words", "step"),
    [("", "starts from the beginning", None), ("checkpoint", "resumes from the latest checkpoint", 7)],
)
def test_the_page_offers_both(world, succeeded, ada, client, begin, words, step):
    client.force_login(ada)
    page = client.get(f"/jobs/{succeeded.pk}/").content.decode()
    assert "Run again" in page
    assert 'id="job-continue"' in page
    done = client.post(f"/jobs/{succeeded.pk}/retry/", {"begin": begin}, follow=True).content.decode()
    assert f"Attempt 2 is queued. It {words}." in done
    assert step_of(world.again(succeeded)) == step


def test_each_attempt_has_its_own_curves_and_says_what_is_not_finite(world, succeeded, ada, signed_in):
    point = {"run": ".", "tag": "loss", "time": 1.0}
    job_retry(user=ada, job=succeeded)
    job = world.again(succeeded)
    ScalarPoint.objects.create(job=job, attempt=1, run=".", tag="loss", step=1, time=1.0, value=0.5)
    scalars = [
        {**point, "step": 1, "value": 0.25},
        {**point, "step": 2, "value": None, "not_finite": "nan"},
        {**point, "step": 3, "value": None, "not_finite": "<script>"},
        {**point, "step": 4, "value": 1.0, "not_finite": "nan"},
    ]
    assert report(task_of(job, attempt=2), scalars=scalars).status_code == 200
    reader = signed_in(ada)
    now = reader.get(f"/api/v1/jobs/{job.pk}/scalars/").json()
    assert (now["attempt"], now["attempts"]) == (2, 2)
    (curve,) = now["results"]
    assert curve["points"] == [[1, 1.0, 0.25], [2, 1.0, None], [3, 1.0, None], [4, 1.0, 1.0]]
    assert curve["not_finite"] == {"2": "nan", "3": "unknown"}
    before = reader.get(f"/api/v1/jobs/{job.pk}/scalars/", {"attempt": 1}).json()
    assert [one["points"] for one in before["results"]] == [[[1, 1.0, 0.5]]]

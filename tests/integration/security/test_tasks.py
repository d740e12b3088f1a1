"""What a task can do with its token beyond its own attempt."""

from __future__ import annotations

import pytest
from django.utils import timezone

from apps.jobs.models import Job, TaskFact
from apps.jobs.services import job_retry
from apps.jobs.state.task_auth import identity_of, token_of
from tests.integration.jobs.conftest import engine_settings, job, stores, world
from tests.integration.jobs.test_task_api import TASK, report
from tests.integration.jobs.world import task_of

__all__ = ["engine_settings", "job", "stores", "world"]


@pytest.fixture
def retried(world, ada, job) -> Job:
    world.engine.succeed(job)
    world.until_quiet()
    job_retry(user=ada, job=world.again(job))
    return world.again(job)


def test_a_task_of_an_earlier_attempt_touches_no_upload_of_a_later_one(retried):
    assert retried.attempt == 2
    body = {"step": 1, "files": [{"path": "a", "size": 3}]}
    upload = task_of(retried, 2).post(f"{TASK}checkpoints/", body).json()["upload"]
    address, late = f"{TASK}uploads/{upload['id']}/", task_of(retried, 1)
    for answer in (
        late.get(address),
        late.post(f"{address}parts/", {"parts": [{"file": 0, "part": 1, "sha256": "0" * 64}]}),
        late.post(f"{address}complete/", {}),
        late.post(f"{TASK}checkpoints/", body),
        late.post(f"{TASK}model/", {"files": body["files"]}),
    ):
        assert answer.status_code in (401, 409)
    assert task_of(retried, 2).get(address).status_code == 200


def test_the_token_of_a_deleted_job_is_good_for_nothing(job):
    token = token_of(job.pk, 1)
    assert identity_of(token, timezone.now()) is not None
    Job.objects.filter(pk=job.pk).update(deleted_at=timezone.now())
    assert identity_of(token, timezone.now()) is None


def test_a_task_invents_no_other_tasks(job):
    """Each would be a row for ever, with a thousand points per report."""
    for other in ({"role": "evaluator"}, {"index": 2}, {"index": 2**31 - 1}):
        assert report(task_of(job), **other).status_code == 404
    assert not TaskFact.objects.filter(job=job, index__gt=1).exists()


def test_a_task_reaches_nothing_but_the_task_api(job):
    for path in ("me/", "jobs/", f"jobs/{job.pk}/", f"jobs/{job.pk}/logs/", "datasets/", "tokens/", "users/"):
        assert task_of(job).get(f"/api/v1/{path}").status_code == 401

"""A job with a log store of its own, written and read over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from apps.accounts.models import User
from apps.jobs.models import Job, JobAttempt
from apps.logs.intake import RememberedTaskToken
from apps.namespaces.selectors import namespace_for
from apps.stores import log_store
from tests.integration.jobs.world import task_of
from yardmaster.job.spec import Role
from yardmaster.logs.keys import StreamKey
from yardmaster.logs.store import LogStore

SPEC = {"roles": {"worker": {"replicas": 4}, "ps": {"replicas": 2}, "chief": {"replicas": 1}}}
"""What tokens look at: the tasks that there are."""


@pytest.fixture(autouse=True)
def store(settings, tmp_path: Path) -> Iterator[LogStore]:
    settings.YARDMASTER_LOGS_ROOT = tmp_path / "logs"
    settings.CHANNEL_LAYERS = {}
    log_store.cache_clear()
    RememberedTaskToken.known.clear()
    yield log_store()
    log_store.cache_clear()


def job_of(user: User) -> Job:
    now = timezone.now()
    job = Job.objects.create(
        namespace=namespace_for(user, None),
        owner=user,
        name="digits",
        engine="local",
        strategy="single",
        spec={},
        needs={},
        queued_at=now,
    )
    JobAttempt.objects.create(job=job, number=1, spec=SPEC, queued_at=now)
    return job


@pytest.fixture
def job(ada: User) -> Job:
    return job_of(ada)


def worker(job: Job, index: int = 0, attempt: int = 1) -> StreamKey:
    return StreamKey(job.pk, attempt, Role.WORKER, index)


@pytest.fixture
def task() -> Callable[..., APIClient]:
    return task_of

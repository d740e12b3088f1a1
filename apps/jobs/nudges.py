"""Tell open pages that a job has changed. A nudge carries ids, never truth: a lost one costs the reader time only.

Not here: who may listen (`consumers`).
"""

from __future__ import annotations

import asyncio
import logging
import uuid

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction
from redis.exceptions import RedisError

from apps.jobs.models import Job

log = logging.getLogger(__name__)
PATIENCE = 1.0
"""Seconds that a caller may lose to a message server that does not answer."""


def group_of_job(job_id: uuid.UUID) -> str:
    return f"job.{job_id.hex}"


def group_of_namespace(namespace_id: uuid.UUID) -> str:
    return f"jobs.{namespace_id.hex}"


ALL_JOBS = "jobs.all"
"""The group of administrators who watch every namespace."""


def job_changed(job: Job) -> None:
    """Nudge whoever watches this job or its namespace, once the transaction is committed. Never raises."""
    job_id, namespace_id = job.pk, job.namespace_id
    transaction.on_commit(lambda: _send(job_id, namespace_id))


def _send(job_id: uuid.UUID, namespace_id: uuid.UUID) -> None:
    try:
        async_to_sync(_send_to_groups)(job_id, namespace_id)
    except (RedisError, OSError, TimeoutError) as error:
        log.warning("Nobody was told that job %s changed: %s", job_id, error)


async def _send_to_groups(job_id: uuid.UUID, namespace_id: uuid.UUID) -> None:
    layer = get_channel_layer()
    message = {"type": "job.changed", "id": str(job_id)}
    async with asyncio.timeout(PATIENCE):
        for group in (group_of_job(job_id), group_of_namespace(namespace_id), ALL_JOBS):
            await layer.group_send(group, message)

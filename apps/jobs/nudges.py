"""Tell open pages that a job has changed. A nudge carries ids, never truth: a lost one costs the reader time only.

Not here: how they are sent (`apps.api.nudging`), and who may listen (`consumers`).
"""

from __future__ import annotations

import uuid

from django.db import transaction

from apps.api.nudging import Nudger, tell
from apps.jobs.models import Job

ALL_JOBS = "jobs.all"
"""The group of administrators who watch every namespace."""


def group_of_job(job_id: uuid.UUID) -> str:
    return f"job.{job_id.hex}"


def group_of_namespace(namespace_id: uuid.UUID) -> str:
    return f"jobs.{namespace_id.hex}"


def job_changed(job: Job) -> None:
    """Nudge whoever watches this job or its namespace, soon after the transaction is committed. Never raises."""
    job_id, namespace_id = job.pk, job.namespace_id
    transaction.on_commit(lambda: _nudger.add(job_id, namespace_id))


async def send(changed: dict[uuid.UUID, uuid.UUID]) -> None:
    """Nudge the groups of these jobs (namespace by job)."""
    for job_id, namespace_id in changed.items():
        for group in (group_of_job(job_id), group_of_namespace(namespace_id), ALL_JOBS):
            await tell(group, {"type": "job.changed", "id": str(job_id)})


_nudger = Nudger("changed jobs", send)

"""Tell open pages that a job has changed. A nudge carries ids, never truth: a lost one costs the reader time only.

Not here: how they are sent (`apps.api.nudging`), and who may listen (`consumers`).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from apps.api.nudging import Nudger, tell
from apps.jobs.models import Job

ALL_JOBS = "jobs.all"
"""The group of administrators who watch every namespace."""
MOST_AT_ONCE = 100


@dataclass(frozen=True)
class Change:
    """That a job has changed; `is_detail`: nothing that ends a wait for its next phase."""

    job_id: uuid.UUID
    is_detail: bool = False


def group_of_job(job_id: uuid.UUID) -> str:
    return f"job.{job_id.hex}"


def group_of_namespace(namespace_id: uuid.UUID) -> str:
    return f"jobs.{namespace_id.hex}"


def job_changed(job: Job, *, is_detail: bool = False) -> None:
    """Notify all who watch this job or its namespace, soon after the transaction is committed. Never raises.

    `is_detail`: its progress, its tasks or its results, but neither its phase nor what is wanted of it.
    """
    change, namespace_id = Change(job.pk, is_detail), job.namespace_id
    nudger = _details if is_detail else _nudger
    transaction.on_commit(lambda: nudger.add(change, namespace_id))


def jobs_changed(jobs: Sequence[tuple[uuid.UUID, uuid.UUID]]) -> None:
    """Nudge those who watch some of these jobs (id and namespace), the first of them, and of the others one of each
    namespace: ten thousand nudges at once would keep the message server from everything else."""
    far = {namespace_id: job_id for job_id, namespace_id in jobs[MOST_AT_ONCE:]}
    near = [
        *jobs[:MOST_AT_ONCE],
        *((job_id, namespace_id) for namespace_id, job_id in list(far.items())[:MOST_AT_ONCE]),
    ]

    def nudge() -> None:
        for job_id, namespace_id in near:
            _nudger.add(Change(job_id), namespace_id)

    transaction.on_commit(nudge)


async def send(changed: dict[Change, uuid.UUID]) -> None:
    """Nudge the groups of these jobs (namespace by change)."""
    for change, namespace_id in changed.items():
        message: dict[str, str] = {"type": "job.changed", "id": str(change.job_id)}
        if change.is_detail:
            message["about"] = "details"
        for group in (group_of_job(change.job_id), group_of_namespace(namespace_id), ALL_JOBS):
            await tell(group, message)


_nudger = Nudger("changed jobs", send)
_details = Nudger("details of jobs", send)
"""BoundedProcess, since a nudger rests after each round: a job's end shall not wait because its tasks ended just
before."""

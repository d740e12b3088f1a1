"""What a job publishes, as its page and the API show it; that the user may see the job was checked before."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.datasets.models import DatasetVersion
from apps.jobs.models import Job, Publication
from yardmaster.lifecycle.phases import Phase

PENDING = "pending"


@dataclass(frozen=True)
class Published:
    """`version` None: not yet there, or deleted since."""

    state: str
    dataset: str
    target: DatasetVersion | None
    problem: Mapping[str, Any] | None
    facts: Mapping[str, Any]

    @property
    def version(self) -> uuid.UUID | None:
        return None if self.target is None else self.target.pk

    @property
    def number(self) -> int | None:
        return None if self.target is None else self.target.number

    @property
    def records(self) -> int | None:
        """Of a preparation."""
        found: int | None = self.facts.get("records")
        return found

    @property
    def skipped(self) -> int | None:
        """Records that it left out."""
        found: int | None = self.facts.get("skipped")
        return found

    @property
    def bad(self) -> Sequence[str]:
        return list(self.facts.get("bad", ()))


def published_by(job: Job) -> Published | None:
    """Of the current attempt; None where it publishes nothing."""
    meant = job.spec.get("publishes") if isinstance(job.spec, dict) else None
    if not isinstance(meant, dict):
        return None
    name = str(meant.get("dataset", ""))
    found = Publication.objects.filter(job=job, attempt=job.attempt).first()
    if found is None and Phase(job.phase).is_final:  # ended before any of its tasks had something to send
        return Published(Publication.State.DROPPED.value, name, None, None, {})
    if found is None or found.state == Publication.State.COLLECTING:
        return Published(PENDING, name, None, None, {})
    versions = DatasetVersion.objects.select_related("parent")
    target = None if found.version_id is None else versions.filter(pk=found.version_id).first()
    return Published(found.state, name, target, found.problem, found.facts)

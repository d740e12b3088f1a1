"""How long what an ended job has is kept by the rules of retention, in words. Reads only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from apps.jobs.models import Job
from apps.jobs.state.retention import fates_of
from yardmaster.lifecycle.retention import Kind, Spared

TITLES = {Kind.LOGS: "Log", Kind.FILES: "Files", Kind.JOBS: "Job"}
_WHY = {
    Spared.PINNED: "kept while it is pinned",
    Spared.IN_USE: "kept while a sweep, a schedule, a session or a publication uses the job",
    Spared.HELD: "kept while the job is on hold",
    Spared.MODEL: "kept while a version of a model comes from the job",
    Spared.TAGGED: "kept for its tags",
    Spared.NOT_ARCHIVED: "kept until it is archived",
    Spared.NEWEST: "kept while the job is among the newest of the namespace",
}


@dataclass(frozen=True)
class KeptLine:
    """One kind that a rule is for. `spared`: why it stays all the same; empty: it goes at `until` or soon after."""

    kind: Kind
    until: datetime
    spared: str

    @property
    def title(self) -> str:
        return f"{TITLES[self.kind]} kept"


def kept_of(job: Job, now: datetime) -> list[KeptLine]:
    """By kind; nothing of a job that has not ended goes."""
    if not job.is_over:
        return []
    return [
        KeptLine(kind, one.due_at, "" if one.spared is None else _WHY[one.spared])
        for kind, one in fates_of(job, now).items()
        if one.due_at is not None
    ]


def kept_shown(job: Job, now: datetime) -> dict[str, Any]:
    """What the part of a page needs. `is_going`: something goes unless the job is pinned."""
    lines = kept_of(job, now)
    return {"job": job, "lines": lines, "now": now, "is_going": any(not one.spared for one in lines)}

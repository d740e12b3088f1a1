"""Jobs that can never start as limits and machines are now: launched only where that is accepted, and shown apart.

What is certain counts alone: a task larger than the largest machine, a job larger than its namespace's whole quota or
than the engine. What an engine has is unknown while it does not answer: then no question is put, and the queue decides.
Should limits change so that the job fits, it waits like any other from its next look on.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Q

from apps.errors import Conflict
from apps.jobs.engines.configured import engine_named
from apps.jobs.explanations.waiting_words import shortage_json
from apps.jobs.models import Job
from apps.namespaces.models import Namespace, limits_of
from apps.namespaces.models import Quota as QuotaRow
from yardmaster.engines.base import Capacity
from yardmaster.errors import YardmasterError
from yardmaster.job.spec import TrainingSpec
from yardmaster.lifecycle.phases import Phase
from yardmaster.queueing.admission import Never, never_fits
from yardmaster.queueing.fitting import largest_fit
from yardmaster.queueing.ledger import NEVER_FITS, Candidate, Ledger, Quota, Room

NEVER = "never_fits"
WAITING = "waiting"
REASONS = sorted(code.value for code in NEVER_FITS)
IS_NEVER = Q(phase=Phase.QUEUED.value, reason__in=REASONS)
"""Queued jobs that can never start as things are."""


@dataclass(frozen=True)
class Hopeless:
    """Why the job can never start, and the largest shape of it that could if nothing else ran."""

    never: Never
    largest_fit: Mapping[str, int] | None

    def columns(self) -> dict[str, Any]:
        """What the job's row says of it until its first look."""
        return {
            "reason": self.never.code.value,
            "message": self.never.message,
            "remedy": self.never.remedy,
            "waiting": {"numbers": self.numbers, "ahead": [], "holders": []},
        }

    @property
    def numbers(self) -> list[dict[str, Any]]:
        return [shortage_json(one) for one in self.never.numbers]


class NeverFits(Conflict):
    """The job would be queued for ever. A caller that wants that all the same says so."""

    def __init__(self, found: Hopeless) -> None:
        remedy = f"{found.never.remedy} To queue it anyway, send accept_never_fits: true."
        super().__init__(found.never.message, NEVER, remedy=remedy)
        self.found = found
        self.facts = {
            "reason": found.never.code.value, "numbers": found.numbers, "largest_fit": found.largest_fit,
        }  # fmt: skip


def never_starts(spec: TrainingSpec, namespace_id: uuid.UUID, engine: str, now: datetime) -> Hopeless | None:
    """Why the job can never start; None where it can, or where that is not known. Reads the namespace's quota alone,
    never the queue."""
    try:
        capacity = engine_named(engine).capacity()
    except YardmasterError:
        return None
    candidate = Candidate.of(spec, job_id=uuid.UUID(int=0), namespace_id=namespace_id, queued_at=now)
    idle = Ledger(_idle(capacity), quotas=_quotas(namespace_id))
    never = never_fits(candidate, idle)
    if never is None:
        return None
    shape = largest_fit(spec, candidate, (), idle, now)
    return Hopeless(never, None if shape is None else {role.value: count for role, count in shape.items()})


def _idle(capacity: Capacity) -> Room:
    """As if no job ran."""
    nodes = tuple(replace(one, free=one.total, bound=()) for one in capacity.nodes)
    return Room(capacity.total, capacity.total, capacity.largest_task, nodes=nodes)


def accepted_or_refused(
    spec: TrainingSpec, namespace: Namespace, engine: str, now: datetime, *, accept: bool
) -> dict[str, Any]:
    """What the row of a job that is being queued says of it: nothing where it can start. Raises `NeverFits` where it
    cannot and that is not accepted."""
    found = never_starts(spec, namespace.pk, engine, now)
    if found is None:
        return {}
    if not accept:
        raise NeverFits(found)
    return found.columns()


def queue_state(job: Job) -> str | None:
    """`waiting` or `never_fits` of a queued job; None of any other."""
    if job.phase != Phase.QUEUED.value:
        return None
    return NEVER if job.reason in REASONS else WAITING


def _quotas(namespace_id: uuid.UUID) -> dict[uuid.UUID, Quota]:
    row = QuotaRow.objects.filter(namespace_id=namespace_id).first()
    return {} if row is None else {namespace_id: limits_of(row)}

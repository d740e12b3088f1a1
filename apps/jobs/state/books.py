"""What admission receives from the database: who waits for an engine, and what is held. A fixed number of statements,
however many jobs there are, and no specification is read.
"""

from __future__ import annotations

import logging
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef

from apps.jobs.models import Job
from apps.jobs.state import ledger
from apps.jobs.state.elsewhere import with_clusters
from apps.jobs.state.holds import closed_for
from apps.jobs.state.pinned import named_nodes, pinned
from apps.jobs.state.preemptions import Allowed, allowed_on
from apps.jobs.state.shares import groups_above, shares_on
from apps.jobs.state.windows import booked_on
from apps.namespaces.models import PriorityClass, limits_of
from apps.namespaces.models import Quota as QuotaRow
from yardmaster.engines.base import Capacity
from yardmaster.job.spec import NOTHING, Resources, Role
from yardmaster.queueing.ledger import Candidate, EngineCapacity, Ledger, Usage
from yardmaster.queueing.needs import JobNeeds, needs_or_none
from yardmaster.queueing.placement import Tasks

log = logging.getLogger(__name__)

_COLUMNS = (
    "pk", "namespace_id", "queued_at", "priority", "needs", "turn_at", "priority_class", "attempt", "reason",
    "waiting_digest", "takes_places", "place_at",
)  # fmt: skip


@dataclass(frozen=True)
class Queued:
    """A job that waits: what admission asks of it, what each role would hold, and what is written of its waiting."""

    candidate: Candidate
    attempt: int
    roles: Mapping[str, Resources]
    reason: str
    digest: str
    takes_places: bool = False
    """Its class may take the places of running jobs of lower priority."""

    @property
    def replicas(self) -> dict[str, int]:
        """How many tasks each role has."""
        return {one.role: one.count for one in self.candidate.tasks}


def queued_on(engine: str, capacity: Capacity) -> list[Queued]:
    """Every job that waits for the engine. One whose needs are damaged is passed over: a look at it mends them.
    `capacity`: as the engine said it, for jobs that run on certain nodes alone."""
    preempting = PriorityClass.objects.filter(name=OuterRef("priority_class"), preempts=True)
    jobs = Job.objects.waiting().filter(engine=engine).annotate(takes_places=Exists(preempting))
    found = (_queued(capacity, *row) for row in jobs.values_list(*_COLUMNS))
    return [one for one in found if one is not None]


def _queued(
    capacity: Capacity, job_id: uuid.UUID, namespace_id: uuid.UUID, queued_at: Any, priority: int,
    needs: Mapping[str, Any], turn_at: Any, priority_class: str, attempt: int, reason: str, digest: str,
    takes_places: bool, place_at: Any,
) -> Queued | None:  # fmt: skip
    known = needs_or_none(needs)
    if known is None:
        log.error("The job %s cannot be decided: what it needs is damaged in the database", job_id)
        return None
    candidate = Candidate(
        job_id,
        namespace_id,
        queued_at,
        priority,
        known.total,
        pinned(known.tasks, namespace_id, known, capacity),
        turn_at,
        bool(priority_class),
        known.longest,
        place_at,
    )
    return Queued(candidate, attempt, known.roles, reason, digest, takes_places)


def books_of(
    engine: str,
    capacity: Capacity,
    namespaces: Iterable[uuid.UUID],
    allowed: Allowed | None = None,
    now: datetime | None = None,
) -> Ledger:
    """The ledger as one value, as seen by these namespaces: those of the jobs that wait. `allowed`: what is known of
    preemption there, where that was read. `now`: for what is reserved; None: by the clock."""
    namespaces = set(namespaces)
    holders, running = ledger.held_now(engine)
    shares = shares_on(holders, namespaces)
    reserved, held = NOTHING, dict.fromkeys(namespaces, NOTHING)
    for one in holders:
        reserved += one.resources if one.on_engine else NOTHING
        if one.namespace_id in held:
            held[one.namespace_id] += one.resources
    closed = closed_for(engine, namespaces)
    return Ledger(
        capacity=with_clusters(
            EngineCapacity(
                capacity.total,
                capacity.free,
                capacity.largest_task,
                reserved,
                capacity.nodes,
                _promised(engine, capacity) if capacity.nodes else (),
                named_nodes(capacity),
            ),
            holders,
        ),
        quotas={row.namespace_id: limits_of(row) for row in QuotaRow.objects.filter(namespace_id__in=namespaces)},
        usage={key: Usage(amount, running.get(key, 0)) for key, amount in held.items()},
        holders=tuple(one for one in holders if one.on_engine or one.namespace_id in namespaces),
        closed=closed.namespaces,
        engine_closed=closed.engine,
        held_jobs=closed.jobs,
        reasons=closed.reasons,
        booked=booked_on(
            engine,
            (one.job_id for one in holders if one.on_engine),
            now,
            groups_above(shares, {*namespaces, *(one.namespace_id for one in holders if one.on_engine)}),
        ),
        claimants=(allowed or allowed_on(engine)).claimants,
        shares=shares,
    )


def _promised(engine: str, capacity: Capacity) -> tuple[Tasks, ...]:
    """The tasks of admitted jobs that no node has yet: for each role those that are held, less those on nodes."""
    bound = Counter((one.job_id, one.role) for node in capacity.nodes for one in node.bound)
    found = []
    for job_id, tasks in ledger.tasks_on(engine):
        count = tasks.count - bound[job_id, tasks.role]
        if count > 0:
            found.append((job_id, replace(tasks, count=count)))
    known = _needs_of({job_id for job_id, one in found if _may_be_pinned(one)}) if named_nodes(capacity) else {}
    return tuple(pinned((tasks,), *known[job_id], capacity)[0] if job_id in known else tasks for job_id, tasks in found)


def _may_be_pinned(tasks: Tasks) -> bool:
    """Whether they may be those of a job that runs on certain nodes alone: a session, or a Spark job."""
    return tasks.serves or tasks.role in (Role.DRIVER.value, Role.EXECUTOR.value)


def _needs_of(job_ids: set[uuid.UUID]) -> dict[uuid.UUID, tuple[uuid.UUID, JobNeeds]]:
    """Of jobs: the namespace, and what they ask for."""
    rows = Job.objects.filter(pk__in=job_ids).values_list("pk", "namespace_id", "needs") if job_ids else []
    known = ((pk, namespace_id, needs_or_none(needs)) for pk, namespace_id, needs in rows)
    return {pk: (namespace_id, needs) for pk, namespace_id, needs in known if needs is not None}

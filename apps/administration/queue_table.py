"""The queue of an engine for administrators: who waits for what, who holds it, and what is held back. Reads only.

A fixed number of statements, however many jobs wait. Not here: changing any of it (`queue_actions`), and the order
itself (`yardmaster.queueing`).
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from django.db.models import Count, F, Q, QuerySet
from django.utils import timezone

from apps.jobs.engines.configured import engine_names
from apps.jobs.explanations.wait_estimates import Estimate, estimate_beside, with_estimates
from apps.jobs.models import Hold, Job
from yardmaster.queueing.needs import needs_or_none

MOST_SUMMED = 1_000
"""Jobs at the front of the queue that the summary counts."""
MOST_NAMED = 3
_COLUMNS = (
    "id", "name", "namespace", "owner", "engine", "priority", "queued_at", "turn_at", "reason", "message", "position",
    "needs", "waiting", "held_back_until", "attempt", "phase", "namespace__slug", "owner__username",
)  # fmt: skip


@dataclass(frozen=True)
class EngineQueue:
    """An engine, how many jobs wait for it, and the hold that keeps it from starting any."""

    name: str
    waiting: int
    hold: Hold | None


@dataclass(frozen=True)
class Named:
    """A job that holds what others wait for."""

    id: uuid.UUID
    name: str
    namespace: str
    owner: str


@dataclass(frozen=True)
class Waiting:
    """A job that waits. `asked`: its amounts by resource. `holds`: what an administrator or a budget holds of it."""

    job: Job
    asked: Mapping[str, float]
    holders: Sequence[Named]
    more_holders: int
    holds: Sequence[Hold]
    estimate: Estimate | None = None


@dataclass(frozen=True)
class Stuck:
    """So many jobs wait for the same: `resources` by name (empty: for something else, which `reason` says)."""

    count: int
    reason: str
    resources: Sequence[str]
    of_quota: bool
    holders: Sequence[Named] = field(default=())
    more_holders: int = 0


def engine_queues() -> list[EngineQueue]:
    """Every engine of the settings, and those that jobs still wait for, the fullest first. Two statements."""
    counts = dict(Job.objects.queued().order_by().values("engine").annotate(n=Count("pk")).values_list("engine", "n"))
    holds = {one.engine: one for one in Hold.objects.exclude(engine="").select_related("by")}
    names = sorted({*engine_names(), *counts}, key=lambda one: (-counts.get(one, 0), one))
    return [EngineQueue(name, counts.get(name, 0), holds.get(name)) for name in names]


def jobs_waiting(engine: str, search: str = "") -> QuerySet[Job]:
    """The engine's queue in its order; those that were not decided yet, or can never start, come last."""
    found = Job.objects.queued().filter(engine=engine)
    if search:
        words = Q(name__icontains=search) | Q(namespace__slug__icontains=search) | Q(owner__username__iexact=search)
        found = found.filter(words)
    order = (F("position").asc(nulls_last=True), "queued_at", "pk")
    return with_estimates(found.select_related("namespace", "owner").only(*_COLUMNS).order_by(*order))


def shown(jobs: Sequence[Job]) -> list[Waiting]:
    """These jobs with who holds what they wait for, their holds, and when they start. Two statements."""
    holders = named({one for job in jobs for one in _holders(job.waiting)[:MOST_NAMED]})
    wanted = Q(job__in=[one.pk for one in jobs]) | Q(namespace__in={one.namespace_id for one in jobs})
    holds = list(Hold.objects.filter(wanted))
    now = timezone.now()
    return [replace(_shown(job, holders, holds), estimate=estimate_beside(job, now)) for job in jobs]


def _shown(job: Job, holders: Mapping[uuid.UUID, Named], holds: Sequence[Hold]) -> Waiting:
    ids = _holders(job.waiting)
    mine = [one for one in holds if job.pk == one.job_id or job.namespace_id == one.namespace_id]
    needs = needs_or_none(job.needs)
    asked = {name: amount for name, amount in needs.total.as_amounts().items() if amount} if needs else {}
    first = [holders[one] for one in ids[:MOST_NAMED] if one in holders]
    return Waiting(job, asked, first, max(0, len(ids) - len(first)), mine)


def summary(engine: str) -> list[Stuck]:
    """What the engine's jobs wait for, the most jobs first; of the first thousand in the queue. Two statements."""
    rows = Job.objects.queued().filter(engine=engine).order_by(F("position").asc(nulls_last=True), "queued_at", "pk")
    groups: dict[tuple[Any, ...], tuple[int, Counter[uuid.UUID]]] = {}
    for reason, waiting in rows.values_list("reason", "waiting")[:MOST_SUMMED]:
        lacking = waiting.get("numbers", [])
        key = (
            reason or "PendingEvaluation",
            tuple(sorted({one["resource"] for one in lacking})),
            any(one["pool"] == "quota" for one in lacking),
        )
        count, holders = groups.get(key, (0, Counter()))
        holders.update(_holders(waiting))
        groups[key] = (count + 1, holders)
    first = {one for _, holders in groups.values() for one, _ in holders.most_common(MOST_NAMED)}
    names = named(first) if first else {}
    found = [_stuck(key, count, holders, names) for key, (count, holders) in groups.items()]
    return sorted(found, key=lambda one: (-one.count, one.reason))


def _stuck(key: tuple[Any, ...], count: int, holders: Counter[uuid.UUID], names: Mapping[uuid.UUID, Named]) -> Stuck:
    reason, resources, of_quota = key
    first = [names[one] for one, _ in holders.most_common(MOST_NAMED) if one in names]
    return Stuck(count, reason, resources, of_quota, first, max(0, len(holders) - len(first)))


def named(ids: set[uuid.UUID]) -> dict[uuid.UUID, Named]:
    """What these jobs are called. One statement."""
    rows = Job.objects.filter(pk__in=ids).values_list("pk", "name", "namespace__slug", "owner__username")
    return {pk: Named(pk, *words) for pk, *words in rows}


def _holders(waiting: Mapping[str, Any]) -> list[uuid.UUID]:
    return [uuid.UUID(one["job"]) for one in waiting.get("holders", [])]

"""Where services are reached, kept for a while: an engine may have to list pods to say it, and each request asks.

What is kept holds for one start of a service's task, and for seconds: the address of a pod that is gone may soon be
another's. Each process keeps its own. Not here: connecting (`dialing`).
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass

from apps.jobs.engines.configured import engine_named
from apps.jobs.models import Job, TaskFact
from yardmaster.engines.base import Address, Dials
from yardmaster.job.spec_stored import stored_spec
from yardmaster.job.strategy import leading_task

LASTS = 30.0
MOST = 1000


@dataclass(frozen=True)
class _Known:
    attempt: int
    restarts: int
    address: Address
    until: float


_known: dict[uuid.UUID, _Known] = {}


def address_of(job: Job) -> Address | None:
    """Where the portal connects to; None where its engine gives no address (yet). Raises what the engine raises."""
    restarts = _restarts(job)
    known, now = _known.get(job.pk), time.monotonic()
    if known is not None and (known.attempt, known.restarts) == (job.attempt, restarts) and now < known.until:
        return known.address
    address_forget(job)
    engine = engine_named(job.engine)
    if not isinstance(engine, Dials):
        return None
    spec = stored_spec(job.spec)
    found = engine.address(spec, job.key, *leading_task(spec))
    if found is not None:
        if len(_known) >= MOST:
            _known.clear()
        _known[job.pk] = _Known(job.attempt, restarts, found, now + LASTS)
    return found


def address_forget(job: Job) -> None:
    """What was kept did not answer, or was another's."""
    _known.pop(job.pk, None)


def _restarts(job: Job) -> int:
    """How often its task was restarted: each time it may have another address."""
    found = TaskFact.objects.filter(job=job, attempt=job.attempt).values_list("restarts", flat=True).first()
    return found or 0

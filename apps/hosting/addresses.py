"""Where services are reached, kept for a while: an engine may have to list pods to say it, and each request asks.

An address is kept for seconds, and for one start of a service's task: that of a pod that is gone may soon be another's.
Each process keeps its own. Not here: connecting (`dialing`).
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
    """Where the portal connects to; None where its engine gives no address (yet). Raises what the engine raises, and
    takes as long as that takes to answer."""
    restarts = _restarts(job)
    known = _kept(job, restarts)
    if known is not None:
        return known
    address_forget(job)
    engine = engine_named(job.engine)
    if not isinstance(engine, Dials):
        return None
    spec = stored_spec(job.spec)
    found = engine.address(spec, job.key, *leading_task(spec))
    if found is not None:
        if len(_known) >= MOST:
            _known.clear()
        _known[job.pk] = _Known(job.attempt, restarts, found, time.monotonic() + LASTS)
    return found


def address_known(job: Job) -> Address | None:
    """The same as far as it is kept; no engine is asked."""
    return _kept(job, _restarts(job))


def address_forget(job: Job) -> None:
    """What was kept did not answer, or was another's."""
    _known.pop(job.pk, None)


def _kept(job: Job, restarts: int) -> Address | None:
    known = _known.get(job.pk)
    is_valid = known is not None and (known.attempt, known.restarts) == (job.attempt, restarts)
    return known.address if known is not None and is_valid and time.monotonic() < known.until else None


def _restarts(job: Job) -> int:
    """How often its task was restarted: each time it may have another address."""
    found = TaskFact.objects.filter(job=job, attempt=job.attempt).values_list("restarts", flat=True).first()
    return found or 0

"""What workers ask every engine now and then, and keep for the pages of administrators: whether it answers, what it
has, its machines, and every few minutes what is held and used of it.

An engine that hangs costs a worker the time that its verb takes, and no page anything. Bounded: so many machines, jobs
per machine, samples per engine. Not here: how it looks (`apps.administration.engine_table`), and admission, which asks
the engine itself.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from apps.dispatch.leases import claim_due
from apps.jobs.engines.configured import engine_named, engine_names
from apps.jobs.models import EngineNow, EngineSample, TaskFact
from apps.jobs.state import ledger
from yardmaster.engines.base import Capacity, ListsMachines, Machine
from yardmaster.errors import YardmasterError
from yardmaster.job.spec import NOTHING, Resources
from yardmaster.lifecycle.phases import TaskPhase
from yardmaster.storable import storable_json
from yardmaster.usage import Sample, cpu_use

log = logging.getLogger(__name__)
Clock = Callable[[], datetime]

EVERY = timedelta(seconds=30)
LEASE = timedelta(minutes=3)
SAMPLE_EVERY = timedelta(minutes=10)
KEPT = timedelta(days=8)
MOST_MACHINES = 1_000
MOST_MESSAGE = 1000
MOST_JOBS = 20
"""Named per machine; tasks are counted all."""
MOST_MEASURED = 5_000
"""Tasks."""
FRESH = timedelta(minutes=3)
"""A task that reported longer ago is not measured."""


def engines_look(*, clock: Clock = timezone.now) -> int:
    """Ask every engine that is due. Returns how many. Repeats harmlessly; of several workers one asks."""
    names = engine_names()
    known = set(EngineNow.objects.filter(engine__in=names).values_list("engine", flat=True))
    missing = [EngineNow(engine=name, next_at=clock()) for name in names if name not in known]
    if missing:
        EngineNow.objects.bulk_create(missing, ignore_conflicts=True)
    return sum(_look(name, clock) for name in names)


def _look(name: str, clock: Clock) -> bool:
    row = EngineNow.objects.filter(engine=name)
    if claim_due(row, "next_at", clock(), LEASE) is None:
        return False
    before = row.defer("machines").get()
    changes: dict[str, Any]
    try:
        engine = engine_named(name)
        capacity = engine.capacity()
        machines = engine.machines() if isinstance(engine, ListsMachines) else []
    except YardmasterError as error:
        log.warning("Engine %s does not answer: %s", name, error)
        changes = {"answers": False, "message": error.message, "remedy": error.remedy}
        now = clock()
    else:
        now = clock()
        changes = {"answers": True, "answered_at": now, "message": "", "remedy": "", **_said(capacity, machines)}
        used = _sampled(name, capacity, now)
        if used is not None:
            changes["used"] = used
    if before.answers != changes["answers"]:
        changes["since"] = now
    row.update(asked_at=now, next_at=now + EVERY, **changes)
    return True


def _said(capacity: Capacity, machines: Sequence[Machine]) -> dict[str, Any]:
    return {
        "total": capacity.total.as_amounts(),
        "free": capacity.free.as_amounts(),
        "machine_count": len(machines),
        "machines": [_machine(one) for one in machines[:MOST_MACHINES]],
    }


def _machine(one: Machine) -> dict[str, Any]:
    jobs = Counter(str(bound.job_id) for bound in one.bound)
    held = sum((bound.resources for bound in one.bound), NOTHING)
    said = {
        "name": one.name, "state": one.state.value, "model": one.model, "labels": dict(one.labels),
        "is_usable": one.is_usable, "message": one.message[:MOST_MESSAGE],
        "total": one.total.as_amounts(), "free": one.free.as_amounts(),
        "held": held.as_amounts(), "tasks": len(one.bound), "jobs": [key for key, _ in jobs.most_common(MOST_JOBS)],
        "job_count": len(jobs), "details": dict(one.details),
    }  # fmt: skip
    kept: dict[str, Any] = storable_json(said)  # one machine whose words no database takes costs no other its row
    return kept


def _sampled(name: str, capacity: Capacity, now: datetime) -> dict[str, float] | None:
    """Keep a sample, where the newest is old enough. Returns what is used by it; None: it was not time."""
    newest = EngineSample.objects.filter(engine=name).order_by("-at").values_list("at", flat=True).first()
    if newest is not None and newest > now - SAMPLE_EVERY:
        return None
    used = measured_on(name, now).as_amounts()
    EngineSample.objects.bulk_create(
        [
            EngineSample(
                engine=name, at=now, total=capacity.total.as_amounts(), free=capacity.free.as_amounts(),
                reserved=ledger.total_of(ledger.held_on(name)).as_amounts(), used=used,
            )
        ],
        ignore_conflicts=True,
    )  # fmt: skip
    EngineSample.objects.filter(engine=name, at__lt=now - KEPT).delete()
    return used


def measured_on(engine: str, now: datetime) -> Resources:
    """Cores and memory that the portal's running tasks used when they last reported. Tasks that are not measured count
    as nothing."""
    facts = TaskFact.objects.filter(
        job__engine=engine, job__phase__in=ledger.ADMITTED, phase=TaskPhase.RUNNING.value, reported_at__gt=now - FRESH
    ).values_list("usage", "usage_samples")
    cores, memory = 0.0, 0
    for usage, samples in facts[:MOST_MEASURED].iterator(chunk_size=200):
        found = cpu_use([Sample(*one) for one in samples[-2:]])
        cores += found[-1].cores if found else 0.0
        memory += int(usage.get("memory") or 0)
    return Resources(cpu=round(cores, 3), memory=memory, gpus=0)

"""Ask `yardmaster.admission` whether a job starts now, and write the answer, one job at a time.

The engine's capacity is read before the transaction. Within it the one lock is held: what the ledger shows is then
true until the answer is written with it, so that two jobs are never promised the same room, and a job gets all it asks
for or nothing.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from apps.jobs import ledger, phase_gate, queue
from apps.jobs.engines import engine_named
from apps.jobs.models import AdmissionLock, Job, JobEvent, Reservation
from apps.jobs.nudges import job_changed
from apps.namespaces.models import Quota as QuotaRow
from yardmaster.admission import Admitted, Decision, Never, Waiting, admit
from yardmaster.engines.base import Capacity
from yardmaster.fitting import Check, check
from yardmaster.ledger import Candidate, Holder, Ledger, Quota, Room, Usage
from yardmaster.phases import Phase
from yardmaster.plan import Wait
from yardmaster.pools import Shortage
from yardmaster.spec import NOTHING, Resources, TrainingSpec

MOST_SHOWN = 20
"""Jobs ahead, and holders, that are kept with a waiting job: nobody reads more."""
LONGEST_WAIT = timedelta(minutes=5)


def admit_job(job: Job, spec: TrainingSpec, now: datetime) -> Wait | None:
    """Reserve everything and move the job to STARTING, or write why it waits. Raises what the engine raises."""
    capacity = engine_named(job.engine).capacity()
    with transaction.atomic():
        lock()
        decision = decide(_candidate(job.pk, job.namespace_id, job.queued_at, spec), job.engine, capacity, now)
        if isinstance(decision, Admitted):
            phase_gate.move(job, Phase.STARTING, now=now)
            ledger.reserve(job, spec, now)
            queue.wake_passed(job, now)
            return None
        _write_reason(job, decision, now)
    position = decision.position if isinstance(decision, Waiting) else 0
    look_again: timedelta = settings.YARDMASTER_TIMING.look_again
    return Wait(now + min(LONGEST_WAIT, look_again + timedelta(seconds=position)))


def check_job(spec: TrainingSpec, namespace_id: uuid.UUID, engine: str, now: datetime) -> Check:
    """What admission would say of a job that came now. Changes nothing, promises nothing."""
    last_of_now = uuid.UUID(int=(1 << 128) - 1)
    candidate = _candidate(last_of_now, namespace_id, now, spec)
    facts, waiting = _facts(candidate, engine, engine_named(engine).capacity())
    return check(spec, candidate, waiting, facts, now, settings.YARDMASTER_PASSING_LIMIT)


def decide(candidate: Candidate, engine: str, capacity: Capacity, now: datetime) -> Decision:
    """The pure decision on what the database shows now. Under the lock."""
    facts, waiting = _facts(candidate, engine, capacity)
    return admit(candidate, waiting, facts, now, settings.YARDMASTER_PASSING_LIMIT)


def lock() -> None:
    """Hold the one lock until the transaction ends."""
    if not AdmissionLock.objects.select_for_update().filter(pk=1).exists():
        AdmissionLock.objects.get_or_create(pk=1)
        AdmissionLock.objects.select_for_update().get(pk=1)


def _facts(candidate: Candidate, engine: str, capacity: Capacity) -> tuple[Ledger, list[Candidate]]:
    """The ledger as one value, and everybody who waits for the engine."""
    waiting = [_waiting_candidate(row) for row in _waiting_rows(engine)]
    namespaces = {candidate.namespace_id, *(one.namespace_id for one in waiting)}
    on_engine = ledger.held_on(engine)
    in_namespaces = ledger.held_in(namespaces)
    room = Room(capacity.total, capacity.free, capacity.largest_task, reserved=ledger.total_of(on_engine))
    mine = [row for row in in_namespaces if row.namespace_id == candidate.namespace_id]
    facts = Ledger(
        room=room,
        quotas={row.namespace_id: _quota(row) for row in QuotaRow.objects.filter(namespace_id__in=namespaces)},
        usage=_usage(in_namespaces),
        holders=_holders({row.pk: row for row in (*on_engine, *mine)}.values()),
    )
    return facts, waiting


def _usage(rows: Iterable[Reservation]) -> dict[uuid.UUID, Usage]:
    held: defaultdict[uuid.UUID, Resources] = defaultdict(lambda: NOTHING)
    running: defaultdict[uuid.UUID, set[uuid.UUID]] = defaultdict(set)
    for row in rows:
        held[row.namespace_id] += ledger.resources_of(row)
        if not Phase(row.job.phase).is_final:
            running[row.namespace_id].add(row.job_id)
    return {key: Usage(amount, len(running[key])) for key, amount in held.items()}


def _holders(rows: Iterable[Reservation]) -> tuple[Holder, ...]:
    held: defaultdict[tuple[uuid.UUID, uuid.UUID], Resources] = defaultdict(lambda: NOTHING)
    for row in rows:
        held[row.job_id, row.namespace_id] += ledger.resources_of(row)
    return tuple(Holder(job_id, namespace_id, amount) for (job_id, namespace_id), amount in held.items())


def _quota(row: QuotaRow) -> Quota:
    cpu = None if row.cpu is None else float(row.cpu)
    return Quota(cpu=cpu, memory=row.memory, gpus=row.gpus, running_jobs=row.running_jobs)


def _candidate(job_id: uuid.UUID, namespace_id: uuid.UUID, queued_at: datetime, spec: TrainingSpec) -> Candidate:
    return Candidate.of(spec, job_id=job_id, namespace_id=namespace_id, queued_at=queued_at)


def _waiting_rows(engine: str) -> Iterable[tuple[uuid.UUID, uuid.UUID, datetime, int, dict[str, Any]]]:
    rows = queue.waiting().filter(engine=engine)
    return rows.values_list("pk", "namespace_id", "queued_at", "priority", "needs")


def _waiting_candidate(row: tuple[uuid.UUID, uuid.UUID, datetime, int, Mapping[str, Any]]) -> Candidate:
    job_id, namespace_id, queued_at, priority, needs = row
    total = Resources(**{name: amount for name, amount in needs.items() if name != "sizes"})
    sizes = tuple(Resources(**size) for size in needs["sizes"])
    return Candidate(job_id, namespace_id, queued_at, priority, total, sizes)


def needs_of(spec: TrainingSpec) -> dict[str, Any]:
    """What a spec asks for in all, and how large its tasks are, as `Job.needs` keeps it."""
    return {**_as_json(spec.total()), "sizes": [_as_json(one.resources) for one in spec.roles.values()]}


def _as_json(amount: Resources) -> dict[str, Any]:
    return {"cpu": amount.cpu, "memory": amount.memory, "gpus": amount.gpus, "extended": dict(amount.extended)}


def _write_reason(job: Job, decision: Waiting | Never, now: datetime) -> None:
    """Why it waits, where people see it; in the history too where the reason is another one than before."""
    changes = {"reason": decision.code.value, "message": decision.message, **waiting_facts(decision)}
    if all(getattr(job, name) == value for name, value in changes.items()):
        return
    same = Job.objects.filter(pk=job.pk, phase=Phase.QUEUED.value, attempt=job.attempt)
    if not same.update(**changes):
        raise phase_gate.PhaseMoved(f"Job {job.pk} no longer waits.")
    if job.reason != decision.code.value:
        JobEvent.objects.create(
            job=job, at=now, attempt=job.attempt, kind="waiting", reason=decision.code.value, message=decision.message
        )
    job_changed(job)


def waiting_facts(decision: Waiting | Never) -> dict[str, Any]:
    """Numbers, position and who is ahead, as `Job` keeps them."""
    numbers = [shortage_json(one) for one in decision.numbers]
    if isinstance(decision, Never):
        return {
            "remedy": decision.remedy,
            "position": None,
            "waiting": {"numbers": numbers, "ahead": [], "holders": []},
        }
    holders = [
        {"job": str(one.job_id), "resources": one.resources.as_amounts()} for one in decision.holders[:MOST_SHOWN]
    ]
    ahead = [str(job_id) for job_id in decision.ahead[:MOST_SHOWN]]
    return {
        "remedy": "",
        "position": decision.position,
        "waiting": {"numbers": numbers, "ahead": ahead, "holders": holders},
    }


def shortage_json(one: Shortage) -> dict[str, Any]:
    return {**asdict(one), "short_by": one.short_by}

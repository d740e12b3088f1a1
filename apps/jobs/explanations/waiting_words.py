"""Why a job waits, as `Job` keeps it: in columns, for many jobs with one statement, and only where it has changed. And
which of those that wait can never start, as limits and machines are now: they are shown apart.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Q

from apps.jobs.models import Job, JobEvent
from apps.jobs.state.books import Queued
from yardmaster.lifecycle.phases import Phase
from yardmaster.queueing.admission import Decision, Fit
from yardmaster.queueing.ledger import NEVER_FITS, Holder
from yardmaster.queueing.pools import Shortage
from yardmaster.queueing.queue_decision import QueueDecision

NEVER = "never_fits"
WAITING = "waiting"
REASONS = sorted(code.value for code in NEVER_FITS)
IS_NEVER = Q(phase=Phase.QUEUED.value, reason__in=REASONS)
"""Queued jobs that can never start as things are."""

_SET = ("reason", "message", "remedy", "position", "waiting", "waiting_digest")
_Ids = tuple[tuple[uuid.UUID, bool], ...]
_TYPES = ("text", "text", "text", "int", "text", "text", "uuid", "int")


def queue_state(job: Job) -> str | None:
    """`waiting` or `never_fits` of a queued job; None of any other."""
    if job.phase != Phase.QUEUED.value:
        return None
    return NEVER if job.reason in REASONS else WAITING


@dataclass(frozen=True)
class Reason:
    """What is to be written of one job. `waiting` is JSON text."""

    queued: Queued
    reason: str
    message: str
    remedy: str
    position: int | None
    waiting: str
    digest: str

    def row(self) -> tuple[Any, ...]:
        """The values for `_SET`, and which row they are for."""
        key = (self.queued.candidate.job_id, self.queued.attempt)
        return (self.reason, self.message, self.remedy, self.position, self.waiting, self.digest, *key)


def changed(found: QueueDecision, queued: Mapping[uuid.UUID, Queued], *, front: int | None) -> list[Reason]:
    """What differs from what is written: all of it, or, with `front`, for the jobs further back only another reason."""
    differ: list[Reason] = []
    holders: dict[_Ids, str] = {}
    for key, decision in found.decisions.items():
        if decision.code is None:
            continue
        one = queued[key]
        is_front = front is None or (decision.fit is Fit.WAITS and decision.position < front)
        if is_front or not one.digest or one.reason != decision.code.value:
            reason = _reason(one, decision, holders)
            if (one.digest, one.reason) != (reason.digest, reason.reason):
                differ.append(reason)
    return differ


def write(reasons: Sequence[Reason], now: datetime) -> list[tuple[uuid.UUID, uuid.UUID]]:
    """Write them, in the caller's transaction, and an event for each that is another reason than before. What no longer
    waits stays as it is. Returns the jobs that were written, each with its namespace."""
    if not reasons:
        return []
    written = _update([one.row() for one in reasons])
    done = [one for one in reasons if one.queued.candidate.job_id in written]
    JobEvent.objects.bulk_create(
        JobEvent(
            job_id=one.queued.candidate.job_id, at=now, attempt=one.queued.attempt, kind="waiting", reason=one.reason,
            message=one.message,
        )
        for one in done
        if one.reason != one.queued.reason
    )  # fmt: skip
    return [(one.queued.candidate.job_id, one.queued.candidate.namespace_id) for one in done]


def shortage_json(one: Shortage) -> dict[str, Any]:
    return {**vars(one), "short_by": one.short_by}


def columns_of_never(decision: Decision) -> dict[str, Any]:
    """What the row of a job that is queued although it can never start says of that until its first look."""
    return {
        "reason": _code(decision),
        "message": decision.message,
        "remedy": decision.remedy,
        "waiting": {"numbers": [shortage_json(each) for each in decision.numbers], "ahead": [], "holders": []},
    }


def _code(decision: Decision) -> str:
    return decision.code.value if decision.code else ""


def _reason(one: Queued, decision: Decision, known: dict[_Ids, str]) -> Reason:
    """`known`: the JSON of holders that were written before, which many jobs have in common."""
    numbers = json.dumps([shortage_json(each) for each in decision.numbers])
    ahead = json.dumps([str(job_id) for job_id in decision.ahead])
    key = tuple((held.job_id, held.on_engine) for held in decision.holders)
    holders = known[key] if key in known else known.setdefault(key, _holders_json(decision.holders))
    code, position = _code(decision), decision.position if decision.fit is Fit.WAITS else None
    waiting = f'{{"numbers": {numbers}, "ahead": {ahead}, "holders": {holders}}}'
    parts = (code, decision.message, decision.remedy, str(position), waiting)
    digest = hashlib.blake2b("\0".join(parts).encode(), digest_size=12).hexdigest()
    return Reason(one, code, decision.message, decision.remedy, position, waiting, digest)


def _holders_json(holders: Sequence[Holder]) -> str:
    return json.dumps([{"job": str(one.job_id), "resources": one.resources.as_amounts()} for one in holders])


def _update(rows: Sequence[tuple[Any, ...]]) -> set[uuid.UUID]:
    """Many rows, each with values of its own, in one statement where the database has one for it: written out as CASEs
    for a thousand rows, it would take the database and Django seconds. Returns which still waited."""
    table, still = Job._meta.db_table, f"phase = '{Phase.QUEUED.value}'"
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            columns = (*_SET, "key", "attempt")
            typed = ", ".join(f"{name} {kind}" for name, kind in zip(columns, _TYPES, strict=True))
            values = ", ".join(f"{name} = v.{name}{'::jsonb' * (name == 'waiting')}" for name in _SET)
            cursor.execute(
                f"UPDATE {table} SET {values} FROM jsonb_to_recordset(%s::jsonb) AS v({typed}) "
                f"WHERE {table}.id = v.key AND {table}.attempt = v.attempt AND {still} RETURNING {table}.id",
                [json.dumps([dict(zip(columns, row, strict=True)) for row in rows], default=str)],
            )
            return {row[0] for row in cursor.fetchall()}
        ids = [row[-2] for row in rows]
        waiting = Job.objects.filter(pk__in=ids, phase=Phase.QUEUED.value)
        attempts = dict(waiting.values_list("pk", "attempt"))
        here = [row for row in rows if attempts.get(row[-2]) == row[-1]]
        values = ", ".join(f"{name} = %s" for name in _SET)
        cursor.executemany(
            f"UPDATE {table} SET {values} WHERE id = %s AND attempt = %s",
            [(*row[:-2], row[-2].hex, row[-1]) for row in here],
        )
        return {row[-2] for row in here}

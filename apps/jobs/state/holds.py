"""Holding back what starts: an engine that is drained, a namespace that is suspended or has used up its budget, a job.

What runs continues; who waits keeps the place in the queue, and is told why. Not here: who may do this (the callers).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.services import record
from apps.jobs.models import Cause, Hold, Job
from apps.jobs.state import queue
from apps.namespaces.models import Namespace
from yardmaster.queueing.ledger import ENGINE, Code

LONGEST_REASON = 300
_CODES = {Cause.ADMINISTRATOR: Code.SUSPENDED, Cause.BUDGET: Code.BUDGET_SPENT}

Target = str | Namespace | Job
"""An engine by its name, a namespace or a job."""


@dataclass(frozen=True)
class Closed:
    """What the ledger has of the holds: `yardmaster.queueing.ledger.Ledger` says what each means."""

    engine: Code | None
    namespaces: dict[UUID, Code]
    jobs: frozenset[UUID]
    reasons: dict[UUID | str, str]


def hold(target: Target, *, reason: str, actor: User | None, cause: Cause = Cause.ADMINISTRATOR) -> Hold:
    """Start nothing more of it. May be repeated: the newest reason counts. `actor` None: the portal."""
    with transaction.atomic():
        before = Hold.objects.select_for_update().filter(**_key(target), cause=cause).first()
        made, _ = Hold.objects.update_or_create(
            **_key(target), cause=cause,
            defaults={"reason": reason[:LONGEST_REASON], "by": actor, "at": timezone.now()},
        )  # fmt: skip
        facts = {"reason": made.reason, "reason_before": before.reason if before else "", "cause": cause}
        record(actor, "hold.set", _subject(target), namespace=_namespace(target), **facts)
        _decide_again(target)
    return made


def lift(target: Target, *, actor: User | None, cause: Cause = Cause.ADMINISTRATOR) -> bool:
    """Let it start jobs again. False: nothing held it for this cause."""
    with transaction.atomic():
        deleted, _ = Hold.objects.filter(**_key(target), cause=cause).delete()
        if deleted:
            record(actor, "hold.lift", _subject(target), namespace=_namespace(target), cause=cause)
            _decide_again(target)
    return bool(deleted)


def closed_for(engine: str, namespaces: Iterable[UUID]) -> Closed:
    """The holds that count for those who wait for the engine. One statement."""
    wanted = Q(engine=engine) | Q(namespace_id__in=namespaces) | Q(job__engine=engine)
    closed: dict[UUID, Code] = {}
    of_engine, jobs, reasons = None, set(), {}
    # An administrator's hold is read last: where a namespace has two, that is the one to show.
    rows = Hold.objects.filter(wanted).order_by("-cause")
    for of, namespace_id, job_id, cause, reason in rows.values_list(
        "engine", "namespace_id", "job_id", "cause", "reason"
    ):
        reasons[namespace_id or job_id or ENGINE] = reason
        if of:
            of_engine = _CODES[Cause(cause)]
        elif namespace_id:
            closed[namespace_id] = _CODES[Cause(cause)]
        else:
            jobs.add(job_id)
    return Closed(of_engine, closed, frozenset(jobs), reasons)


def holds_of(namespace: Namespace) -> list[Hold]:
    """What holds the namespace now, the newest first: for its members."""
    return list(Hold.objects.filter(namespace=namespace).order_by("-at"))


def _key(target: Target) -> dict[str, Any]:
    if isinstance(target, str):
        return {"engine": target}
    return {"namespace": target} if isinstance(target, Namespace) else {"job": target}


def _subject(target: Target) -> str:
    if isinstance(target, str):
        return f"engine:{target}"
    return f"{'namespace' if isinstance(target, Namespace) else 'job'}:{target.pk}"


def _namespace(target: Target) -> Namespace | None:
    if isinstance(target, str):
        return None
    return target if isinstance(target, Namespace) else target.namespace


def _decide_again(target: Target) -> None:
    if isinstance(target, Namespace):
        queue.ask_for_namespace(target.pk)
    else:
        queue.ask(target if isinstance(target, str) else target.engine)

"""What engines keep for namespaces: made, kept in shape, and removed, each by looking again until it is so.

A change (a quota, a namespace made or removed) marks its engine namespaces as due and wakes a worker; the sweep finds
what a lost message left, and comes by now and then to mend what was changed at the engine. A worker that looks claims
the row by conditional update, and a mark that is set meanwhile stays: the next look sees what this one could not.

Not here: what an engine namespace is (the engine's `Namespaces`), what marks one as due (`apps.namespaces.services`),
and the removal of a namespace (`apps.removals`).
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.utils import timezone

from apps.audit.services import record
from apps.dispatch.leases import claim_due, due
from apps.dispatch.messages import KEEP_NAMESPACE, enqueue_now
from apps.jobs.engines.configured import engine_named, engine_names, settings_digest
from apps.jobs.models import Volume
from apps.jobs.state.ledger import held_by
from apps.jobs.state.volumes import volumes_gone
from apps.namespaces.models import EngineNamespace, Namespace, limits_of
from apps.namespaces.models import Quota as QuotaRow
from yardmaster.backoff import delay
from yardmaster.engines.base import Namespaces
from yardmaster.errors import Misconfigured, YardmasterError
from yardmaster.queueing.ledger import Quota

log = logging.getLogger(__name__)

Clock = Callable[[], datetime]

LOOK_EVERY = timedelta(minutes=5)
"""How long a change made at the engine may stay."""
LEASE = timedelta(minutes=1)
"""Longer than a look takes; after it, another worker looks."""
SHORTEST, LONGEST = timedelta(seconds=2), timedelta(minutes=2)
AT_ONCE = 200


def engine_namespaces_keep(namespace_id: uuid.UUID, *, clock: Clock = timezone.now) -> None:
    """Look at every engine namespace that is due; make those that are missing. Repeats harmlessly."""
    namespace = _open(namespace_id).first()
    if namespace is not None:
        for engine in keeping_engines():
            _row(namespace, engine, clock())
    for row in EngineNamespace.objects.filter(namespace_id=namespace_id):
        _look(row, clock)


def engine_namespaces_sweep(now: datetime) -> int:
    """Wake the namespaces that are due, and those that lack an engine namespace. Returns how many namespaces."""
    rows = due(EngineNamespace.objects.all(), "next_look_at", now)
    woken = set(rows.values_list("namespace_id", flat=True)[:AT_ONCE])
    for engine in keeping_engines():
        present = EngineNamespace.objects.filter(engine=engine).values("namespace_id")
        bare = Namespace.objects.filter(closed_at__isnull=True).exclude(pk__in=present)
        woken.update(bare.values_list("pk", flat=True)[:AT_ONCE])
    for namespace_id in woken:
        enqueue_now(KEEP_NAMESPACE, namespace_id)
    return len(woken)


def engine_namespaces_left(namespace_id: uuid.UUID) -> list[tuple[str, str]]:
    """What engines still have of the namespace, and what holds up its end: words for people."""
    rows = EngineNamespace.objects.filter(namespace_id=namespace_id).order_by("engine")
    return [(f"namespace on {row.engine}", _why_left(row)) for row in rows]


def _why_left(row: EngineNamespace) -> str:
    return f"{row.problem} {row.remedy}".strip() or " ".join(row.left) or "It is being removed."


def engine_namespace_ready(namespace_id: uuid.UUID, engine_name: str, *, clock: Clock = timezone.now) -> None:
    """Before a job is handed to an engine: its engine namespace is there and in shape. Where it was so at the last
    look and nothing has changed since, the engine's options included, the engine is not asked. Raises what the engine
    raises, `Misconfigured` for a namespace that is being removed: it must not come back."""
    engine = engine_named(engine_name)
    if not isinstance(engine, Namespaces):
        return
    namespace = _open(namespace_id).first()
    if namespace is None:
        raise Misconfigured("The job's namespace is being removed.", remedy="Launch in another namespace.")
    now = clock()
    row = _row(namespace, engine_name, now)
    is_known = row.shaped_at is not None and row.settings_digest == settings_digest(engine_name)
    if is_known and not row.problem and row.next_look_at > now:
        return
    engine.shape(namespace_id, bounds_of(namespace_id, engine_name), settings.TASK_URL)
    _found_in_shape(EngineNamespace.objects.filter(pk=row.pk, next_look_at=row.next_look_at), engine_name, clock())


def engine_namespace_lost(namespace_id: uuid.UUID, engine_name: str) -> None:
    """The engine has not got it, whatever the last look found: the next `engine_namespace_ready` makes it."""
    EngineNamespace.objects.filter(namespace_id=namespace_id, engine=engine_name).update(shaped_at=None)


def bounds_of(namespace_id: uuid.UUID, engine: str) -> Quota:
    """The quota, but never less than what admitted jobs hold there: a quota that was lowered takes nothing away, and
    what of them is started again must find capacity."""
    row = QuotaRow.objects.filter(namespace_id=namespace_id).first()
    if row is None:
        return Quota()
    return limits_of(row).at_least(held_by(namespace_id, engine))


def keeping_engines() -> list[str]:
    """The engines that keep a namespace for each of ours. One that cannot be made is left out, and said by the jobs."""
    found = []
    for name in engine_names():
        try:
            if isinstance(engine_named(name), Namespaces):
                found.append(name)
        except Misconfigured as error:
            log.warning("Engine %s keeps no namespaces: %s", name, error)
    return found


def _open(namespace_id: uuid.UUID) -> QuerySet[Namespace]:
    return Namespace.objects.filter(pk=namespace_id, closed_at__isnull=True)


def _row(namespace: Namespace, engine: str, now: datetime) -> EngineNamespace:
    made: dict[str, Any] = {"slug": namespace.slug, "next_look_at": now}
    row, _ = EngineNamespace.objects.get_or_create(namespace_id=namespace.pk, engine=engine, defaults=made)
    return row


# --- one look --------------------------------------------------------------------------------------------------------


def _look(row: EngineNamespace, clock: Clock) -> None:
    """Claim it, do what is to be done, and write what came of it: unless it was marked as due meanwhile."""
    mine = claim_due(EngineNamespace.objects.filter(pk=row.pk), "next_look_at", clock(), LEASE)
    if mine is None:
        return
    try:
        engine = engine_named(row.engine)
        if not isinstance(engine, Namespaces):
            raise Misconfigured(f"The engine {row.engine} keeps no namespaces any more.", remedy="Remove them there.")
        if not _open(row.namespace_id).exists():  # not `goes`: that may have been read before it was opened again
            _remove(row, engine, mine, clock)
        else:
            engine.shape(row.namespace_id, bounds_of(row.namespace_id, row.engine), settings.TASK_URL)
            _found_in_shape(mine, row.engine, clock())
    except YardmasterError as error:
        log.warning("The engine namespace of %s on %s: %s", row.slug, row.engine, error)
        mine.update(
            next_look_at=clock() + delay(row.setbacks, SHORTEST, LONGEST),
            setbacks=row.setbacks + 1,
            problem=error.message,
            remedy=error.remedy,
        )


def _found_in_shape(rows: QuerySet[EngineNamespace], engine: str, now: datetime) -> None:
    rows.update(
        goes=False, shaped_at=now, settings_digest=settings_digest(engine), next_look_at=now + LOOK_EVERY, setbacks=0,
        problem="", remedy="",
    )  # fmt: skip


def _remove(row: EngineNamespace, engine: Namespaces, mine: QuerySet[EngineNamespace], clock: Clock) -> None:
    remains = engine.remove(row.namespace_id)
    if remains.gone:
        volumes_gone(Volume.objects.filter(namespace_id=row.namespace_id, engine=row.engine))
        if EngineNamespace.objects.filter(pk=row.pk).delete()[0]:
            record(None, "engine_namespace.removed", f"namespace:{row.namespace_id}", slug=row.slug, engine=row.engine)
        return
    pause = delay(row.setbacks, SHORTEST, LONGEST)
    mine.update(
        goes=True, left=list(remains.left), next_look_at=clock() + pause, setbacks=row.setbacks + 1, problem="",
        remedy="",
    )  # fmt: skip

"""The volumes of a namespace: wanted by its managers, made, enlarged and removed by looking again until they are so.

A change marks the row as due and wakes a worker; the sweep finds what a lost message left. The size counts against the
namespace's storage from when a volume is wanted until its engine says that it is gone. Not here: what a volume is (the
engine's `Volumes`), and what is published to one (`apps.jobs.volume_copies`).
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.services import record
from apps.dispatch.leases import claim_due, due
from apps.dispatch.messages import KEEP_NAMESPACE, enqueue, enqueue_now
from apps.errors import Conflict, Invalid, NotFound, QuotaExceeded
from apps.jobs.engines.configured import engine_named, engine_names, offers_volumes
from apps.jobs.engines.namespaces import engine_namespace_lost, engine_namespace_ready
from apps.jobs.models import Volume
from apps.jobs.state.volumes import jobs_using, volume_emptied, volumes_gone, volumes_lock, volumes_of
from apps.namespaces.models import Namespace
from apps.namespaces.selectors import refuse_closed
from apps.uploads.storage_ledger import reservation_use, reserve, storage_left
from yardmaster.backoff import delay
from yardmaster.engines.base import ClaimPhase, Volumes, VolumeState
from yardmaster.errors import EngineNamespaceMissing, Misconfigured, Problem, YardmasterError
from yardmaster.job.volumes import VolumeKind
from yardmaster.quantity import format_bytes

log = logging.getLogger(__name__)

LEAST, MOST = 1 << 20, 1 << 60
"""Bytes of a volume. A size that was not given is a multiple of the least."""
LOOK_EVERY = timedelta(minutes=5)
LEASE = timedelta(minutes=1)
SHORTEST, LONGEST = timedelta(seconds=2), timedelta(minutes=2)
AT_ONCE = 200
Clock = Callable[[], datetime]


# --- reading ---------------------------------------------------------------------------------------------------------


def engines_with_volumes() -> list[str]:
    """The engines on which a namespace can have volumes. One that cannot be made is left out."""
    found = []
    for name in engine_names():
        try:
            if offers_volumes(engine_named(name)):
                found.append(name)
        except Misconfigured as error:
            log.warning("Engine %s has no volumes: %s", name, error)
    return found


def engine_for_volumes(asked: str | None) -> str:
    """The engine that is asked for; where none is, the default one, or the only one that has volumes."""
    offered = engines_with_volumes()
    if asked or settings.YARDMASTER_DEFAULT_ENGINE in offered or len(offered) != 1:
        return asked or str(settings.YARDMASTER_DEFAULT_ENGINE)
    return offered[0]


def volume_in(namespace: Namespace, volume_id: uuid.UUID) -> Volume:
    """Raises a 404 problem for one of another namespace."""
    found = volumes_of(namespace).filter(pk=volume_id).first()
    if found is None:
        raise NotFound
    return found


def size_by_default(namespace: Namespace) -> int | None:
    """Bytes of a volume whose size is not given: what is left of the storage quota, in whole MiB, 0 where that is less
    than the smallest volume. None where there is no quota to take it from."""
    left = storage_left(namespace)
    return None if left is None else min(left - left % LEAST, MOST)


# --- what managers want ----------------------------------------------------------------------------------------------


def volume_create(*, namespace: Namespace, engine: str, kind: VolumeKind, size: int | None, actor: User) -> Volume:
    """Want a volume of this size, or of `size_by_default`. The same again, or without a size: the one that there is.
    Raises `QuotaExceeded` where it is more than what is left of the namespace's storage, or nothing is left, and
    `Invalid` without a size where there is no quota."""
    refuse_closed(namespace)
    if engine not in engines_with_volumes():
        known = ", ".join(engines_with_volumes())
        remedy = f"Use one of: {known}." if known else "Ask an administrator to set volume_class of an engine."
        raise Invalid([Problem("engine", "no_volumes", "This engine has no volumes.", remedy, engine)])
    if size is None:
        same = volumes_of(namespace).filter(engine=engine, kind=kind.value).first()
        size = same.size if same else _size_left(namespace)
    _refuse_size(size)
    now = timezone.now()
    try:
        with transaction.atomic():
            made = Volume.objects.create(
                namespace=namespace, engine=engine, kind=kind.value, size=size, next_look_at=now, created_by=actor
            )
            reserve(namespace, size, files=0)
            reservation_use(namespace.pk, reserved=size, used=size)
            _record(actor, "volume.create", made)
            enqueue(KEEP_NAMESPACE, namespace.pk)
    except IntegrityError as error:
        there = volumes_of(namespace).get(engine=engine, kind=kind.value)
        if there.size == size and not there.goes:
            return there
        what = "is being removed" if there.goes else f"has {format_bytes(there.size)}"
        message = f"The namespace's {kind} volume on {engine} is there already, and {what}."
        remedy = "Wait until it is gone." if there.goes else "Change its size instead."
        raise Conflict(message, "volume_exists", remedy=remedy) from error
    return made


def volume_resize(*, volume: Volume, size: int, actor: User) -> Volume:
    """Want it larger. Raises `Invalid` for smaller: no engine can take something away from it."""
    _refuse_size(size)
    if volume.goes:
        raise Conflict("The volume is being removed.", "volume_goes", remedy="Create it again when it is gone.")
    if size < volume.size:
        message = f"A volume can only be enlarged. It has {format_bytes(volume.size)}."
        raise Invalid([Problem("size", "out_of_range", message, "Create another one, or keep its size.", str(size))])
    more = size - volume.size
    if not more:
        return volume
    with transaction.atomic():
        same = Volume.objects.filter(pk=volume.pk, size=volume.size, goes=False)
        if not same.update(size=size, next_look_at=timezone.now(), setbacks=0):
            raise Conflict("The volume was changed in the meantime.", remedy="Reload it and try again.")
        reserve(volume.namespace, more, files=0)
        reservation_use(volume.namespace_id, reserved=more, used=more)
        before, volume.size = volume.size, size
        _record(actor, "volume.resize", volume, size_before=before)
        enqueue(KEEP_NAMESPACE, volume.namespace_id)
    return volume


def volume_delete(*, volume: Volume, actor: User) -> None:
    """Want it gone, with all that is on it. Raises `Conflict` while jobs that are not over use it."""
    with transaction.atomic():
        volumes_lock(volume.namespace_id)
        if users := jobs_using(volume):
            message = f"The {volume.kind} volume is used by jobs that are not over: {', '.join(users)}."
            raise Conflict(message, "volume_in_use", remedy="Stop them, or wait until they have ended.")
        if Volume.objects.filter(pk=volume.pk, goes=False).update(goes=True, next_look_at=timezone.now(), setbacks=0):
            _record(actor, "volume.delete", volume)
            enqueue(KEEP_NAMESPACE, volume.namespace_id)


def _size_left(namespace: Namespace) -> int:
    size = size_by_default(namespace)
    if size is None:
        message = "This namespace has no storage quota that a volume without a size could take."
        raise Invalid([Problem("size", "required", message, 'Give a size, for instance "100Gi".')])
    if not size:
        least = format_bytes(LEAST)
        message = f"Nothing of the namespace's storage quota is left for a volume, which has at least {least}."
        remedy = "Delete versions or uploads that are no longer needed, or ask an administrator for more storage."
        raise QuotaExceeded(message, remedy=remedy, errors=[Problem("size", "quota_full", message, remedy, "0")])
    return size


def _refuse_size(size: int) -> None:
    if not LEAST <= size <= MOST:
        message = f"A volume has at least {format_bytes(LEAST)}."
        raise Invalid([Problem("size", "out_of_range", message, 'Write for instance "100Gi".', str(size))])


def _record(actor: User, action: str, volume: Volume, **more: int) -> None:
    facts = {"engine": volume.engine, "kind": volume.kind, "size": volume.size, **more}
    record(actor, action, f"volume:{volume.pk}", namespace=volume.namespace, **facts)


# --- looking ---------------------------------------------------------------------------------------------------------


def volumes_sweep(now: datetime) -> int:
    """Wake the namespaces whose volumes are due. Returns how many."""
    woken = set(due(Volume.objects.all(), "next_look_at", now).values_list("namespace_id", flat=True)[:AT_ONCE])
    for namespace_id in woken:
        enqueue_now(KEEP_NAMESPACE, namespace_id)
    return len(woken)


def volumes_keep(namespace_id: uuid.UUID, *, clock: Clock = timezone.now) -> None:
    """Look at those of the namespace's volumes that are due. Repeats harmlessly."""
    rows = Volume.objects.filter(namespace_id=namespace_id, namespace__closed_at__isnull=True)
    for engine in set(rows.values_list("engine", flat=True)):
        mine = claim_due(rows.filter(engine=engine), "next_look_at", clock(), LEASE)
        if mine is not None:
            _look(namespace_id, engine, mine, clock)


def _look(namespace_id: uuid.UUID, engine_name: str, mine: QuerySet[Volume], clock: Clock) -> None:
    every = list(Volume.objects.filter(namespace_id=namespace_id, engine=engine_name))
    try:
        engine = engine_named(engine_name)
        if not isinstance(engine, Volumes):
            raise Misconfigured(f"The engine {engine_name} has no volumes any more.", remedy="Remove them there.")
        engine_namespace_ready(namespace_id, engine_name, clock=clock)
        wanted = {VolumeKind(one.kind): one.size for one in every if not one.goes}
        try:
            states = engine.keep_volumes(namespace_id, wanted)
        except EngineNamespaceMissing:
            engine_namespace_lost(namespace_id, engine_name)
            raise
    except YardmasterError as error:
        log.warning("The volumes of %s on %s: %s", namespace_id, engine_name, error)
        for row in mine:
            words = {"message": error.message, "remedy": error.remedy}
            mine.filter(pk=row.pk).update(next_look_at=_later(row, clock()), setbacks=F("setbacks") + 1, **words)
        return
    for row in mine:
        state = states[VolumeKind(row.kind)]
        if row.goes and state.phase is ClaimPhase.ABSENT:
            volumes_gone([row])
            continue
        if _was_emptied(row, state):
            volume_emptied(row, clock())
        _note(row, state, clock())


def _was_emptied(row: Volume, state: VolumeState) -> bool:
    is_another = bool(row.identity and state.identity) and row.identity != state.identity
    return is_another or state.phase is ClaimPhase.LOST


def _note(row: Volume, state: VolumeState, now: datetime) -> None:
    is_well = state.phase is ClaimPhase.READY and not state.message and not row.goes
    Volume.objects.filter(pk=row.pk, next_look_at=row.next_look_at).update(  # as long as its time is unmoved
        phase=state.phase.value, found_size=state.size, message=state.message, remedy="", looked_at=now,
        identity=state.identity or row.identity, setbacks=0 if is_well else row.setbacks + 1,
        next_look_at=now + LOOK_EVERY if is_well else _later(row, now),
    )  # fmt: skip


def _later(row: Volume, now: datetime) -> datetime:
    return now + delay(row.setbacks, SHORTEST, LONGEST)

"""Carry a removal out: stop the jobs, wait until their last output is archived and nothing of them runs, have every
engine release the namespace and verify that it did, then keep or delete what the portal has, and say what is left.

One pass does whatever can be done now and writes down what it waits for, so that a portal that was restarted continues
where it was. Nothing here is remembered but in rows; every pass may be repeated.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import ProtectedError, QuerySet
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.services import user_delete
from apps.audit.services import record
from apps.code.selectors import CODE
from apps.connections.services import connections_clear
from apps.datasets.selectors import DATASETS
from apps.dispatch.leases import claim_due, due
from apps.dispatch.messages import CARRY_OUT_REMOVAL, enqueue
from apps.errors import DomainError
from apps.jobs.engines.namespaces import engine_namespaces_keep, engine_namespaces_left
from apps.jobs.selectors import jobs_in
from apps.jobs.services import jobs_delete_in, jobs_stop_in
from apps.namespaces.models import Namespace
from apps.namespaces.services import engine_namespaces_give_up
from apps.registry.selectors import models_in
from apps.registry.services import models_clear
from apps.removals.contents import contents_now
from apps.removals.models import Data, Removal
from apps.secrets.services import secrets_clear
from apps.stores import IGNITE, has_ignite, storage
from apps.uploads.selectors import storage_used, uploads_in
from apps.uploads.services import uploads_clear
from apps.uploads.versioned.services import collections_clear
from apps.webhooks.services import webhooks_clear
from apps.workbench.home_keeping import homes_give_up_of, homes_left
from apps.workbench.homes import homes_in
from yardmaster.errors import YardmasterError
from yardmaster.ids import folder_of
from yardmaster.quantity import format_bytes

log = logging.getLogger(__name__)

Clock = Callable[[], datetime]
Left = list[dict[str, str]]

LEASE = timedelta(minutes=2)
EAGER = timedelta(minutes=2)
"""For so long it looks every few seconds; what takes longer (a stuck finalizer) is looked at more seldom."""
SOON, LATER = timedelta(seconds=3), timedelta(seconds=30)
MOST_NAMED = 20
AT_ONCE = 50


def removals_sweep(now: datetime) -> int:
    """Wake every removal that is due."""
    ids = list(due(Removal.objects.all(), "next_look_at", now).values_list("pk", flat=True)[:AT_ONCE])
    for removal_id in ids:
        enqueue(CARRY_OUT_REMOVAL, removal_id)
    return len(ids)


def removal_carry_out(removal_id: uuid.UUID, *, clock: Clock = timezone.now) -> None:
    """One pass, by one worker at a time."""
    mine = claim_due(Removal.objects.filter(pk=removal_id), "next_look_at", clock(), LEASE)
    if mine is None:
        return
    removal = Removal.objects.get(pk=removal_id)
    outcome = "removed"
    try:
        is_over, left = _pass(removal, clock)
    except CalledOff:
        is_over, outcome = True, "removal_called_off"
        left = [_entry(f"namespace {removal.slug}", "Cancelled: the account was unlocked.")]
    except (YardmasterError, DomainError) as error:
        log.warning("%s: %s", removal, error)
        is_over, left = False, [_entry(removal.slug, str(error))]
    _write(removal, mine, is_over, left, clock(), outcome)


def _write(removal: Removal, mine: QuerySet[Removal], is_over: bool, left: Left, now: datetime, outcome: str) -> None:
    """Unless more was asked for meanwhile: then the next pass says how it stands."""
    if not is_over:
        wait = SOON if now - removal.asked_at < EAGER else LATER
        mine.update(left=left, next_look_at=now + wait)
        return
    with transaction.atomic():
        kept = contents_now(removal)
        if mine.update(left=left, kept=kept, next_look_at=None, ended_at=now):
            noun = "user" if removal.user_id else "namespace"
            subject = f"{noun}:{removal.user_id or removal.namespace_id}"
            facts: dict[str, Any] = {"name": removal.username or removal.slug, "data": removal.data, "left": left}
            facts |= {"found": removal.found, "kept": kept}
            record(None, f"{noun}.{outcome}", subject, **facts)


class CalledOff(Exception):
    """The namespace is open again."""


@contextmanager
def _still_closed(removal: Removal) -> Iterator[None]:
    """A transaction in which no user can open the namespace. Raises `CalledOff` where one has.

    What cannot be undone is done within one, a step at a time. The user is locked before the namespace, as in
    `user_change`, which calls removals off.
    """
    with transaction.atomic():
        if removal.user_id:
            user = User.objects.select_for_update().filter(pk=removal.user_id).first()
            if user is not None and user.is_active:
                raise CalledOff
        locked = Namespace.objects.select_for_update().filter(pk=removal.namespace_id).first()
        if locked is not None and locked.closed_at is None:
            raise CalledOff
        yield


def _pass(removal: Removal, clock: Clock) -> tuple[bool, Left]:
    """Whether all is done, and what is left: to do, or for good. Raises `CalledOff`."""
    namespace = Namespace.objects.filter(pk=removal.namespace_id).first()
    if namespace is not None and namespace.closed_at is None:
        raise CalledOff
    actor = User.objects.filter(pk=removal.asked_by_id).first()
    if namespace is not None and (left := _stop(namespace, actor)):
        return False, left
    if namespace is not None:
        _count_again(removal)
    if left := _let_engines_go(removal, clock):
        return False, left
    if left := _delete_homes(removal):
        return False, left
    if namespace is not None and removal.data == Data.DELETE and (left := _delete_data(removal, namespace, actor)):
        return False, left
    return True, _end(removal, namespace, actor)


def _stop(namespace: Namespace, actor: User | None) -> Left:
    """A job is over when its engine has nothing left of it, and its last output is in the log store."""
    return [
        _entry(f"job {job.name}", job.message or f"It is {job.phase}; its tasks are being stopped.")
        for job in jobs_stop_in(namespace, actor)[:MOST_NAMED]
    ]


def _count_again(removal: Removal) -> None:
    """What a job has published while it was being stopped is part of what goes, or is kept."""
    now = contents_now(removal)
    found = {kind: max(removal.found.get(kind, 0), now.get(kind, 0)) for kind in {*removal.found, *now}}
    if found != removal.found:
        Removal.objects.filter(pk=removal.pk).update(found=found)
        removal.found = found


def _let_engines_go(removal: Removal, clock: Clock) -> Left:
    with _still_closed(removal):
        engine_namespaces_give_up([removal.namespace_id], clock())
    engine_namespaces_keep(removal.namespace_id, clock=clock)
    return [_entry(what, why) for what, why in engine_namespaces_left(removal.namespace_id)]


def _delete_homes(removal: Removal) -> Left:
    """Kept files of Jupyters are personal: a user's go with the user, in every namespace. A team's stay where its data
    stay, unless its namespace on the engine was all that had them."""
    with _still_closed(removal):
        homes_give_up_of(removal.namespace_id, removal.user_id, keep=removal.data == Data.KEEP)
    return [_entry(what, why) for what, why in homes_left(removal.namespace_id, removal.user_id)]


def _delete_data(removal: Removal, namespace: Namespace, actor: User | None) -> Left:
    with _still_closed(removal):
        jobs = jobs_delete_in(namespace, actor)
    if jobs:
        return [_entry(f"{jobs} jobs", "Their logs, checkpoints and outputs are being deleted.")]
    with _still_closed(removal):
        counts = {
            "datasets": collections_clear(DATASETS, namespace, actor=actor),
            "code": collections_clear(CODE, namespace, actor=actor),
            "models": models_clear(namespace, actor=actor),
            "uploads": uploads_clear(namespace),
        }
    if not any(counts.values()):
        storage().delete_prefix(folder_of(namespace.pk))  # a bucket of its own goes with it
        if has_ignite():
            storage().delete_prefix(f"{IGNITE}{folder_of(namespace.pk)}")
    why = "Its bytes are being removed from the object store."
    return [_entry(f"{count} {what}", why) for what, count in counts.items() if count]


def _end(removal: Removal, namespace: Namespace | None, actor: User | None) -> Left:
    """Remove the rows, where nothing of them is to stay."""
    user = User.objects.filter(pk=removal.user_id).first() if removal.user_id else None
    try:
        with _still_closed(removal):
            if namespace is not None:
                connections_clear(namespace, actor)
                secrets_clear(namespace, actor)
                webhooks_clear(namespace, actor)
            if namespace is not None and (kept := _kept(namespace)):
                return kept
            if user is not None:
                user_delete(user=user, actor=actor)
            elif namespace is not None:
                namespace.delete()
    except DomainError as problem:  # a team's jobs are the team's, and name whose they were
        return [_entry(f"user {removal.username}", f"{problem.detail} The account stays, locked.")]
    except ProtectedError:
        return [_entry(f"namespace {removal.slug}", "New data was added to it during the removal.")]
    return []


def _kept(namespace: Namespace) -> Left:
    """What stays in the closed namespace, by kind."""
    counts = {
        "jobs, with their logs": jobs_in(namespace).count(),
        "models": models_in(namespace).count(),
        "datasets": DATASETS.collections.objects.filter(namespace=namespace).count(),
        "code": CODE.collections.objects.filter(namespace=namespace).count(),
        "uploads": uploads_in(namespace).count(),
        "homes of Jupyters": homes_in(namespace.pk).count(),
    }
    why = f"Kept in the closed namespace {namespace.slug}, for administrators to read."
    left = [_entry(f"{count} {what}", why) for what, count in counts.items() if count]
    if stored := storage_used(namespace).used:
        left.append(_entry(f"{format_bytes(stored)} of files and logs", why))
    return left


def _entry(what: str, why: str) -> dict[str, str]:
    return {"what": what, "why": why}

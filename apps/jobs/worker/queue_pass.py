"""Decide the queue of an engine: read all of it, ask `yardmaster.queueing.queue_decision`, and write what has changed.

The engine's capacity is read before the transaction. Within it the one lock is held: what the ledger shows is then true
until those that start are written with what they hold, so that two jobs are never promised the same capacity. Of the
reasons of the others the first are written with them, and the rest in further transactions: each is right by itself, a
worker that is killed between two leaves older words, which the next pass finds.

One worker at a time decides a queue: a lease, as jobs have one. Not here: when a pass is asked for (`queue`).
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection, transaction
from django.db.models import Case, F, QuerySet, Value, When
from django.utils import timezone

from apps.dispatch.leases import Leases
from apps.dispatch.messages import ADMIT, RECONCILE, enqueue, enqueue_now
from apps.jobs.engines.configured import engine_named
from apps.jobs.explanations import waiting_words
from apps.jobs.models import Job, QueuePass
from apps.jobs.state import ledger, phase_gate, preemptions
from apps.jobs.state.books import Queued, books_of, queued_on
from apps.jobs.state.nudges import jobs_changed
from apps.jobs.state.queue import lock_admissions
from apps.jobs.worker.setbacks import pause_after, shown_of
from yardmaster.errors import Misconfigured, YardmasterError
from yardmaster.queueing.admission import Fit
from yardmaster.queueing.queue_decision import QueueDecision, decide_queue

log = logging.getLogger(__name__)

_LEASES = Leases("lease_owner", "lease_until")
Clock = Callable[[], datetime]

EVERY = timedelta(seconds=5)
"""While jobs wait. What frees capacity asks for a pass at once; this finds what strangers to the portal free."""
MOST_ADMITTED = 200
"""In one pass; the next follows at once."""
MOST_PASSES = 5
"""In one go, where passes keep being asked for."""
LONG = 0.5
"""Seconds. After a pass that took longer the worker does something else for as long, before the next."""
WRITTEN_AT_ONCE = 1_000
FRONT = 100
"""The first jobs of the queue have their numbers brought up to date by every pass, the others every now and then."""
FOR_THE_OPERATOR = timedelta(minutes=1)


@dataclass
class _Lease:
    """Proof that its holder decides the queue."""

    engine: str
    owner: str
    refreshed: dict[str, datetime] = field(default_factory=dict)
    """When every number was brought up to date, if that was in this lease: written with what is written next."""

    @property
    def rows(self) -> QuerySet[QueuePass]:
        return QueuePass.objects.filter(engine=self.engine)

    @property
    def held(self) -> QuerySet[QueuePass]:
        """The engine's row, as long as it is this holder's."""
        return _LEASES.held(self.rows, self.owner)

    def release(self, next_at: datetime) -> None:
        _LEASES.release(self.rows, self.owner, next_at=next_at, setbacks=0, **self.refreshed)


def admit_queue(engine: str, *, clock: Clock = timezone.now) -> None:
    """Start every job of the engine's queue that may, and write why the others wait. Another worker does so already:
    returns at once, and that one looks again."""
    lease = _claim(engine, clock())
    if lease is None:
        return
    for _ in range(MOST_PASSES):
        begun = time.monotonic()
        try:
            is_whole = _pass(lease, clock())
        except YardmasterError as error:
            _refused(lease, error, clock())
            return
        except (DatabaseError, InterfaceError):
            log.exception("The database failed while the queue of %s was decided", engine)
            _release_after_database(lease, clock())
            return
        except Exception:  # the top of the loop: a bug in one pass must not stop the following ones
            log.exception("The queue of %s could not be decided", engine)
            _release_after_setback(lease, clock(), None)
            return
        took = time.monotonic() - begun
        if is_whole and _release(lease, clock()):
            return
        if took > LONG:
            lease.release(clock() + timedelta(seconds=took))
            return
        lease.held.update(asked=False, **lease.refreshed)
    lease.release(clock())
    enqueue_now(ADMIT, engine)


def _pass(lease: _Lease, now: datetime) -> bool:
    """One look at the whole queue. False: there is more to admit, or some of what was decided no longer holds."""
    engine = lease.engine
    if not Job.objects.waiting().filter(engine=engine).exists():
        return True
    capacity = engine_named(engine).capacity()
    with transaction.atomic():
        lock_admissions()
        held = lease.held.first()
        if held is None:
            return True  # the lease ran out, and another worker has it
        queued = {one.candidate.job_id: one for one in queued_on(engine, capacity)}
        candidates = [one.candidate for one in queued.values()]
        allowed = preemptions.allowed_on(engine)
        books = books_of(engine, capacity, (one.namespace_id for one in candidates), allowed, now)
        found = decide_queue(candidates, books, now, settings.YARDMASTER_PASSING_LIMIT, most_admitted=MOST_ADMITTED)
        admitted = [queued[key] for key, one in found.decisions.items() if one.fit is Fit.FITS_NOW]
        is_whole = _start(admitted, engine, found, now) and found.is_whole
        if is_whole:
            preemptions.preempt(allowed, found, queued, books, now)
        is_refresh = held.refreshed_at is None or now - held.refreshed_at >= settings.YARDMASTER_TIMING.look_again
        changed = waiting_words.changed(found, queued, front=None if is_refresh else FRONT)
        written = waiting_words.write(changed[:WRITTEN_AT_ONCE], now)
    for begin in range(WRITTEN_AT_ONCE, len(changed), WRITTEN_AT_ONCE):
        if not _LEASES.renew(lease.rows, lease.owner, timezone.now() + settings.YARDMASTER_JOB_LEASE):
            return True
        with transaction.atomic():
            written += waiting_words.write(changed[begin : begin + WRITTEN_AT_ONCE], now)
    if is_refresh and is_whole:
        lease.refreshed["refreshed_at"] = now
    jobs_changed(written)
    return is_whole


def _start(admitted: list[Queued], engine: str, found: QueueDecision, now: datetime) -> bool:
    """Reserve what they need and move them, all together; each is looked at soon. False: some were changed since they
    were read. Those do not start, and the turns, which count on all of them, are left to the next pass."""
    attempts = {one.candidate.job_id: one.attempt for one in admitted}
    moved = phase_gate.start_all(attempts, now=now) if admitted else {}
    started = [one for one in admitted if one.candidate.job_id in moved]
    ledger.reserve_all(started, moved, engine, now)
    all_moved = len(started) == len(admitted)
    if found.turns and all_moved:
        at = Case(*[When(pk=key, then=Value(turn)) for key, turn in found.turns.items()])
        Job.objects.filter(pk__in=found.turns).update(turn_at=at)
    for one in started:
        enqueue(RECONCILE, one.candidate.job_id)
    return all_moved


def _refused(lease: _Lease, error: YardmasterError, now: datetime) -> None:
    """The engine does not say what it has: everything that waits for it waits for that."""
    log.warning("The queue of %s: %s", lease.engine, error)
    shown = shown_of(error)
    jobs = Job.objects.waiting().filter(engine=lease.engine)
    others = jobs.exclude(**shown)
    changed = list(others.values_list("pk", "namespace_id"))
    if changed:
        others.update(**shown, waiting_digest="")
        jobs_changed(changed)
    _release_after_setback(lease, now, FOR_THE_OPERATOR if isinstance(error, Misconfigured) else None)


def _claim(engine: str, now: datetime) -> _Lease | None:
    lease, lasts = _Lease(engine, secrets.token_hex(16)), settings.YARDMASTER_JOB_LEASE
    for _ in range(2):
        if _LEASES.claim(lease.rows, lease.owner, now, lasts, next_at=now + lasts, asked=False) is not None:
            return lease
        QueuePass.objects.get_or_create(engine=engine)
    return None


def _release(lease: _Lease, now: datetime) -> bool:
    """False: another pass was asked for meanwhile."""
    unasked = lease.rows.filter(asked=False)
    return (
        _LEASES.release(unasked, lease.owner, next_at=now + EVERY, setbacks=0, **lease.refreshed)
        or not lease.held.exists()
    )


def _release_after_setback(lease: _Lease, now: datetime, pause: timedelta | None) -> None:
    """Later and later, where it fails again and again."""
    held = lease.held.first()
    if held is not None:
        next_at = now + (pause or pause_after(held.setbacks))
        _LEASES.release(lease.rows, lease.owner, asked=False, next_at=next_at, setbacks=F("setbacks") + 1)


def _release_after_database(lease: _Lease, now: datetime) -> None:
    """Where that works; else the lease runs out by itself."""
    if connection.in_atomic_block:
        return
    try:
        connection.close_if_unusable_or_obsolete()
        _release_after_setback(lease, now, None)
    except (DatabaseError, InterfaceError) as error:
        log.warning("The queue of %s rests until its lease runs out: %s", lease.engine, error)

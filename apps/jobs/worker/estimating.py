"""Estimate when the jobs of a queue start (`yardmaster.queueing.waits`): read what runs, what ended, and how right
earlier estimates were, and write a range for each job that waits for a quota or for capacity.

After a pass over the queue, not within one: no job waits for an estimate. A worker that is killed leaves older ranges.
"""

from __future__ import annotations

import logging
import math
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, Min, Q
from django.utils import timezone

from apps.jobs.engines.configured import engine_named
from apps.jobs.models import Job, QueuePass, Reservation, WaitEstimate
from apps.jobs.state.books import Queued, books_of, queued_on
from yardmaster.errors import YardmasterError
from yardmaster.queueing.admission import Fit
from yardmaster.queueing.durations import History, Lasting
from yardmaster.queueing.ledger import RUNNING_JOBS, Code, Holder, Ledger
from yardmaster.queueing.pools import PoolKey, Pools
from yardmaster.queueing.queue_decision import decide_queue
from yardmaster.queueing.resources import units_of
from yardmaster.queueing.waits import Past, Range, Runs, Waits, correction, estimates

log = logging.getLogger(__name__)

EVERY = timedelta(seconds=10)
SHARE_OF_TIME = 20
"""An estimate that took a second is not made again for so many."""
MOST_JOBS = 500
"""At the front of the queue. What is said of those further back would be of no use."""
ROLES_READ = 6_000
"""Ended reservations, of which a job has one per role."""
PAST_READ = 300
KEPT = 1_000
"""Ended waits of an engine."""
_WAITS = frozenset({Code.WAITING_FOR_QUOTA, Code.WAITING_FOR_CAPACITY, Code.WAITING_FOR_TURN})

Clock = Callable[[], datetime]


def waits_estimate(engine: str, *, clock: Clock = timezone.now) -> int:
    """Bring the estimates of the engine's queue up to date, if that is due. Returns how many jobs have one. Where
    the engine does not answer, or a job is removed meanwhile, they stay as they are."""
    now, begun = clock(), time.monotonic()
    due = QueuePass.objects.filter(Q(estimate_at=None) | Q(estimate_at__lte=now), engine=engine)
    if not due.update(estimate_at=now + EVERY):
        return 0
    _note_starts(engine)
    if not Job.objects.waiting().filter(engine=engine).exists():
        return 0
    try:
        found = _ranges(engine, now)
        with transaction.atomic():
            _write(engine, found, now)
    except (YardmasterError, IntegrityError) as error:  # the latter: a job was removed since it was read
        log.info("The waits for %s are not estimated: %s", engine, error)
        return 0
    pause = max(EVERY, timedelta(seconds=SHARE_OF_TIME * (time.monotonic() - begun)))
    QueuePass.objects.filter(engine=engine).update(estimate_at=now + pause)
    return len(found)


def _ranges(engine: str, now: datetime) -> list[tuple[Queued, Range]]:
    """The uncorrected range of each job of which something can be said."""
    capacity = engine_named(engine).capacity()
    queued = {one.candidate.job_id: one for one in queued_on(engine, capacity)}
    candidates = [one.candidate for one in queued.values()]
    ledger = books_of(engine, capacity, (one.namespace_id for one in candidates), now=now)
    patience = settings.YARDMASTER_PASSING_LIMIT
    decided = decide_queue(candidates, ledger, now, patience).decisions
    order = [
        queued[key] for key, one in decided.items() if one.fit is Fit.FITS_NOW or (one.code and one.code in _WAITS)
    ][:MOST_JOBS]
    history = History(_ended(engine))
    pools = Pools(ledger)
    # Of those that only the end of a window of others, or certain machines let start, the queue says nothing.
    order = [one for one in order if one.candidate.only is None and not pools.waits_for_end(pools.needs(one.candidate))]
    if not order or not history.is_enough:
        return []
    facts = _facts(one.candidate.job_id for one in order)
    waiting = [
        Waits(
            pools.needs(one.candidate).units,
            facts[one.candidate.job_id].lasting if one.candidate.job_id in facts else Lasting(()),
            (now - one.candidate.queued_at).total_seconds(),
        )
        for one in order
    ]
    found = estimates(history, list(_running(ledger, now)), waiting, pools.remaining(), patience.total_seconds())
    return [
        (one, each)
        for one, each in zip(order, found, strict=True)
        if each is not None and decided[one.candidate.job_id].fit is Fit.WAITS
    ]


def _running(ledger: Ledger, now: datetime) -> Iterator[Runs]:
    """What is held, by whom, for how long already."""
    facts = _facts(one.job_id for one in ledger.holders)
    for one in ledger.holders:
        if one.job_id in facts:
            known = facts[one.job_id]
            ran = (now - known.reserved_at).total_seconds() if known.reserved_at else 0.0
            yield Runs(_held(one), known.lasting, max(ran, 0.0))


def _held(one: Holder) -> dict[PoolKey, int]:
    units = {name: amount for name, amount in units_of(one.resources).items() if amount}
    quota = {PoolKey(one.namespace_id, name): amount for name, amount in {**units, RUNNING_JOBS: 1}.items()}
    return quota | ({PoolKey(None, name): amount for name, amount in units.items()} if one.on_engine else {})


@dataclass(frozen=True)
class _Facts:
    lasting: Lasting
    reserved_at: datetime | None


def _facts(job_ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, _Facts]:
    """What is known of how long these take. One statement."""
    rows = (
        Job.objects.filter(pk__in=list(job_ids))
        .annotate(since=Min("reservations__reserved_at", filter=Q(reservations__released_at=None)))
        .values_list("pk", "name", "namespace_id", "owner_id", "spec__max_runtime", "since")
    )
    return {
        pk: _Facts(Lasting(_groups(name, space, owner), _seconds(limit)), since)
        for pk, name, space, owner, limit, since in rows
    }


def _groups(name: str, namespace: uuid.UUID, owner: uuid.UUID | None) -> tuple[str, ...]:
    """Jobs of one name without its number (`digits-7`), then those of one owner in a namespace, then of the
    namespace."""
    stem = name.rstrip("0123456789").rstrip("-_ #")
    return f"{namespace}/{stem}", f"{namespace} of {owner}", f"{namespace}"


def _seconds(limit: Any) -> float | None:
    return float(limit) if isinstance(limit, int | float) and limit > 0 else None


def _ended(engine: str) -> Iterator[tuple[tuple[str, ...], float]]:
    """How long the jobs that ended last held what they had, with their groups: each admission alone, for an attempt may
    have waited in the queue between two."""
    rows = Reservation.objects.filter(engine=engine, released_at__isnull=False).order_by("-released_at")
    spans: dict[tuple[Any, ...], tuple[datetime, datetime]] = {}
    for *job, begin, end in rows.values_list(
        "job_id", "attempt", "job_name", "namespace_id", "owner_id", "reserved_at", "released_at"
    )[:ROLES_READ]:
        key = (*job, begin)
        first, last = spans.get(key, (begin, end or begin))
        spans[key] = min(first, begin), max(last, end or begin)
    for (_, _, name, namespace, owner, _), (begin, end) in spans.items():
        yield _groups(name, namespace, owner), (end - begin).total_seconds()


def _note_starts(engine: str) -> None:
    """Write down which of the estimated jobs have started since, and forget the oldest waits."""
    mine = WaitEstimate.objects.filter(engine=engine)
    open_ones = mine.filter(started_at=None)
    started = open_ones.annotate(
        began=Min(
            "job__reservations__reserved_at",
            filter=Q(job__reservations__attempt=F("attempt"), job__reservations__reserved_at__gte=F("said_at")),
        )
    ).filter(began__isnull=False)
    done = list(started)
    for one in done:
        one.started_at = one.began
    WaitEstimate.objects.bulk_update(done, ["started_at"])
    last = mine.order_by("-said_at").values_list("said_at", flat=True)[KEPT : KEPT + 1].first()
    if last is not None:
        mine.filter(said_at__lte=last).exclude(job__in=Job.objects.waiting()).delete()


def _past(engine: str, now: datetime) -> list[Past]:
    """The last estimates of jobs that have started, or still wait."""
    rows = WaitEstimate.objects.filter(engine=engine).filter(
        Q(started_at__isnull=False) | Q(job__in=Job.objects.waiting(), job__attempt=F("attempt"))
    )
    return [
        Past(
            Range(one.raw_low, math.inf if one.raw_high is None else one.raw_high),
            ((one.started_at or now) - one.said_at).total_seconds(),
            one.started_at is not None,
        )
        for one in rows.order_by("-said_at")[:PAST_READ]
    ]


def _write(engine: str, found: list[tuple[Queued, Range]], now: datetime) -> None:
    by = correction(_past(engine, now))
    rows = []
    for one, raw in found:
        shown = raw.corrected(by)
        rows.append(
            WaitEstimate(
                job_id=one.candidate.job_id, attempt=one.attempt, engine=engine, said_at=now, raw_low=raw.low,
                raw_high=_finite(raw.high), said_low=shown.low, said_high=_finite(shown.high),
                starts_from=_at(now, shown.low), starts_until=_at(now, shown.high), made_at=now,
            )
        )  # fmt: skip
    WaitEstimate.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["job", "attempt"],
        update_fields=["starts_from", "starts_until", "made_at"],
    )
    # Of the others nothing can be said now: they are held, or their engine has lost what they need. One that was taken
    # back after a start counts as started and waits all the same.
    has_range = Q(starts_from__isnull=False) | Q(starts_until__isnull=False)
    WaitEstimate.objects.filter(has_range, engine=engine, made_at__lt=now).update(
        starts_from=None, starts_until=None, made_at=now
    )


def _finite(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None


def _at(now: datetime, seconds: float) -> datetime | None:
    return now + timedelta(seconds=seconds) if seconds < timedelta(days=3650).total_seconds() else None

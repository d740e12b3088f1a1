"""Charging namespaces for what their tasks print: in portions that grow, so that a write costs no statement, and
settled when the attempt is over. Returned when the job is deleted, or its log.

Not here: the count itself and what is dropped (`yardmaster.logs.volume`), the accounts (`apps.uploads`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, TypeVar

from django.conf import settings
from django.db import transaction
from django.db.models import Sum

from apps.errors import NotFound
from apps.jobs.models import JobAttempt
from apps.stores import counted_log
from apps.uploads.services import logs_charge, logs_correct
from yardmaster.errors import Unavailable
from yardmaster.logs.keys import StreamKey
from yardmaster.logs.volume import NeedsGrant, Refusal, reason_of

SMALLEST_PORTION = 1 << 20
LARGEST_PORTION = 64 << 20
ASKED_AGAIN_AFTER = 30.0
"""Seconds for which a namespace that holds no more is not asked again."""
_TRIES = 20
T = TypeVar("T")


def charged(stream: StreamKey, write: Callable[[], T]) -> T:
    """What `write`, a write of the counted log, returns; the namespace is charged for it where it has to be.

    Raises what the write raises, and `NotFound` where the job is gone."""
    for _ in range(_TRIES):
        try:
            return write()
        except NeedsGrant as asked:
            _charge(stream, asked.needed)
    raise Unavailable("Too many tasks write the log of this attempt at once.")


def log_settle(job_id: uuid.UUID, attempt: int) -> None:
    """Charge for what was printed and no more. Repeating it changes nothing."""
    used = counted_log().settle(job_id, attempt)
    with transaction.atomic():
        row = (
            JobAttempt.objects.defer("agreed")
            .select_for_update()
            .filter(job_id=job_id, number=attempt)
            .select_related("job")
            .first()
        )
        if row is not None and row.log_bytes != used:
            logs_correct(row.job.namespace_id, used - row.log_bytes)
            JobAttempt.objects.filter(pk=row.pk).update(log_bytes=used)


def log_release(job_id: uuid.UUID, namespace_id: uuid.UUID, last: int | None = None) -> None:
    """The job's logs are gone (those of the attempts up to `last`; None: all): its namespace gets their bytes back.
    Repeating it changes nothing."""
    with transaction.atomic():
        attempts = JobAttempt.objects.defer("agreed").select_for_update().filter(job_id=job_id)
        if last is not None:
            attempts = attempts.filter(number__lte=last)
        charge = attempts.aggregate(all=Sum("log_bytes"))["all"] or 0
        if charge:
            logs_correct(namespace_id, -charge)
            attempts.update(log_bytes=0)


def refusal_json(refusal: Refusal | None) -> dict[str, Any] | None:
    """What a task receives about why its lines are dropped."""
    if refusal is None:
        return None
    return {"cause": refusal.cause.name.lower(), "bound": refusal.bound, "detail": reason_of(refusal)}


def _charge(stream: StreamKey, needed: int) -> None:
    """Have the attempt charged for at least `needed` bytes, or its log closed."""
    with transaction.atomic():
        attempts = (
            JobAttempt.objects.defer("agreed").select_for_update().filter(job_id=stream.job_id, number=stream.attempt)
        )
        row = attempts.filter(job__deleted_at__isnull=True).select_related("job__namespace").first()
        if row is None:
            raise NotFound("This attempt of the job no longer exists.")
        total, refusal = row.log_bytes, None
        missing = needed - total
        portion = min(max(total, SMALLEST_PORTION), LARGEST_PORTION)
        for amount in (max(missing, portion), missing) if missing > 0 else ():
            refusal = logs_charge(row.job.namespace, amount, settings.YARDMASTER_LOG_LIMIT_NAMESPACE)
            if refusal is None:
                total += amount
                JobAttempt.objects.filter(pk=row.pk).update(log_bytes=total)
                break
    counted_log().grant(stream.job_id, stream.attempt, total)
    if refusal is not None:
        counted_log().refuse(stream.job_id, stream.attempt, refusal, ASKED_AGAIN_AFTER)

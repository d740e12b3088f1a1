"""Who works on a job now: a lease, claimed by conditional update, lost by time.

A job has one worker at a time, mostly: a lease that ran out while its worker was only slow lets a second one in. That
does no harm, because engine verbs may be repeated and every write re-checks what it changes; the lease saves work.

A worker that finds a job leased sets `wake_again`, and the holder looks once more before it releases it: no wake-up
is lost between the holder's last look and the end of its lease.
"""

from __future__ import annotations

import secrets
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import DateTimeField, F
from django.db.models.functions import Coalesce

from apps.dispatch.leases import Leases
from apps.jobs.models import Job

SOON = timedelta(seconds=2)
_LEASES = Leases("lease_owner", "lease_until")
_WELL: dict[str, Any] = {"setbacks": 0, "failing_since": None}
"""What a look that did not fail leaves of those that did."""


@dataclass(frozen=True)
class Lease:
    """Proof that its holder works on the job."""

    job_id: uuid.UUID
    owner: str


def claim(job_id: uuid.UUID, now: datetime) -> Lease | None:
    """Claim the job, or set `wake_again` for its holder. None: another worker holds it, or there is no such job."""
    lease = Lease(job_id, secrets.token_hex(16))
    rows, lasts = Job.objects.filter(pk=job_id), settings.YARDMASTER_JOB_LEASE
    for _ in range(3):
        if _LEASES.claim(rows, lease.owner, now, lasts, next_look_at=now + lasts, wake_again=False) is not None:
            return lease
        if rows.filter(lease_until__gt=now).update(wake_again=True):
            return None
        # Released between the two updates: try again. Or the job is gone, and three times is soon over.
    return None


def release(lease: Lease, *, next_look_at: datetime | None) -> bool:
    """Give the job back, to be looked at again at that time. False: another look was asked for, so look now."""
    rows = Job.objects.filter(pk=lease.job_id)
    if _LEASES.release(rows.filter(wake_again=False), lease.owner, next_look_at=next_look_at, **_WELL):
        return True
    return not _LEASES.held(rows, lease.owner).update(wake_again=False)


def release_for_others(lease: Lease, *, now: datetime) -> None:
    """Give a job back that is asked for again and again: other jobs wait for this worker too."""
    _LEASES.release(Job.objects.filter(pk=lease.job_id), lease.owner, next_look_at=now, **_WELL)


def release_after_setback(lease: Lease, *, now: datetime, next_look_at: datetime) -> None:
    """Give the job back after a failed look. Where another was asked for, it comes soon, not after the pause: what
    they want (a stop) may not need what failed."""
    rows = Job.objects.filter(pk=lease.job_id)
    since = Coalesce(F("failing_since"), now, output_field=DateTimeField())
    failed = {"wake_again": False, "setbacks": F("setbacks") + 1, "failing_since": since}
    if not _LEASES.release(rows.filter(wake_again=False), lease.owner, next_look_at=next_look_at, **failed):
        _LEASES.release(rows, lease.owner, next_look_at=min(next_look_at, now + SOON), **failed)


def ask_for_look(job_id: uuid.UUID, now: datetime) -> None:
    """Write that the job must be looked at, so that neither a lost message nor a busy holder makes it wait."""
    Job.objects.filter(pk=job_id).update(next_look_at=now, wake_again=True)

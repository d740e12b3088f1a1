"""The right to complete an upload, or to remove it: one process has it at a time, for as long as it shows that it is
alive."""

from __future__ import annotations

import threading
import time
import uuid
from datetime import timedelta

from django.db.models import QuerySet
from django.utils import timezone

from apps.dispatch.leases import Leases
from apps.uploads.models import State, Upload
from yardmaster.ids import new_id

LEASE = timedelta(seconds=60)
_RENEW_AFTER = 10.0
_LEASES = Leases("lease", "leased_until", none=None)


class LeaseLost(Exception):
    """Another process completes, removes or has removed this upload."""


class TooMuchWork(Exception):
    """The work takes more of the processor than its owner has for it. It may be continued."""


class Lease:
    """The right to work on one upload in its state, renewed while work continues. `most_work`: seconds of the processor
    that the work may take, None: any number."""

    def __init__(self, rows: QuerySet[Upload], token: uuid.UUID, most_work: float | None = None) -> None:
        self.token = token
        self._rows = rows
        self._renewed = time.monotonic()
        self._counting = threading.Lock()
        self._passed = 0
        self._lost = False
        self._most_work = most_work
        self._worked = 0.0
        self._in_thread = threading.local()

    def passed(self, amount: int) -> None:
        """`amount` more bytes were worked on; from any thread. Raises `LeaseLost` once that is known, and
        `TooMuchWork`."""
        if self._lost:
            raise LeaseLost
        now = time.thread_time()
        since = now - getattr(self._in_thread, "at", now)
        self._in_thread.at = now
        with self._counting:
            self._passed += amount
            self._worked += since
        if self._most_work is not None and self._worked > self._most_work:
            raise TooMuchWork

    def beat(self) -> None:
        """Called now and then by the thread that owns the database connection. Raises `LeaseLost`."""
        if time.monotonic() - self._renewed > _RENEW_AFTER:
            self.renew()

    def renew(self) -> None:
        """Hold the lease for another while, and note how far the work has come. Raises `LeaseLost`."""
        if not _LEASES.renew(self._rows, self.token, timezone.now() + LEASE, bytes_checked=self._passed):
            self._lost = True
            raise LeaseLost
        self._renewed = time.monotonic()

    def release(self) -> None:
        """Let another process continue at once."""
        self._rows.filter(lease=self.token).update(leased_until=None)


def lease_claim(upload_id: uuid.UUID, most_work: float | None = None) -> Lease | None:
    """The lease of an upload in state `completing`; None: another process has it, or the state is another."""
    return _claim(Upload.objects.filter(pk=upload_id, state=State.COMPLETING), most_work)


def removal_claim(upload_id: uuid.UUID) -> Lease | None:
    """The same of an upload in state `deleting`."""
    return _claim(Upload.objects.filter(pk=upload_id, state=State.DELETING))


def _claim(rows: QuerySet[Upload], most_work: float | None = None) -> Lease | None:
    token = new_id()
    is_mine = _LEASES.claim(rows, token, timezone.now(), LEASE)
    return None if is_mine is None else Lease(rows, token, most_work)

"""The right to complete an upload: one process has it at a time, for as long as it shows that it is alive."""

from __future__ import annotations

import threading
import time
import uuid
from datetime import timedelta

from django.db.models import Q
from django.utils import timezone

from apps.uploads.models import State, Upload
from yardmaster.ids import new_id

LEASE = timedelta(seconds=60)
_RENEW_AFTER = 10.0


class LeaseLost(Exception):
    """Somebody else completes or has removed this upload."""


class Lease:
    """The right to complete one upload, renewed while work goes on."""

    def __init__(self, upload_id: uuid.UUID, token: uuid.UUID) -> None:
        self.token = token
        self._mine = Upload.objects.filter(pk=upload_id, lease=token, state=State.COMPLETING)
        self._renewed = time.monotonic()
        self._counting = threading.Lock()
        self._passed = 0
        self._lost = False

    def passed(self, amount: int) -> None:
        """`amount` more bytes were worked on; from any thread. Raises `LeaseLost` once that is known."""
        if self._lost:
            raise LeaseLost
        with self._counting:
            self._passed += amount

    def beat(self) -> None:
        """Called now and then by the thread that owns the database connection. Raises `LeaseLost`."""
        if time.monotonic() - self._renewed > _RENEW_AFTER:
            self.renew()

    def renew(self) -> None:
        """Hold the lease for another while, and note how far the work has come. Raises `LeaseLost`."""
        if not self._mine.update(leased_until=timezone.now() + LEASE, bytes_checked=self._passed):
            self._lost = True
            raise LeaseLost
        self._renewed = time.monotonic()


def lease_claim(upload_id: uuid.UUID) -> Lease | None:
    """The lease of an upload in state `completing`; None: somebody else has it, or the state is another."""
    now = timezone.now()
    free = Q(leased_until=None) | Q(leased_until__lt=now)
    token = new_id()
    rows = Upload.objects.filter(free, pk=upload_id, state=State.COMPLETING)
    if not rows.update(lease=token, leased_until=now + LEASE):
        return None
    return Lease(upload_id, token)

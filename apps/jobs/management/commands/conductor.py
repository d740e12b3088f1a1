"""`manage.py conductor`: follow every engine that says what changes, and wake those jobs. Of several, one leads."""

from __future__ import annotations

import logging
import secrets
import signal
import threading
import time
import uuid
from types import FrameType
from typing import Any

from django.core.management.base import BaseCommand
from django.db import DatabaseError, InterfaceError, close_old_connections
from django.utils import timezone

from apps.api.readiness import report_alive, report_ready
from apps.dispatch.leadership import LASTS, lead, resign
from apps.dispatch.messages import RECONCILE, enqueue_now
from apps.jobs.engines.configured import engine_named, engine_names
from apps.jobs.engines.following import QUIET, Coalescer, Follower, ReplayBuffer
from yardmaster.engines.base import Watches
from yardmaster.errors import Misconfigured
from yardmaster_runner.signal_event import SignalEvent

log = logging.getLogger(__name__)

POST = "conductor"
RENEW_EVERY = LASTS.total_seconds() / 3
TRY_EVERY = 1.0
"""Seconds between two tries of a process that does not lead: how long there is no leader after the lease ran out."""


class Command(BaseCommand):
    help = "Follow the engines and wake jobs that have changed."

    def handle(self, *args: Any, **options: Any) -> None:
        conductor = Conductor()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, conductor.stop)
        conductor.run()


class Conductor:
    """Two clocks, the leadership's and the coalescer's, and one thread per engine.

    Without the database it continues as it was: two that lead at once do no harm, a job would only be woken twice.
    """

    def __init__(self) -> None:
        self._me = secrets.token_hex(16)
        self._stopped = SignalEvent()
        self._leads = threading.Event()
        self._coalescer = Coalescer()
        self._replay = ReplayBuffer(LASTS.total_seconds() + 2 * TRY_EVERY)

    def run(self) -> None:
        """Until `stop`."""
        for follower in self.followers():
            follower.start()
        report_ready("conductor")
        renew_at = 0.0
        while not self._stopped.wait(QUIET):
            report_alive("conductor")
            for job_id in self._coalescer.take_due(time.monotonic()):
                enqueue_now(RECONCILE, job_id)
            if time.monotonic() >= renew_at:
                self.renew()
                renew_at = time.monotonic() + (RENEW_EVERY if self._leads.is_set() else TRY_EVERY)
        self._resign()

    def followers(self) -> list[Follower]:
        """One for each engine that can be followed, not yet started."""
        return [Follower(name, engine, self.changed) for name, engine in watched_engines().items()]

    def stop(self, number: int, frame: FrameType | None) -> None:
        self._stopped.set()

    def changed(self, job_id: uuid.UUID) -> None:
        """An engine says that something of this job has changed."""
        if not self._leads.is_set():
            self._replay.note(job_id, time.monotonic())
        elif self._coalescer.change(job_id, time.monotonic()):
            enqueue_now(RECONCILE, job_id)

    def renew(self) -> None:
        """Lead, or keep leading, where no other conductor does. Who begins to lead wakes what changed since the one
        before it may have died."""
        try:
            close_old_connections()
            leads = lead(POST, self._me, timezone.now())
        except (DatabaseError, InterfaceError) as error:
            log.warning("The leadership could not be renewed: %s", error)
            return
        if leads and not self._leads.is_set():
            log.info("This conductor leads")
            self._leads.set()
            for job_id in self._replay.take(time.monotonic()):
                enqueue_now(RECONCILE, job_id)
        elif not leads and self._leads.is_set():
            log.warning("Another conductor leads now")
            self._leads.clear()

    def _resign(self) -> None:
        try:
            resign(POST, self._me)
        except (DatabaseError, InterfaceError) as error:
            log.warning("The leadership runs out by itself: %s", error)


def watched_engines() -> dict[str, Watches]:
    """The engines that can say what changes. One that cannot be built is named in the log and left out."""
    found: dict[str, Watches] = {}
    for name in engine_names():
        try:
            engine = engine_named(name)
        except Misconfigured as error:
            log.error("Engine %s is not followed: %s", name, error)
            continue
        if isinstance(engine, Watches):
            found[name] = engine
        else:
            log.info("Engine %s does not say what changes; its jobs are looked at by the clock", name)
    return found

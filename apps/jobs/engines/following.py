"""Follow what engines say has changed, and wake those jobs: what makes a verdict quick.

A follower decides nothing and remembers nothing. A change that it misses is found at the job's next look.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable
from datetime import timedelta

from yardmaster.backoff import delay
from yardmaster.engines.base import Watches
from yardmaster.errors import YardmasterError

log = logging.getLogger(__name__)

QUIET = 0.2
"""Seconds after a wake-up in which further changes of the same job are combined into one more."""
SHORTEST_PAUSE, LONGEST_PAUSE = timedelta(seconds=1), timedelta(seconds=30)


class Coalescer:
    """The first change of a job wakes it at once; those that follow shortly after are combined into one more wake-up.

    `take_due` is for the thread that sends the combined ones; the time is passed in.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._quiet_until: dict[uuid.UUID, float] = {}
        self._pending: set[uuid.UUID] = set()

    def change(self, job_id: uuid.UUID, now: float) -> bool:
        """Whether to wake the job at once."""
        with self._lock:
            if now < self._quiet_until.get(job_id, 0.0):
                self._pending.add(job_id)
                return False
            self._quiet_until[job_id] = now + QUIET
            return True

    def take_due(self, now: float) -> list[uuid.UUID]:
        """The pending changes whose quiet time is over. Forgets jobs that have been quiet."""
        with self._lock:
            over = [job_id for job_id, until in self._quiet_until.items() if until <= now]
            due = [job_id for job_id in over if job_id in self._pending]
            for job_id in over:
                del self._quiet_until[job_id]
            self._pending.difference_update(due)
            for job_id in due:
                self._quiet_until[job_id] = now + QUIET
            return due


class ReplayBuffer:
    """Recent changes that a conductor received while it did not lead: if the leader has died, nothing woke these jobs.

    `keep` is the longest time in seconds that a leader may be dead before another leads; the time is passed in.
    """

    def __init__(self, keep: float) -> None:
        self._keep = keep
        self._lock = threading.Lock()
        self._noted: dict[uuid.UUID, float] = {}

    def note(self, job_id: uuid.UUID, now: float) -> None:
        with self._lock:
            self._noted.pop(job_id, None)
            self._noted[job_id] = now
            while self._noted and self._noted[oldest := next(iter(self._noted))] < now - self._keep:
                del self._noted[oldest]

    def take(self, now: float) -> list[uuid.UUID]:
        """Those not older than `keep`, the oldest first. They are removed."""
        with self._lock:
            noted, self._noted = self._noted, {}
            return [job_id for job_id, at in noted.items() if at >= now - self._keep]


class Follower(threading.Thread):
    """Follows one engine until the process ends; after an error it starts again, with a growing delay."""

    def __init__(self, name: str, engine: Watches, on_change: Callable[[uuid.UUID], None]) -> None:
        super().__init__(name=f"follow-{name}", daemon=True)
        self._engine, self._engine_name, self._on_change = engine, name, on_change
        self._failures = 0

    def run(self) -> None:
        while True:
            self.follow_once()
            time.sleep(delay(self._failures, SHORTEST_PAUSE, LONGEST_PAUSE).total_seconds())
            self._failures += 1

    def follow_once(self) -> None:
        """Follow until the engine's stream ends or fails."""
        try:
            for key in self._engine.changes():
                self._failures = 0
                self._on_change(key.job_id)
            log.warning("The changes of engine %s have ended; following again", self._engine_name)
        except YardmasterError as error:
            log.warning("Engine %s cannot be followed now: %s", self._engine_name, error)
        except Exception:  # the top of the loop: a bug in one engine must not end the following
            log.exception("Following engine %s failed", self._engine_name)

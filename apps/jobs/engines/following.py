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
"""Seconds after a wake-up in which further changes of the same job are gathered into one more."""
SHORTEST_PAUSE, LONGEST_PAUSE = timedelta(seconds=1), timedelta(seconds=30)


class Bursts:
    """The first change of a job wakes it at once; those that follow shortly after make one more wake-up together.

    `next_due` and `take_due` are for the thread that sends the gathered ones; the time is passed in.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._quiet_until: dict[uuid.UUID, float] = {}
        self._gathered: set[uuid.UUID] = set()

    def change(self, job_id: uuid.UUID, now: float) -> bool:
        """Whether to wake the job at once."""
        with self._lock:
            if now < self._quiet_until.get(job_id, 0.0):
                self._gathered.add(job_id)
                return False
            self._quiet_until[job_id] = now + QUIET
            return True

    def take_due(self, now: float) -> list[uuid.UUID]:
        """The gathered changes whose quiet time is over. Forgets jobs that have been quiet."""
        with self._lock:
            over = [job_id for job_id, until in self._quiet_until.items() if until <= now]
            due = [job_id for job_id in over if job_id in self._gathered]
            for job_id in over:
                del self._quiet_until[job_id]
            self._gathered.difference_update(due)
            for job_id in due:
                self._quiet_until[job_id] = now + QUIET
            return due


class Unsent:
    """The changes that one who does not lead has heard of lately: if the leader has died, no process woke these jobs.

    `keep` is the longest time in seconds that a leader may be dead before another leads; the time is passed in.
    """

    def __init__(self, keep: float) -> None:
        self._keep = keep
        self._lock = threading.Lock()
        self._heard: dict[uuid.UUID, float] = {}

    def note(self, job_id: uuid.UUID, now: float) -> None:
        with self._lock:
            self._heard.pop(job_id, None)
            self._heard[job_id] = now
            while self._heard and self._heard[oldest := next(iter(self._heard))] < now - self._keep:
                del self._heard[oldest]

    def take(self, now: float) -> list[uuid.UUID]:
        """Those that count, the longest ago first. They are forgotten."""
        with self._lock:
            heard, self._heard = self._heard, {}
            return [job_id for job_id, at in heard.items() if at >= now - self._keep]


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

"""Tell followers, in every process, that a log has moved. A nudge carries a name, never lines: a lost one costs time.

Whoever appends must not wait for the message server, and must not flood it: one thread per process sends for all, each
stream at most twenty times a second. Not here: listening (`tails`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
import uuid

from channels.layers import get_channel_layer
from redis.exceptions import RedisError

from yardmaster.spec import Role

log = logging.getLogger(__name__)

PAUSE = 0.05
PATIENCE = 1.0
"""Seconds that one message may take."""
QUIET = 60.0
"""Seconds between two complaints about a message server that is away."""


def group_of(job_id: uuid.UUID) -> str:
    """The Channels group of all followers of a job's logs."""
    return f"logs.{job_id.hex}"


def log_moved(job_id: uuid.UUID, role: Role, index: int, next_line: int) -> None:
    """Nudge the followers of this stream soon. Returns at once and never raises."""
    _sender.add(job_id, role, index, next_line)


class Sender:
    """Remembers which streams have moved, and a thread that says so."""

    def __init__(self) -> None:
        self._moved: dict[tuple[uuid.UUID, Role, int], int] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._complained = -QUIET

    def add(self, job_id: uuid.UUID, role: Role, index: int, next_line: int) -> None:
        with self._lock:
            self._moved[job_id, role, index] = next_line
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="log-nudges", daemon=True)
                self._thread.start()
        self._wake.set()

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            while True:
                self._wake.wait()
                self._wake.clear()
                with self._lock:
                    moved, self._moved = self._moved, {}
                try:
                    runner.run(self._send(moved))
                except (RedisError, OSError, TimeoutError) as error:
                    self._complain(error)
                except Exception:  # the thread must outlive whatever a message server comes up with
                    log.exception("Followers of logs were not told that lines have come.")
                time.sleep(PAUSE)

    async def _send(self, moved: dict[tuple[uuid.UUID, Role, int], int]) -> None:
        layer = get_channel_layer()
        if layer is None:
            return
        for (job_id, role, index), next_line in moved.items():
            message = {"type": "log.moved", "role": role.value, "index": index, "next_line": next_line}
            async with asyncio.timeout(PATIENCE):
                await layer.group_send(group_of(job_id), message)

    def _complain(self, error: Exception) -> None:
        now = time.monotonic()
        if now - self._complained >= QUIET:
            self._complained = now
            log.warning("Followers of logs are not told of new lines, so they see them a second later: %s", error)


_sender = Sender()


def _after_fork() -> None:
    global _sender
    _sender = Sender()  # threads do not survive a fork


os.register_at_fork(after_in_child=_after_fork)

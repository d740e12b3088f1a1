"""Tell others soon that something has moved, without waiting for the message server: one thread per subject.

A nudge is a hint, never truth: what moves several times in a moment is sent once, and what the message server does not
take is forgotten, so that listeners must look by themselves now and then. Where a subject cannot wait for that, a
server that stands still is tried again. Not here: what is sent to whom.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, Generic, TypeVar

from channels.layers import get_channel_layer
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

PAUSE = 0.05
"""Seconds between two rounds: each change is sent at most twenty times a second."""
PATIENCE = 1.0
"""Seconds that one message may take."""
QUIET = 60.0
"""Seconds between two complaints about a message server that is away."""

Thing = TypeVar("Thing")
News = TypeVar("News")


class Nudger(Generic[Thing, News]):
    """Remembers the latest news of each thing, and a thread that hands all of them to `send`.

    `subject` names it in the log: "Listeners of <subject> …". `again`: what takes longer than `PATIENCE` is sent again,
    until the server takes it or is away. Make one per module; it survives a fork.
    """

    def __init__(
        self, subject: str, send: Callable[[dict[Thing, News]], Coroutine[Any, Any, None]], *, again: bool = False
    ) -> None:
        self._subject = subject
        self._send = send
        self._again = again
        self._complained = -QUIET
        self._thread: threading.Thread | None = None
        self.start_over()
        _all.add(self)

    def start_over(self) -> None:
        """In a process just forked: its parent's thread and news stayed with the parent."""
        self._latest: dict[Thing, News] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread = None

    def add(self, thing: Thing, news: News) -> None:
        """Have it told soon. Returns at once and never raises."""
        with self._lock:
            self._latest[thing] = news
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"nudges of {self._subject}", daemon=True)
                self._thread.start()
        self._wake.set()

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            while True:
                self._wake.wait()
                self._wake.clear()
                with self._lock:
                    latest, self._latest = self._latest, {}
                try:
                    runner.run(self._send(latest))
                except (RedisError, OSError) as error:  # where it is away, its listeners have lost it as well
                    self._complain(error)
                    if self._again and isinstance(error, TimeoutError):
                        self._keep(latest)
                except Exception:  # the thread must outlive whatever a message server comes up with
                    log.exception("Listeners of %s were not told.", self._subject)
                time.sleep(PAUSE)

    def _keep(self, unsent: dict[Thing, News]) -> None:
        """Have these sent in the next round, but for what has newer news."""
        with self._lock:
            self._latest = unsent | self._latest
        self._wake.set()

    def _complain(self, error: Exception) -> None:
        now = time.monotonic()
        if now - self._complained >= QUIET:
            self._complained = now
            log.warning("Listeners of %s are not told, so they hear when they next look: %s", self._subject, error)


async def tell(group: str, message: dict[str, Any]) -> None:
    """Send one message to a Channels group. Raises what the message server raises, and `TimeoutError`."""
    layer = get_channel_layer()
    if layer is not None:
        async with asyncio.timeout(PATIENCE):
            await layer.group_send(group, message)


_all: weakref.WeakSet[Nudger[Any, Any]] = weakref.WeakSet()


def _after_fork() -> None:
    for one in _all:
        one.start_over()


os.register_at_fork(after_in_child=_after_fork)

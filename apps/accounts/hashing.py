"""How many passwords one process hashes at once: each takes a processor for a good part of a second, right or
wrong. Who finds no slot within a few seconds is refused, and has not guessed.

Not here: how often one may try (`attempts`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from django.conf import settings

from apps.errors import TooMany

PATIENCE = 3.0
"""Seconds to wait for a slot."""
WAITING = 2
"""Callers that may wait, for each slot: one who waits holds a thread of the process."""


class Slots:
    """`most` at once, some more wait. A caller who has a slot needs no second one."""

    def __init__(self, most: int, patience: float = PATIENCE) -> None:
        self._free = threading.BoundedSemaphore(most)
        self._here = threading.BoundedSemaphore(most * (1 + WAITING))
        self._patience = patience
        self._mine = threading.local()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Raises `TooMany`."""
        if getattr(self._mine, "has_one", False):
            yield
            return
        with _held(self._here, 0), _held(self._free, self._patience):
            self._mine.has_one = True
            try:
                yield
            finally:
                self._mine.has_one = False


@contextmanager
def _held(slots: threading.BoundedSemaphore, patience: float) -> Iterator[None]:
    if not slots.acquire(timeout=patience) if patience else not slots.acquire(blocking=False):
        raise TooMany("Too many passwords are being checked.", "too_many_at_once", wait=1)
    try:
        yield
    finally:
        slots.release()


@lru_cache(maxsize=1)
def slots() -> Slots:
    return Slots(settings.YARDMASTER_PASSWORDS_AT_ONCE)

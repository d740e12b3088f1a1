"""The events of runs that are held up without saying why: asked for again, later each time, while that lasts.

Events carry no labels, so that a watch of them would be one of everybody's. Not here: what they mean (`rolefacts`).
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from yardmaster.ids import JobKey

LONGEST = 60.0
_MOST_RUNS = 1000


@dataclass(frozen=True)
class _Asked:
    events: Sequence[Mapping[str, Any]]
    until: float
    pause: float


class HeldUp:
    """`shortest` seconds pass between the first two questions of a run; 0: ask each time. May be shared by threads."""

    def __init__(self, shortest: float) -> None:
        self._shortest = shortest
        self._lock = threading.Lock()
        self._asked: dict[JobKey, _Asked] = {}

    def known(self, key: JobKey, now: float) -> Sequence[Mapping[str, Any]] | None:
        """The run's events as they were last; None: ask now."""
        with self._lock:
            asked = self._asked.get(key)
            return asked.events if asked is not None and now < asked.until else None

    def keep(self, key: JobKey, events: Sequence[Mapping[str, Any]], now: float) -> None:
        """Good for twice as long as those before."""
        with self._lock:
            before = self._asked.pop(key, None)
            pause = min(LONGEST, before.pause * 2) if before else self._shortest
            self._asked[key] = _Asked(events, now + pause, pause)
            while len(self._asked) > _MOST_RUNS:
                del self._asked[next(iter(self._asked))]

    def forget(self, keys: Collection[JobKey]) -> None:
        """They go on."""
        with self._lock:
            for key in keys:
                self._asked.pop(key, None)

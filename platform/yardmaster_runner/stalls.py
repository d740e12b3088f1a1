"""Whether a script stands still: it makes no progress, prints nothing of its own, and uses next to no processor time.

What waits for another task prints the same every few seconds: that is no output here, and says what it waits for. Not
here: what is done about it (the log gets the stacks, the portal tells people).
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import Any, Callable, Dict, Optional

from yardmaster_runner.noise import is_noise

QUIET = 180.0
"""Seconds without anything of it, until a script is said to stand still."""
IDLE = 0.05
"""Of one core: threads that poll use some."""
SETTLING = 10.0
"""Seconds after the stacks were asked for, in which output is theirs."""
LONGEST_PEER = 200
WAITS = re.compile(
    # tensorflow/core/distributed_runtime/master.cc
    r"CreateSession still waiting for response from worker: (?P<peer>/job:\S+)|"
    # tensorflow/python/training/session_manager.py
    r"Waiting for model to be ready\.|"
    # tensorflow/python/distribute, coordination service
    r"(?:Waiting for|still waiting for) (?:all )?(?:workers|tasks|the chief|the cluster|a response)"
)


@dataclass(frozen=True)
class Stall:
    """It has stood still since then (Unix time); `peer` is the task that it waits for, as TensorFlow calls it."""

    since: float
    peer: str = ""


class StallWatch:
    """`look` is called every few seconds. `output` gives how many bytes there were so far, and the last of them.
    `on_stall` is called when the script has come to stand still, once each time."""

    def __init__(
        self,
        output: Callable[[], "tuple[int, bytes]"],
        progress: Callable[[], Dict[str, Any]],
        on_stall: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._output = output
        self._progress = progress
        self._on_stall = on_stall
        self._clock = clock
        self._active_at = self._looked_at = clock()
        self._seen = 0
        self._cpu = 0.0
        self._known: Dict[str, Any] = {}
        self._peer = ""
        self._stall: Optional[Stall] = None
        self._settles_at = 0.0

    def look(self, cpu_seconds: float) -> Optional[Stall]:
        """The stall, while there is one."""
        now = self._clock()
        if self._is_active(now, cpu_seconds):
            self._active_at, self._stall = now, None
        elif now - self._active_at >= QUIET:
            if self._stall is None:
                self._settles_at = now + SETTLING
                self._on_stall()
            self._stall = Stall(self._active_at, self._peer)
        self._looked_at, self._cpu = now, cpu_seconds
        return self._stall

    def expect_stacks(self) -> None:
        """What is printed next is no output of the script's own."""
        self._settles_at = self._clock() + SETTLING

    def _is_active(self, now: float, cpu_seconds: float) -> bool:
        has_moved = self._has_progressed()
        has_printed = self._has_printed(now >= self._settles_at)
        used = (cpu_seconds - self._cpu) / max(1e-3, now - self._looked_at)
        return has_moved or has_printed or used > IDLE

    def _has_progressed(self) -> bool:
        known, self._known = self._known, self._progress()
        return known != self._known

    def _has_printed(self, counts: bool) -> bool:
        """Whether there is output that is more than waiting; nothing is where it does not count."""
        total, tail = self._output()
        fresh, self._seen = total - self._seen, total
        if fresh <= 0:
            return False
        is_own = False
        for line in tail[-fresh:].decode("utf-8", "replace").splitlines():
            found = WAITS.search(line[:1000])
            if found:
                self._peer = (found.group("peer") or "")[:LONGEST_PEER]
            elif line.strip() and not is_noise(line):
                is_own = True
        if is_own and counts:
            self._peer = ""
        return is_own and counts

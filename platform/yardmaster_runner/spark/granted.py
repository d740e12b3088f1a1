"""Whether a registered Spark cluster has given a driver its executors.

Spark makes a driver's context when all of them are there, or after ten minutes, and prints nothing meanwhile. What it
knows of them it writes to a file of the task (`logging`), which a thread of the runner reads: the task's log and the
portal are told when executors lack for longer than they take to start.

Not here: what the portal says of it (`apps.jobs.explanations.executor_waits`).
"""

from __future__ import annotations

import os
import re
import threading
import time
import traceback
from dataclasses import dataclass
from typing import Callable, Iterable, Optional, Set

from yardmaster_runner.exits import note
from yardmaster_runner.spark.registered import MIB, Registered

AFTER = 15.0
"""Seconds without an executor that was asked for, until that is said."""
LOOK_EVERY = 1.0
_BACKEND = "org.apache.spark.scheduler.cluster.StandaloneSchedulerBackend"
_ASKS = "Connected to Spark cluster"
_GIVEN = re.compile(r"Granted executor ID (?P<id>\S+) on ")
_LOST = re.compile(r"Executor (?P<id>\S+) removed: ")
_WANTS_FEWER = ("Shutting down all executors", "Application has been killed", "Requesting to kill executor")
_BEGINS_WITH_FEWER = "SchedulerBackend is ready for scheduling beginning after waiting"


@dataclass(frozen=True)
class Wait:
    """So many executors of those that were asked for are there, since then (Unix time)."""

    given: int
    wanted: int
    since: float


class Granted:
    """What Spark has said of its executors so far. Pure."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._waits = False
        self._given: Set[str] = set()
        self._since: Optional[float] = None

    def read(self, lines: Iterable[str], now: float) -> Optional[Wait]:
        """The wait, once it is long, with these lines read, too."""
        for line in lines:
            self._read(line)
        if not self._waits or len(self._given) >= self._wanted:
            self._since = None
        elif self._since is None:
            self._since = now
        if self._since is None or now - self._since < AFTER:
            return None
        return Wait(len(self._given), self._wanted, self._since)

    @property
    def has_all(self) -> bool:
        return len(self._given) >= self._wanted

    def _read(self, line: str) -> None:
        given, lost = _GIVEN.search(line), _LOST.search(line)
        if line.startswith(_ASKS):
            self._waits, self._given = True, set()
        elif given:
            self._given.add(given["id"])
        elif lost:
            self._given.discard(lost["id"])
        elif line.startswith(_WANTS_FEWER) or (line.startswith(_BEGINS_WITH_FEWER) and self._given):
            self._waits = False


class GrantWatch(threading.Thread):
    """Runs until told to finish. `say` writes a line into the task's log; `tell` is given the wait, and None when it
    is over."""

    def __init__(
        self,
        work_dir: str,
        one: Registered,
        say: Callable[[str], None],
        tell: Callable[[Optional[Wait]], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(name="granted-executors", daemon=True)
        self._path = file_in(work_dir)
        self._one = one
        self._say = say
        self._tell = tell
        self._clock = clock
        self._granted = Granted(one.executors)
        self._reported: Optional[Wait] = None
        self._read = 0
        self._finishing = threading.Event()

    def finish(self) -> None:
        """Returns at once."""
        self._finishing.set()

    def run(self) -> None:
        while not self._finishing.wait(LOOK_EVERY):
            try:
                self.look()
            except Exception:  # noqa: BLE001 - the script runs on without it
                note("looking for executors failed:\n" + traceback.format_exc())
                return

    def look(self) -> None:
        wait = self._granted.read(self._new_lines(), self._clock())
        if wait == self._reported:
            return
        if wait is not None:
            self._say(lacking(self._one, wait))
        elif self._granted.has_all:
            self._say("%s has given all %d executors" % (self._one.shown, self._one.executors))
        self._reported = wait
        self._tell(wait)

    def _new_lines(self) -> "list[str]":
        """Whole lines since the last look; none where Spark has written nothing yet."""
        try:
            with open(self._path, "rb") as file:
                file.seek(self._read)
                found = file.read()
        except FileNotFoundError:
            return []
        whole = found[: found.rfind(b"\n") + 1]
        self._read += len(whole)
        return whole.decode("utf-8", "replace").splitlines()


def lacking(one: Registered, wait: Wait) -> str:
    """What a driver's log says while it waits."""
    words = (
        "%s has given %d of %d executors (cores of each: %d, memory: %d MiB): other applications have the rest of it, "
        "or no worker there is that large. The driver waits. Wait until others have ended, or stop this job and ask "
        "for fewer or smaller executors."
    )
    return words % (one.shown, wait.given, wait.wanted, one.cores, one.memory // MIB)


def file_in(work_dir: str) -> str:
    return os.path.join(work_dir, "spark-executors.log")


def logging(work_dir: str) -> str:
    """More of log4j's settings: what a driver knows of its executors, into the file. What is no note is still shown."""
    return LOGGING % (file_in(work_dir), _BACKEND)


LOGGING = """appender.granted.type = File
appender.granted.name = granted
appender.granted.fileName = %s
appender.granted.append = false
appender.granted.layout.type = PatternLayout
appender.granted.layout.pattern = %%m%%n
logger.backend.name = %s
logger.backend.level = info
logger.backend.additivity = false
logger.backend.appenderRef.granted.ref = granted
logger.backend.appenderRef.console.ref = console
logger.backend.appenderRef.console.level = warn
"""

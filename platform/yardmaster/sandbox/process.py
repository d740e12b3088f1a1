"""Runs one of our own programs on untrusted input, in a process of its own that is killed when it is late.

What an untrusted expression or source costs cannot be determined beforehand: a loop in C answers to nothing but a
signal. Not here: what the programs do, and how they limit their own memory.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO

log = logging.getLogger(__name__)

_SOURCE_ROOT = str(Path(__file__).resolve().parents[2])
_LAST_WORDS = 500
LOOK = 0.5
"""Seconds between looks whether a program that can be stopped has ended."""
_MOST_WORDS = 64 << 10
"""Bytes of stderr that are read."""
MOST_OUTPUT = 32 << 20
"""Bytes that a program may answer."""


@dataclass(frozen=True)
class Ended:
    """How it ended. `output` is what it had written, also where it was killed in the middle; at most `most_output`."""

    output: bytes
    is_well: bool
    """By itself, with exit code 0."""
    is_late: bool = False
    """Killed because its time was over."""


class BoundedProcess:
    """Programs of one kind: at most `at_once` of them run in this process's name. `paths` are further folders that
    they import from; without, they see the standard library and the core. One that writes more than `most_output`
    bytes is killed: what it wrote is held in memory here."""

    def __init__(
        self, module: str, *, at_once: int = 2, paths: Sequence[str] = (), most_output: int = MOST_OUTPUT
    ) -> None:
        self._module = module
        self._most_output = most_output
        self._paths = tuple(paths)
        self._free = threading.BoundedSemaphore(at_once)

    def run(
        self, task: bytes, *, seconds: float, late: float = 0.0, stop: threading.Event | None = None
    ) -> Ended | None:
        """Give it the task and see it to its end, or kill it after `seconds` and `late`, or once `stop` is set. None:
        for `seconds` too many others ran already."""
        if not self._free.acquire(timeout=seconds):
            return None
        try:
            return self._run(task, seconds + late, stop)
        finally:
            self._free.release()

    def _run(self, task: bytes, seconds: float, stop: threading.Event | None) -> Ended:
        with subprocess.Popen(
            [sys.executable, "-S", "-s", "-m", self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PYTHONPATH": os.pathsep.join([_SOURCE_ROOT, *self._paths])},
        ) as child:
            if stop is not None:
                threading.Thread(target=_end_when, args=(child, stop), daemon=True).start()
            output, words, is_late = self._conversation(child, task, seconds)
        if child.returncode != 0:
            last = words.decode(errors="replace").strip()[-_LAST_WORDS:]
            log.info("%s ended with %d: %s", self._module, child.returncode, last)
        return Ended(output, child.returncode == 0, is_late and child.returncode == -signal.SIGKILL)

    def _conversation(self, child: subprocess.Popen[bytes], task: bytes, seconds: float) -> tuple[bytes, bytes, bool]:
        """What it writes to stdout and stderr, and whether its time was over. Afterwards it has ended."""
        assert child.stdin
        assert child.stdout
        assert child.stderr
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            child.kill()

        late = threading.Timer(seconds, end)
        late.start()
        with ThreadPoolExecutor(2) as readers:
            output = readers.submit(_read, child, child.stdout, self._most_output)
            words = readers.submit(_read, child, child.stderr, _MOST_WORDS)
            with contextlib.suppress(BrokenPipeError):  # it ended without reading all of its task
                child.stdin.write(task)
            with contextlib.suppress(BrokenPipeError):
                child.stdin.close()
        child.wait()
        late.cancel()
        return output.result(), words.result(), is_late.is_set()


def _end_when(child: subprocess.Popen[bytes], stop: threading.Event) -> None:
    """Kill it once `stop` is set, if it has not ended by then."""
    while child.returncode is None:
        if stop.wait(LOOK):
            child.kill()
            return


def _read(child: subprocess.Popen[bytes], stream: IO[bytes], most: int) -> bytes:
    """At most so much; a program that writes more is killed."""
    found = stream.read(most + 1)
    if len(found) > most:
        child.kill()
    return found[:most]

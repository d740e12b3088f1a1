"""Runs one of our own programs on untrusted input, in a process of its own that is killed when it is late.

What an untrusted expression or source costs cannot be determined beforehand: a loop in C answers to nothing but a
signal. Not here: what the programs do, and how they limit their own memory.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger(__name__)

_SOURCE_ROOT = str(Path(__file__).resolve().parents[2])
_LAST_WORDS = 500


@dataclass(frozen=True)
class Ended:
    """How it ended. `output` is what it had written, also where it was killed in the middle."""

    output: bytes
    is_well: bool
    """By itself, with exit code 0."""


class BoundedProcess:
    """Programs of one kind: at most `at_once` of them run in this process's name. `paths` are further folders that
    they import from; without, they see the standard library and the core."""

    def __init__(self, module: str, *, at_once: int = 2, paths: Sequence[str] = ()) -> None:
        self._module = module
        self._paths = tuple(paths)
        self._free = threading.BoundedSemaphore(at_once)

    def run(self, task: bytes, *, seconds: float, late: float = 0.0) -> Ended | None:
        """Give it the task and see it to its end, or kill it after `seconds` and `late`. None: for `seconds` too many
        others ran already."""
        if not self._free.acquire(timeout=seconds):
            return None
        try:
            return self._run(task, seconds + late)
        finally:
            self._free.release()

    def _run(self, task: bytes, seconds: float) -> Ended:
        with subprocess.Popen(
            [sys.executable, "-S", "-s", "-m", self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PYTHONPATH": os.pathsep.join([_SOURCE_ROOT, *self._paths])},
        ) as child:
            try:
                output, words = child.communicate(task, timeout=seconds)
            except subprocess.TimeoutExpired:
                child.kill()
                output, words = child.communicate()
        if child.returncode != 0:
            last = words.decode(errors="replace").strip()[-_LAST_WORDS:]
            log.info("%s ended with %d: %s", self._module, child.returncode, last)
        return Ended(output, child.returncode == 0)

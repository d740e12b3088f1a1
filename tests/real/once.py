"""What is made once for all workers of a test run, and copied where it is needed."""

from __future__ import annotations

import fcntl
import functools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

RUN = "YARDMASTER_TESTS_RUN"
"""The variable that names a run's folder; there is none outside a run of tests."""


def once(name: str, make: Callable[[Path], object]) -> Path:
    """The file or folder that `make` writes at the path it is given. Who asks first makes it, and the others wait.

    Outside a test run (benchmarks, screenshots) it is made once for this process.
    """
    run = Path(os.environ.get(RUN) or _own().name)
    made, draft = run / name, run / f"{name}.draft"
    with (run / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            make(draft)
            draft.replace(made)
    return made


@functools.cache
def _own() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="yardmaster-made-")

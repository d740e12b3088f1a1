"""How soon `make up` is ready, and how much memory the whole portal holds when nothing happens."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import psutil

from portal.demo.portal import ROOT
from tests.bench.lines import Line, median

ROUNDS = 3
SETTLE = 5.0


def measure() -> Iterable[Line]:
    with tempfile.TemporaryDirectory(prefix="yardmaster-bench-") as folder:
        _ready_and_memory(Path(folder), settle=0.0)  # the first start of a home makes its database
        results = [_ready_and_memory(Path(folder), settle=SETTLE) for _ in range(ROUNDS)]
    yield Line("make up: ready", median(seconds for seconds, _ in results), "s", at_most=10.0)
    yield Line("make up: all processes together, idle", median(size for _, size in results), "MB", at_most=700.0,
               note="proportional set size")  # fmt: skip


def _ready_and_memory(home: Path, settle: float) -> tuple[float, float]:
    begun = time.monotonic()
    command = [sys.executable, "-m", "portal.up", "--port", "18473"]
    environment = {**os.environ, "YARDMASTER_HOME": str(home)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            if "is ready at" in line:
                break
        else:
            raise RuntimeError("the portal did not start")
        ready = time.monotonic() - begun
        time.sleep(settle)
        memory = sum(_memory(one) for one in [psutil.Process(child.pid), *psutil.Process(child.pid).children(True)])
        child.terminate()
        child.stdout.read()  # to its end, so that it can say goodbye
    return ready, memory / 1e6


def _memory(process: psutil.Process) -> int:
    """Shared pages count once: PSS where the system knows it, else RSS."""
    full = process.memory_full_info()
    return int(getattr(full, "pss", full.rss))

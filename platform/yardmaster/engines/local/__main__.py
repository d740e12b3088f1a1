"""`python -m yardmaster.engines.local <root> [--stop [--grace SECONDS]]`: list the runs that are alive, or end them."""

from __future__ import annotations

import argparse
import sys
import time
from datetime import timedelta
from pathlib import Path

from yardmaster.engines.local.live import LiveRun, live_runs, stop_all

_MARGIN = 10.0


def main(arguments: list[str] | None = None) -> int:
    """0: nothing is alive (any more), or they were listed. 1: some did not end in time."""
    parser = argparse.ArgumentParser(prog="python -m yardmaster.engines.local", description=__doc__)
    parser.add_argument("root", type=Path, help="the folder of the local engine")
    parser.add_argument("--stop", action="store_true", help="stop them, and wait until they have ended")
    parser.add_argument("--grace", type=float, default=10.0, help="seconds between SIGTERM and SIGKILL")
    asked = parser.parse_args(arguments)
    runs = stop_all(asked.root, timedelta(seconds=asked.grace)) if asked.stop else live_runs(asked.root)
    for run in runs:
        sys.stdout.write(f"{run.folder.name}  {run.name}  {' '.join(run.tasks)}\n")
    if not asked.stop:
        return 0
    left = _wait(asked.root, asked.grace + _MARGIN)
    sys.stdout.write(f"{len(runs) - len(left)} of {len(runs)} stopped\n")
    return 1 if left else 0


def _wait(root: Path, seconds: float) -> list[LiveRun]:
    deadline = time.monotonic() + seconds
    while (left := live_runs(root)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


if __name__ == "__main__":
    sys.exit(main())

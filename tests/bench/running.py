"""Measurements one after the other, each in a process of its own: printed as they come, and written to a file."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from tests.bench.lines import Line, Measurement, chosen, write_report
from tests.bench.own_process import run_in_own_process

RESULTS = Path(__file__).resolve().parents[2] / "bench-results"


def run(measurements: Mapping[str, Measurement], names: list[str]) -> None:
    """Those whose name begins with one of `names`; all of them when there is none."""
    lines: list[Line] = []
    for name, measure in chosen(measurements, names):
        begun = time.monotonic()
        print(f"# {name}", flush=True)
        for line in run_in_own_process(measure):
            print(line, flush=True)
            lines.append(line)
        print(f"# {name} took {time.monotonic() - begun:.0f} s", flush=True)
    print(f"{sum(line.is_met for line in lines)} of {len(lines)} lines ok; {write_report(RESULTS, lines)}")

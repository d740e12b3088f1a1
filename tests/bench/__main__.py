"""The command behind `make bench`."""

from __future__ import annotations

import sys
import time
import traceback
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.bench import job_list, log_lines, scaling, start_up, whole_job
from tests.bench.lines import Line, Measurement, chosen, write_report

MEASUREMENTS: dict[str, Measurement] = {
    "start": start_up.measure,
    "list": job_list.measure,
    "logs": log_lines.measure,
    "job": whole_job.measure,
    "scaling": scaling.measure_all,
}
RESULTS = Path(__file__).resolve().parents[2] / "bench-results"


def main(names: list[str]) -> int:
    lines: list[Line] = []
    for name, measure in chosen(MEASUREMENTS, names):
        begun = time.monotonic()
        print(f"# {name}", flush=True)
        for line in _apart(measure):
            print(line, flush=True)
            lines.append(line)
        print(f"# {name} took {time.monotonic() - begun:.0f} s", flush=True)
    print(f"{sum(line.is_met for line in lines)} of {len(lines)} lines ok; {write_report(RESULTS, lines)}")
    return 0


def _apart(measure: Measurement) -> list[Line]:
    """In a process of its own, so that no measurement sees what another one has loaded, or falls with it."""
    context = get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=_report, args=(measure, queue))
    child.start()
    lines: list[Line] = []
    while (item := queue.get()) is not None:
        lines.append(item)
    child.join()
    return lines


def _report(measure: Measurement, queue: Any) -> None:
    try:
        for line in measure():
            queue.put(line)
    except Exception:  # noqa: BLE001 - the top of a measurement: it is told as short, and the others go on
        traceback.print_exc()
        queue.put(Line(f"{measure.__module__.rpartition('.')[2]}: could not be measured", 1, "", at_most=0))
    finally:
        queue.put(None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

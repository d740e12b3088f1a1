"""The command behind `make bench`."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tests.bench import job_list, log_lines, log_viewer, pages, scaling, start_up, whole_job
from tests.bench.apart import run_apart
from tests.bench.lines import Line, Measurement, chosen, write_report

MEASUREMENTS: dict[str, Measurement] = {
    "start": start_up.measure,
    "list": job_list.measure,
    "logs": log_lines.measure,
    "job": whole_job.measure,
    "scaling": scaling.measure_all,
    "pages": pages.measure,
    "viewer": log_viewer.measure,
}
RESULTS = Path(__file__).resolve().parents[2] / "bench-results"


def main(names: list[str]) -> int:
    lines: list[Line] = []
    for name, measure in chosen(MEASUREMENTS, names):
        begun = time.monotonic()
        print(f"# {name}", flush=True)
        for line in run_apart(measure):
            print(line, flush=True)
            lines.append(line)
        print(f"# {name} took {time.monotonic() - begun:.0f} s", flush=True)
    print(f"{sum(line.is_met for line in lines)} of {len(lines)} lines ok; {write_report(RESULTS, lines)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

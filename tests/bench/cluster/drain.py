"""Whether a long queue goes through as fast as a short one: jobs per second of 100 against those of 10.

From the first job's admission to the last one's verdict, by the portal's own clock. Few, many, few: so that a machine
that slows down favours neither.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any

from tests.bench.bench_portal import BenchPortal
from tests.bench.cluster.ground import ground, portal_on
from tests.bench.cluster.queue import launch, ready, settle
from tests.bench.lines import Line

FEW, MANY = 10, 100
AT_ONCE = 4
"""Jobs that may run at a time: the same for few and for many, and as many as two processors can start in pods."""
LEAST = 0.9


def measure() -> Iterable[Line]:
    with ground() as here, portal_on(here) as portal:
        spec = ready(portal, AT_ONCE)
        few, many = [_rate(portal, spec, FEW)], [_rate(portal, spec, MANY)]
        few.append(_rate(portal, spec, FEW))
    alone = statistics.mean(few)
    yield Line(f"{FEW} queued jobs drain at", alone, "1/s",
               note=f"before {few[0]:.3g}, after {few[1]:.3g}; {AT_ONCE} at a time")  # fmt: skip
    yield Line(f"{MANY} queued jobs drain at", many[0], "1/s")
    yield Line("... times the rate of few", many[0] / alone, at_least=LEAST)


def _rate(portal: BenchPortal, spec: dict[str, Any], number: int) -> float:
    """Jobs per second."""
    jobs = settle(portal, launch(portal, spec, number))
    well = [job for job in jobs if job.phase == "SUCCEEDED"]
    if len(well) != number:
        raise RuntimeError(f"{number - len(well)} of {number} jobs did not succeed")
    begun = min(job.admitted_at for job in well if job.admitted_at)
    ended = max(job.decided_at for job in well if job.decided_at)
    return number / (ended - begun).total_seconds()

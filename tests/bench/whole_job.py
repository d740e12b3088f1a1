"""A job through Yardmaster against the same tasks started by hand: what all the portal's care costs in wall time.

By hand the tasks get the number of threads that the local engine gives them, which on a small machine makes them faster
than without: what is measured is the portal, not the choice.

Now and then `Session.close` of TensorFlow waits ten seconds for nothing, by hand as well as in a job. Such runs are
counted and left out: how many of them fall on either side is chance.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from portal.demo.portal import ROOT
from portal.env import task_python
from tests.bench.bench_portal import BenchPortal, bench_portal
from tests.bench.lines import Line, interleaved, median
from tests.integration.examples.by_hand import Cluster

ROUNDS = 8
STALL = 7.0
FLAGS = ("--steps=2500",)
SCRIPT = ROOT / "examples" / "digits" / "between_graph.py"
ROLES = {"ps": 1, "worker": 2}
THREADS = {"OMP_NUM_THREADS": "1", "TF_NUM_INTRAOP_THREADS": "1"}


def measure() -> Iterable[Line]:
    with tempfile.TemporaryDirectory() as folder, bench_portal() as portal:
        data = Path(folder) / "data"
        subprocess.run([task_python(), str(SCRIPT.parent / "prepare.py"), str(data)], check=True, capture_output=True)
        spec = _spec(portal, data)
        rounds = iter(range(10 * ROUNDS))
        by_hand, through = interleaved(
            lambda: _by_hand(Path(folder) / f"hand-{next(rounds)}", data), lambda: _through(portal, spec), ROUNDS
        )
    hand, yard = without_stalls(by_hand), without_stalls(through)
    spent = median(yard)
    yield Line("a job by hand", median(hand), "s", note=_note(hand, by_hand))
    yield Line("the same job through Yardmaster", spent, "s", note=_note(yard, through))
    yield Line("... beyond 1.03 times the time by hand", spent - 1.03 * median(hand), "s", at_most=1.5)


def without_stalls(took: Sequence[float]) -> list[float]:
    """The runs, in seconds, that did not stall."""
    return [one for one in took if one < min(took) + STALL]


def _note(kept: Sequence[float], measured: Sequence[float]) -> str:
    return f"median of {len(kept)}; {len(measured) - len(kept)} stalled"


def _spec(portal: BenchPortal, data: Path) -> dict[str, Any]:
    dataset = portal.client.datasets.put("digits", [data]).latest
    code = portal.client.code.put("digits", [SCRIPT.parent]).latest
    assert dataset is not None
    assert code is not None
    task = {"cpu": 0.5, "memory": "2Gi"}
    return {
        "name": "bench", "strategy": "between_graph", "code": code.id, "entry_point": SCRIPT.name,
        "arguments": list(FLAGS), "inputs": [{"dataset_version": dataset.id}], "reclaim_delay": 0, "grace_period": 2,
        "environment": {"TF_CPP_MIN_LOG_LEVEL": "3"},
        "roles": {role: {"replicas": count, **task} for role, count in ROLES.items()},
    }  # fmt: skip


def _by_hand(folder: Path, data: Path) -> float:
    """From the start of the first task to the end of the last worker."""
    begun = time.monotonic()
    os.environ.update(THREADS)
    with Cluster(SCRIPT, "between_graph", ROLES, folder, data, FLAGS) as cluster:
        cluster.start_all()
        for index in range(ROLES["worker"]):
            if code := cluster.tasks["worker", index].wait(300):
                raise RuntimeError(f"worker {index} ended with {code} by hand")
        return time.monotonic() - begun


def _through(portal: BenchPortal, spec: dict[str, Any]) -> float:
    """From the request to the verdict, waited for as the command line does it.

    The queue must be empty: the run before is waited for, not measured.
    """
    begun = time.monotonic()
    job = portal.client.jobs.launch(spec)
    job = portal.client.jobs.wait(job.id, timeout=300)
    took = time.monotonic() - begun
    if job.phase != "SUCCEEDED":
        raise RuntimeError(f"the job ended as {job.phase}: {job.message}")
    while portal.client.jobs.get(job.id).cleaned_up_at is None:
        time.sleep(0.2)
    return took

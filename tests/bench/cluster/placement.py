"""How long admission takes for a job of two hundred tasks, on nodes that only seem to be there, and how long the real
scheduler then takes.

Admission is what a pass of the queue does for one job: count the capacity, from live watches, and look for a place for
all tasks.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from dataclasses import dataclass

from tests.bench.cluster.ground import NO_PORTAL, Ground, ground, shaped_namespace
from tests.bench.lines import Line, median
from tests.bench.many_pods import ASKED, GOAL, ROLES, place
from tests.cluster.fake_nodes import fake_nodes, on_fake_nodes
from tests.cluster.reach import wait_for
from tests.contract.engine_harness import spec_of
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.errors import Unavailable
from yardmaster.ids import JobKey
from yardmaster.lifecycle.phases import TaskPhase

NODES = (50, 1_000)
ROUNDS = 15
PATIENCE = 120.0
SPEC = spec_of(roles=ROLES)


def measure() -> Iterable[Line]:
    with ground() as here:
        for count in NODES:
            with fake_nodes(here.cluster, f"{count} name=bench cpu=8 memory=32Gi"):
                yield from _lines(here, count)


def _lines(here: Ground, count: int) -> Iterable[Line]:
    engine, _ = here.engine(watch=True, **on_fake_nodes())
    engine.capacity()
    wait_for("the watches of nodes", engine._watching.knows_capacity, PATIENCE)
    found = [_admission(engine) for _ in range(ROUNDS)]
    sums = [1000 * (one.counted + one.placed) for one in found]
    note = (
        f"median of {ROUNDS}: capacity counted in {1000 * median(one.counted for one in found):.0f}, places found in "
        f"{1000 * median(one.placed for one in found):.0f}; worst {max(sums):.0f}"
    )
    yield Line(f"admission of {ASKED} tasks on {count} nodes", median(sums), "ms", at_most=GOAL, note=note)
    key = shaped_namespace(engine)
    begun = time.monotonic()
    engine.submit(SPEC, key, NO_PORTAL)
    wait_for("all tasks to run", lambda: _all_run(engine, key), PATIENCE)
    took = time.monotonic() - begun
    yield Line("... made, bound by the scheduler and running after", took, "s")
    # A machine that is busy may need longer for 200 pods than the engine waits; they go with their namespace as well.
    with contextlib.suppress(Unavailable):
        engine.clean_up(key)
    engine.close()


@dataclass(frozen=True)
class Took:
    """Seconds."""

    counted: float
    placed: float


def _admission(engine: KubernetesEngine) -> Took:
    begun = time.perf_counter()
    capacity = engine.capacity()
    counted = time.perf_counter()
    place(capacity)
    placed = time.perf_counter()
    return Took(counted - begun, placed - counted)


def _all_run(engine: KubernetesEngine, key: JobKey) -> bool:
    tasks = engine.observe([key])[key].tasks
    return bool(tasks) and all(task.phase is TaskPhase.RUNNING for task in tasks)

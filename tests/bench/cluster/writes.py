"""What jobs cost the API server: requests that write for each job, and what a look at running jobs asks.

Requests are counted where the engine's connection leaves the process, so that what others ask of the same server does
not count.
"""

from __future__ import annotations

import threading
import time
from collections import Counter as Tally
from collections.abc import Iterable

from tests.bench.cluster.counted import Counter
from tests.bench.cluster.ground import NOBODY, Ground, ground, new_key, shaped_namespace, spec_of
from tests.bench.lines import Line
from tests.cluster.reach import wait_for
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.engines.kubernetes.store import KINDS
from yardmaster.ids import JobKey
from yardmaster.phases import TaskPhase
from yardmaster.spec import Role, Strategy

MOST = 8.0
JOBS = 10
SECONDS = 30.0
EVERY = 1.0
"""Of looks at all jobs. The portal looks less often."""


def measure() -> Iterable[Line]:
    with ground() as here:
        yield from _writes(here)
        yield from _steady(here)


def _writes(here: Ground) -> Iterable[Line]:
    engine, counter = here.engine()
    place = shaped_namespace(engine)
    counts = {workers: _life(engine, counter, place, {Role.WORKER: workers, Role.PS: 1}) for workers in (2, 8)}
    for workers, (made, asked, _) in counts.items():
        yield Line(f"writes to start a job of {workers} workers and a parameter server", made + asked, at_most=MOST,
                   note=f"{asked} of them dry runs")  # fmt: skip
    yield Line("... more with 8 workers than with 2", _total(counts[8]) - _total(counts[2]), at_most=0.0)
    _, _, ended = counts[8]
    yield Line("writes over the job's whole life", _total(counts[8]), at_most=MOST,
               note=f"{ended} to release the server and tidy up")  # fmt: skip
    yield Line("... of a single task", _total(_life(engine, counter, place, {Role.WORKER: 1})), at_most=MOST)
    every = _life(engine, counter, place, dict.fromkeys(Role, 1))
    yield Line("writes to start a job of all four roles", every[0] + every[1], note=f"{every[1]} of them dry runs")


def _life(engine: KubernetesEngine, counter: Counter, place: JobKey, replicas: dict[Role, int]) -> tuple[int, int, int]:
    """Requests that write: to make the run, to ask about it before, and to end it as the portal does: servers are
    released when the workers have ended, and all is tidied at the end."""
    strategy = Strategy.PARAMETER_SERVER if Role.CHIEF in replicas else Strategy.BETWEEN_GRAPH
    spec = spec_of(replicas, Strategy.SINGLE if len(replicas) == 1 else strategy)
    key = new_key(place)
    counter.taken()
    engine.submit(spec, key, NOBODY)
    begun = [one for one in counter.taken() if one.is_write]
    if Role.PS in replicas:
        engine.release(key, [Role.PS])
    engine.tidy(key)
    ended = sum(one.is_write for one in counter.taken())
    asked = sum(one.is_dry_run for one in begun)
    return len(begun) - asked, asked, ended


def _total(counts: tuple[int, int, int]) -> int:
    return sum(counts)


def _steady(here: Ground) -> Iterable[Line]:
    """Running jobs, looked at again and again by one process that also listens for changes."""
    engine, counter = here.engine(watch=True)
    place = shaped_namespace(engine)
    keys = [new_key(place) for _ in range(JOBS)]
    threading.Thread(target=lambda: [None for _ in engine.changes()], daemon=True).start()
    for key in keys:
        engine.submit(spec_of({Role.WORKER: 1}, Strategy.SINGLE), key, NOBODY)
    wait_for("all jobs to run", lambda: _all_run(engine, keys), 240)
    begun = Tally(one.resource for one in counter.taken() if one.verb == "watch")
    end = time.monotonic() + SECONDS
    looks = 0
    while time.monotonic() < end:
        time.sleep(EVERY)
        looks += _all_run(engine, keys)
    asked = counter.taken()
    engine.close()
    yield Line("watches of each kind in one process", max(begun.values()), at_most=1.0,
               note=f"{len(begun)} of {len(KINDS)} kinds: {', '.join(sorted(begun))}")  # fmt: skip
    lists = sum(one.verb == "list" for one in asked)
    yield Line(f"lists while {JOBS} running jobs are watched for {SECONDS:g} s", lists, at_most=0.0,
               note=f"{looks} looks at all of them, {len(asked)} requests of any kind")  # fmt: skip


def _all_run(engine: KubernetesEngine, keys: list[JobKey]) -> bool:
    seen = engine.observe(keys).values()
    return all(one.tasks and all(task.phase is TaskPhase.RUNNING for task in one.tasks) for one in seen)

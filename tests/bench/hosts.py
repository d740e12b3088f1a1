"""What it costs to run jobs on machines that are reached by SSH: with a real sshd each, in network namespaces of this
machine. Tasks do nothing here: what is measured is what is around them.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import psutil

from tests.bench.lines import Line, interleaved, median
from tests.real.machines import Machines, lacks_machines, machines
from yardmaster.engines.base import TaskAccess
from yardmaster.engines.hosts import HostsEngine
from yardmaster.ids import JobKey, new_id
from yardmaster.job.spec import Resources, Role, RoleSpec, Strategy, TrainingSpec
from yardmaster.lifecycle.phases import TaskPhase

ACCESS = TaskAccess("http://127.0.0.1:1", "a-token")
MACHINES = 8
TASKS = 200
ROUNDS = 7
WATCHED = 20.0
SMALL = Resources(cpu=0.1, memory=8 << 20)


def measure() -> Iterable[Line]:
    if lacking := lacks_machines():
        yield Line(f"machines by SSH: {lacking}", 0.0)
        return
    with tempfile.TemporaryDirectory(prefix="yardmaster-bench-") as folder:
        # What a machine has is said, as this one is divided: every job is on all of them.
        entry = f'cores = {TASKS / MACHINES / 10 + 0.1}\nmemory = "8Gi"'
        with machines(Path(folder), MACHINES, entry) as found, _engine(found) as engine:
            yield from _submitted(engine, found)
            yield from _kept(engine)


@contextmanager
def _engine(found: Machines) -> Iterator[HostsEngine]:
    engine = HostsEngine(found.portal, found.file, owner="the bench", command=["/bin/sleep", "600"])
    try:
        engine.capacity()
        yield engine
    finally:
        for placement in engine.records.placements():
            engine.clean_up(placement.key)
        engine.close()


def _spec(count: int) -> TrainingSpec:
    roles = {Role.WORKER: RoleSpec(count - 2, SMALL), Role.PS: RoleSpec(2, SMALL)}
    code = {"code_version": new_id(), "entry_point": "train.py", "grace_period": timedelta(seconds=1)}
    return TrainingSpec("bench", strategy=Strategy.BETWEEN_GRAPH, roles=roles, **code)  # type: ignore[arg-type]


def _submitted(engine: HostsEngine, found: Machines) -> Iterable[Line]:
    """In turn: a job of as many tasks as fill all machines but one, and one bare `ssh` to each machine."""
    count = TASKS - TASKS // MACHINES
    ours, bare = interleaved(lambda: _start(engine, count), lambda: _bare(found), ROUNDS)
    beyond = [mine - theirs for mine, theirs in zip(ours, bare, strict=True)]
    yield Line(
        f"machines by SSH: submit until all {count} tasks are started, beyond one bare ssh per machine",
        median(beyond),
        "s",
        at_most=1.5,
        note=f"{median(ours):.2f} s and {median(bare):.2f} s; worst {max(beyond):.2f}",
    )


def _start(engine: HostsEngine, count: int) -> float:
    key, begun = JobKey(new_id(), new_id(), 1), time.monotonic()
    engine.submit(_spec(count), key, ACCESS)
    while not all(task.phase is TaskPhase.RUNNING for task in engine.observe([key])[key].tasks):
        time.sleep(0.02)
    took = time.monotonic() - begun
    engine.clean_up(key)
    return took


def _bare(found: Machines) -> float:
    """All at once, each a connection of its own, as a script would."""
    key = found.portal / "id_ed25519"
    how = [
        "-o",
        "BatchMode=yes",
        "-o",
        "StrictHostKeyChecking=no",
        "-o",
        "UserKnownHostsFile=/dev/null",
        "-i",
        str(key),
    ]
    network = found.gateway.rsplit(".", 1)[0]
    begun = time.monotonic()
    started = [
        subprocess.Popen(["ssh", *how, f"root@{network}.{10 + number}", "true"], stderr=subprocess.DEVNULL)
        for number in range(1, MACHINES + 1)
    ]
    for one in started:
        if one.wait() != 0:
            raise RuntimeError("a bare ssh failed")
    return time.monotonic() - begun


def _kept(engine: HostsEngine) -> Iterable[Line]:
    """What supervisors, agents and the portal's connections take of a processor while nothing happens; and while the
    portal looks at the job as often as it does (every 5 s)."""
    key = JobKey(new_id(), new_id(), 1)
    engine.submit(_spec(TASKS), key, ACCESS)
    while not all(task.phase is TaskPhase.RUNNING for task in engine.observe([key])[key].tasks):
        time.sleep(0.1)
    changes = engine.changes()
    next(changes)  # the portal listens to all machines
    time.sleep(3.0)
    before, begun = _spent(), time.monotonic()
    while time.monotonic() < begun + WATCHED:
        time.sleep(5.0)
        engine.observe([key])
    after, seconds = _spent(), time.monotonic() - begun
    there = (after[0] - before[0]) / seconds
    here = (after[1] - before[1]) / seconds
    yield Line(
        f"machines by SSH: {TASKS} tasks on {MACHINES} machines are kept",
        there + here,
        "cores",
        at_most=0.1,
        note=f"{here:.3f} in the portal, {there:.3f} on all machines together",
    )
    engine.clean_up(key)


def _spent() -> tuple[float, float]:
    """Seconds of a processor: of supervisors, agents and SSH servers on the machines, and of this process."""
    there = 0.0
    for one in psutil.process_iter():
        try:
            words = " ".join(one.cmdline())
            if "yardmaster.engines" in words or words.startswith("sshd"):
                times = one.cpu_times()
                there += times.user + times.system
        except psutil.Error:
            continue
    own = os.times()
    return there, own.user + own.system

"""How the steps per second of asynchronous workers grow with their number, when a step's computation is a sleep.

The sleep stands for work on a processor of its own, which a small machine does not have for every worker. What is left
is what parameter servers and workers cost each other. The tasks are started by hand: this measures TensorFlow and the
example, and is what a job through the portal is held against.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from portal.env import task_python
from tests.bench.lines import Line
from tests.integration.examples.by_hand import EXAMPLES, Cluster
from yardmaster_runner.events import EventFiles

STEP_SLEEP = 0.2
GOALS = {2: 0.98, 4: 0.95, 8: 0.90}
"""Least efficiency by number of workers: all steps per second, over that many times the steps of one worker alone."""
_FOR_EVER = 10**9


def measure(workers: int, seconds: float) -> float:
    """Steps per second of `workers` workers and one parameter server together, over `seconds` in which all of them
    train. Start-up is not counted. Blocks for that time and the start of TensorFlow in every task."""
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(folder, "data")
        subprocess.run([task_python(), EXAMPLES / "digits" / "prepare.py", data_dir], check=True, capture_output=True)
        flags = (
            f"--step_sleep={STEP_SLEEP}",
            f"--steps={_FOR_EVER}",
            f"--checkpoint_every={_FOR_EVER}",
            "--log_every=5",
        )
        replicas = {"ps": 1, "worker": workers}
        script = EXAMPLES / "digits" / "between_graph.py"
        with Cluster(script, "between_graph", replicas, Path(folder, "run"), data_dir, flags) as cluster:
            cluster.start_all()
            for index in range(workers):
                cluster["worker", index].wait_for(r"step \d+/")  # it is printed after a worker's first step
            begun = time.time()
            time.sleep(seconds)
            return _rate(cluster.log_dir, begun, begun + seconds)


def _rate(log_dir: Path, begun: float, ended: float) -> float:
    """Global steps per second between the first and the last summary of worker 0 in that time."""
    found = EventFiles(str(log_dir)).look().scalars
    points = [one for one in found if one.tag == "loss" and begun <= one.time <= ended]
    first, last = min(points, key=lambda one: one.time), max(points, key=lambda one: one.time)
    return (last.step - first.step) / (last.time - first.time)


def measure_all() -> Iterable[Line]:
    """One worker alone, before and after the others, so that a machine that slows down favours neither."""
    seconds = 20.0
    before = measure(1, seconds)
    together = {workers: measure(workers, seconds) for workers in GOALS}
    alone = (before + measure(1, seconds)) / 2
    yield Line("steps per second of one worker", alone, "1/s")
    for workers, goal in GOALS.items():
        efficiency = together[workers] / (workers * alone)
        note = f"{together[workers]:.2f} steps/s"
        yield Line(f"efficiency of {workers} asynchronous workers", efficiency, "", at_least=goal, note=note)

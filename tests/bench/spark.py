"""A Spark application through Yardmaster against `spark-submit` by hand, and executors that are added.

By hand there is a standalone cluster that waits for the application; through Yardmaster the job's own is started and
ended with it, and its time is from the launch to the verdict. Both have the same executors, with the same settings.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from portal.env import spark_folder, task_python
from tests.bench.bench_portal import BenchPortal, bench_portal
from tests.bench.lines import Line, interleaved, median
from tests.real.portal import free_port
from tests.real.spark import missing_for_spark
from yardmaster_runner.spark.cluster import DAEMONS

ROUNDS = int(os.environ.get("YARDMASTER_BENCH_ROUNDS", "4"))
EXECUTORS = 2
WORK = {"rows": 6_400, "step": 0.1}
"""Of the application whose whole time is compared: 20 s of steps."""
FED = {"rows": 100_000, "batch": 256}
SCALED = {"rows": 1_600, "step": 0.25}
SIZES = {1: None, 2: 0.98, 4: 0.95, 8: 0.90}
"""Executors, and the least part of the speed that as many would have if none cost another anything."""
MEMORY = "2Gi"
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3"}
LONGEST = 600.0
SCRIPT = Path(__file__).with_name("spark_script.py")
SETTINGS = """spark.scheduler.minRegisteredResourcesRatio 1.0
spark.scheduler.maxRegisteredResourcesWaitingTime 600s
spark.executor.memory 480m
spark.driver.memory 480m
spark.ui.enabled false
"""


@dataclass(frozen=True)
class Run:
    """Seconds from its start to its end, and rows a second of all executors."""

    took: float
    rate: float


def measure() -> Iterable[Line]:
    if lacking := missing_for_spark():
        print(f"spark: left out, {lacking}", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory(prefix="yardmaster-bench-") as name, ExitStack() as stack:
        folder = Path(name)
        one = stack.enter_context(bench_portal())
        code = _put_code(one, folder / "code")
        master = stack.enter_context(_cluster(folder, EXECUTORS))
        yield from _whole(one, code, master)
        yield from _fed(one, code, master)
        yield from _scaled(one, code)


def _whole(one: BenchPortal, code: str, master: str) -> Iterable[Line]:
    hand, yard = interleaved(lambda: _by_hand(master, WORK), lambda: _through(one, code, EXECUTORS, WORK), ROUNDS)
    by_hand, through = (median([run.took for run in runs]) for runs in (hand, yard))
    yield Line("a Spark application by hand", by_hand, "s")
    yield Line("the same through Yardmaster", through, "s")
    yield Line("... beyond 1.03 times the time by hand", through - 1.03 * by_hand, "s", at_most=3.0)


def _fed(one: BenchPortal, code: str, master: str) -> Iterable[Line]:
    hand, yard = interleaved(lambda: _by_hand(master, FED), lambda: _through(one, code, EXECUTORS, FED), ROUNDS)
    by_hand, through = (median([run.rate for run in runs]) for runs in (hand, yard))
    note = f"{through:,.0f} against {by_hand:,.0f} rows a second"
    yield Line("rows fed from an RDD, of those by hand", through / by_hand, "", at_least=0.9, note=note)


def _scaled(one: BenchPortal, code: str) -> Iterable[Line]:
    """In turn, so that a machine that slows down favours no size."""
    rates: dict[int, list[float]] = {size: [] for size in SIZES}
    for number in range(ROUNDS - 1):
        for size in sorted(SIZES, reverse=bool(number % 2)):
            rates[size].append(_through(one, code, size, SCALED).rate)
    alone = median(rates[1])
    for size, goal in SIZES.items():
        if goal is not None:
            part = median(rates[size]) / (size * alone)
            note = f"{os.cpu_count()} cores, steps of {SCALED['step']:g} s"
            yield Line(f"{size} Spark executors, of {size} times one", part, "", at_least=goal, note=note)


def _through(one: BenchPortal, code: str, executors: int, work: dict[str, float]) -> Run:
    with tempfile.TemporaryDirectory(prefix="yardmaster-bench-") as out:
        small = {"cpu": 1.8 / (executors + 1), "memory": MEMORY}
        roles = {"driver": {"replicas": 1, **small}, "executor": {"replicas": executors, **small}}
        begun = time.monotonic()
        job = one.client.jobs.launch({
            "name": "bench", "strategy": "spark", "code": code, "entry_point": "main.py", "roles": roles,
            "arguments": _arguments(out, work), "environment": QUIET, "paths": {"data_flag": "", "log_flag": ""},
            "retries": 0, "reclaim_delay": 0, "grace_period": 2,
        })  # fmt: skip
        ended = one.client.jobs.wait(job.id, timeout=LONGEST)
        took = time.monotonic() - begun
        if ended.phase != "SUCCEEDED":
            raise RuntimeError(f"the job ended as {ended.phase}: {ended.message}")
        while one.client.jobs.get(job.id).cleaned_up_at is None:
            time.sleep(0.2)
        return Run(took, _rate(out))


def _by_hand(master: str, work: dict[str, float]) -> Run:
    with tempfile.TemporaryDirectory(prefix="yardmaster-bench-") as out:
        conf = Path(out) / "spark-defaults.conf"
        conf.write_text(
            SETTINGS + f"spark.executor.instances {EXECUTORS}\nspark.executor.cores 1\nspark.cores.max {EXECUTORS}\n"
        )
        submit = ["bash", f"{_home()}/bin/spark-submit", "--master", master, "--properties-file", str(conf)]
        begun = time.monotonic()
        done = subprocess.run(
            [*submit, str(SCRIPT), *_arguments(out, work)],
            env=_environment(), capture_output=True, text=True, check=False, timeout=LONGEST,
        )  # fmt: skip
        took = time.monotonic() - begun
        if done.returncode:
            raise RuntimeError(done.stderr[-3000:])
        return Run(took, _rate(out))


def _put_code(one: BenchPortal, folder: Path) -> str:
    folder.mkdir()
    (folder / "main.py").write_text(SCRIPT.read_text())
    (folder / "spark-defaults.conf").write_text(SETTINGS)
    latest = one.client.code.put("bench", [folder]).latest
    assert latest is not None
    return latest.id


def _arguments(out: str, work: dict[str, float]) -> list[str]:
    return [f"--out={out}", *(f"--{name}={value}" for name, value in work.items())]


def _rate(out: str) -> float:
    found = [json.loads(path.read_text()) for path in Path(out).glob("*.json")]
    return sum(rows / seconds for rows, seconds in found)


def _home() -> str:
    return f"{spark_folder()}/pyspark"


def _environment() -> dict[str, str]:
    return {
        **os.environ, **QUIET, "PYTHONPATH": spark_folder(), "SPARK_HOME": _home(), "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": task_python(), "PYSPARK_DRIVER_PYTHON": task_python(), "TFOS_SERVER_HOST": "127.0.0.1",
    }  # fmt: skip


@contextmanager
def _cluster(folder: Path, workers: int) -> Iterator[str]:
    """A master and workers with a core each, as `sbin/start-all.sh` would start them; the master's address."""
    port = free_port()
    program = ["bash", f"{_home()}/bin/spark-class"]
    listen = ["--host", "127.0.0.1", "--webui-port", "0", "--port"]
    commands = [[*program, "org.apache.spark.deploy.master.Master", *listen, str(port)]]
    for number in range(workers):
        where = ["--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"worker-{number}")]
        name = "org.apache.spark.deploy.worker.Worker"
        commands.append([*program, name, *listen, str(free_port()), *where, f"spark://127.0.0.1:{port}"])
    running: list[subprocess.Popen[bytes]] = []
    try:
        with (folder / "spark.log").open("wb") as log:
            for command in commands:
                running.append(subprocess.Popen(command, env={**_environment(), **DAEMONS}, stdout=log, stderr=log))
                _wait_for(port)
        yield f"spark://127.0.0.1:{port}"
    finally:
        for one in reversed(running):
            one.terminate()
            one.wait()


def _wait_for(port: int) -> None:
    until = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)

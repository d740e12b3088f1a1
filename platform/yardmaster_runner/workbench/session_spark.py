"""`python -m yardmaster_runner.workbench.session_spark`: the Spark cluster of a JupyterLab session, for as long as the
process that started it is there, which becomes JupyterLab.

`begin` gives kernels and terminals the environment in which `SparkSession.builder.getOrCreate()` finds the cluster, and
starts this program, which starts Spark's master and a worker. JupyterLab does not wait for them: Spark's drivers do.
What executors print is in the session's log. All of Spark listens on loopback and shares a secret of this session,
which is in a file of the session's user alone.

Not here: whether the session may have executors (the portal), and what their settings are (`spark.for_notebooks`).
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Callable, Dict, List, Mapping

from yardmaster_runner.exits import say
from yardmaster_runner.own_programs import Orders
from yardmaster_runner.signal_event import SignalEvent
from yardmaster_runner.spark.cluster import VARIABLE, from_variable, to_variable
from yardmaster_runner.spark.driver import start_master
from yardmaster_runner.spark.executor import LOOK_EVERY, start_worker
from yardmaster_runner.spark.for_notebooks import EXECUTORS, LOOPBACK, SHARED, cluster_at, worker_of
from yardmaster_runner.spark.installed import NotInstalled, find, prepared

LAST_WAIT = 10.0
"""Seconds that kernels have to end once the session is told to stop, before Spark ends."""
KILLED_AFTER = 5.0
START_AGAIN_AFTER = 2.0
PARENT = "YARDMASTER_SPARK_PARENT"


def wants_spark(given: Orders) -> bool:
    return bool(given.options.get(EXECUTORS))


def begin(given: Orders, environment: Mapping[str, str], private: str) -> Dict[str, str]:
    """The environment of JupyterLab with what leads to the session's own cluster, which is started. Raises
    `NotInstalled` and `OSError`."""
    installed = find(environment)
    folder = os.path.join(os.path.dirname(given.data_dir) or private, "spark")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    master = "%s:%d" % (LOOPBACK, _free_port())
    here = cluster_at(master, given.options, secrets.token_hex(32), folder, given.home_dir)
    found = {**prepared(here, installed, environment, SHARED), "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-u", "-m", __name__]
    its_own = {**found, **to_variable(here), PARENT: str(os.getpid())}
    subprocess.Popen(command, env=its_own, cwd=folder, stdin=subprocess.DEVNULL)
    say("Starting Spark for this session: %d executors with %d cores each" % (here.executors, here.cores))
    return found


def main() -> int:
    environment = dict(os.environ)
    cluster, parent = from_variable(environment), int(environment.pop(PARENT))
    del environment[VARIABLE]
    stop = SignalEvent()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        installed = find(environment)
        master = start_master(cluster, installed, environment)
    except (NotInstalled, OSError) as error:  # JupyterLab runs on without it
        say("Spark did not start: %s" % error)
        return 1
    is_over = _end_of(parent, stop)
    try:
        while not is_over() and master.poll() is None:
            worker, logs = start_worker(worker_of(cluster), installed, environment, has_own_group=True)
            try:
                while worker.poll() is None and master.poll() is None and not is_over():
                    if not logs.read():
                        time.sleep(LOOK_EVERY)
            finally:
                _end(worker)
            logs.read(is_last=True)
            if not is_over() and master.poll() is None:
                say("Spark's worker ended with exit code %s and is being restarted" % worker.returncode)
                time.sleep(START_AGAIN_AFTER)
        if not is_over():
            say("Spark's master has ended. Restart the session to use Spark again")
    finally:
        _end(master)
    return 0


def _end_of(parent: int, stop: threading.Event) -> Callable[[], bool]:
    """Says whether the session has ended: its kernels may use Spark for a moment after it was told to."""
    until: List[float] = []

    def is_over() -> bool:
        if stop.is_set() and not until:
            until.append(time.monotonic() + LAST_WAIT)
        return os.getppid() != parent or (bool(until) and time.monotonic() > until[0])

    return is_over


def _end(process: "subprocess.Popen[bytes]") -> None:
    """With all of its group, which is its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(KILLED_AFTER)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind((LOOPBACK, 0))
        return int(found.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())

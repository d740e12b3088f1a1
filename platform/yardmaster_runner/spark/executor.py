"""`python -m yardmaster_runner.spark.executor`: one Spark worker, which runs the executors of the job in this task.

It waits for the master, which starts with the driver, and lives until it is ended: executors that die are started
again by it, as Spark's master says. What executors print is in this task's log.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from typing import Any, Dict, Tuple

from yardmaster_runner.reasons import NO_SPARK
from yardmaster_runner.spark import executor_java
from yardmaster_runner.spark.cluster import DAEMONS, OF_EXECUTORS, Cluster, from_variable, worker_command
from yardmaster_runner.spark.executor_logs import ExecutorLogs
from yardmaster_runner.spark.installed import Installed, NotInstalled, find, prepared

LOOK_EVERY = 0.2


def main() -> int:
    cluster = from_variable(os.environ)
    try:
        installed = find(os.environ)
        environment = prepared(cluster, installed, os.environ, logging=OF_EXECUTORS)
    except (NotInstalled, OSError) as error:
        sys.stderr.write("yardmaster: %s\n" % error)
        return NO_SPARK if isinstance(error, NotInstalled) else 1
    _wait_for(cluster)
    worker, logs = start_worker(cluster, installed, environment)
    stopped = []

    def stop(number: int, frame: Any) -> None:
        stopped.append(number)
        worker.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    while worker.poll() is None:
        if not logs.read():
            time.sleep(LOOK_EVERY)
    logs.read(is_last=True)
    return 0 if stopped else worker.returncode or 1


def start_worker(
    cluster: Cluster, installed: Installed, environment: Dict[str, str], has_own_group: bool = False
) -> Tuple["subprocess.Popen[bytes]", ExecutorLogs]:
    """A worker with the cluster's cores, and what brings the output of its executors into this process's. Raises
    `OSError`."""
    folder = os.path.join(cluster.work_dir, "spark-work")
    os.makedirs(folder, exist_ok=True)
    worker = subprocess.Popen(
        worker_command(installed.spark_class, cluster, folder),
        env={**executor_java.for_worker(environment, cluster.work_dir), **DAEMONS},
        stdin=subprocess.DEVNULL,
        start_new_session=has_own_group,
    )
    return worker, ExecutorLogs(folder, _write)


def _wait_for(cluster: Cluster) -> None:
    """Until the master answers. The driver may be staging for as long as it takes."""
    host, _, port = cluster.master.rpartition(":")
    while True:
        try:
            with socket.create_connection((host, int(port)), timeout=5.0):
                return
        except OSError:
            time.sleep(0.1)


def _write(piece: bytes) -> None:
    sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    sys.exit(main())

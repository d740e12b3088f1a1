"""`python -m yardmaster_runner.spark.driver COMMAND…`: starts Spark's master, waits until it answers, and becomes the
command, which is the job's script.

The script is the process that the runner has started: signals, its exit code and its stacks are its own. Spark's Java
side is started by `pyspark` within it, with the arguments that `spark-submit` would pass on. The master belongs to what
the script leaves behind, which the runner ends.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from typing import Dict, List

from yardmaster_runner.reasons import NO_SPARK
from yardmaster_runner.spark.cluster import DAEMONS, LOCAL_IP, Cluster, from_variable, master_command
from yardmaster_runner.spark.installed import Installed, NotInstalled, find, prepared

PATIENCE = 120.0
"""Seconds in which a master answers, on a machine that is busy."""
SUBMIT = "PYSPARK_SUBMIT_ARGS"


def main(command: List[str]) -> int:
    environment = dict(os.environ)
    cluster = from_variable(environment)
    try:
        installed = find(environment)
        found = prepared(cluster, installed, environment)
        start_master(cluster, installed, found)
    except (NotInstalled, OSError) as error:
        sys.stderr.write("yardmaster: %s\n" % error)
        return NO_SPARK if isinstance(error, NotInstalled) else 1
    found.update(_of_script(found))
    os.execvpe(command[0], command, found)
    return 1


def _of_script(environment: Dict[str, str]) -> Dict[str, str]:
    """Executors find their own Python by its name: the driver's path is not on their machine."""
    given = environment.get(SUBMIT, "")
    return {
        SUBMIT: given if "pyspark-shell" in given else ("%s pyspark-shell" % given).strip(),
        "PYSPARK_PYTHON": environment.get("PYSPARK_PYTHON", "python3"),
    }


def start_master(cluster: Cluster, installed: Installed, environment: Dict[str, str]) -> "subprocess.Popen[bytes]":
    """Spark's master at the cluster's address, which answers. Raises `OSError` where it does not come up."""
    process = subprocess.Popen(
        master_command(installed.spark_class, cluster),
        env={**environment, **DAEMONS},
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    until = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < until:
        try:
            with socket.create_connection((environment[LOCAL_IP], int(cluster.port)), timeout=1.0):
                return process
        except OSError:
            time.sleep(0.05)
    ended = process.poll()
    process.kill()
    words = "did not answer" if ended is None else "ended with exit code %d" % ended
    raise OSError("Spark's master %s." % words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

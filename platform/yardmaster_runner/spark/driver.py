"""`python -m yardmaster_runner.spark.driver COMMAND…`: starts Spark's master, waits until it answers, and becomes the
command, which is the job's script. Where the job uses a registered cluster, it waits for the master of that one.

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

from yardmaster_runner.reasons import NO_CLUSTER, NO_SPARK
from yardmaster_runner.spark import probe
from yardmaster_runner.spark.cluster import DAEMONS, LOCAL_IP, Cluster, from_variable, master_command
from yardmaster_runner.spark.installed import Installed, NotInstalled, find, prepared
from yardmaster_runner.spark.registered import PYTHON, Registered

PATIENCE = 120.0
"""Seconds in which a master answers, on a machine that is busy."""
AWAY = 60.0
"""For so long the master of a registered cluster may be away."""
PAUSE = 2.0
SUBMIT = "PYSPARK_SUBMIT_ARGS"


def main(command: List[str]) -> int:
    environment = dict(os.environ)
    cluster = from_variable(environment)
    try:
        installed = find(environment)
        found = prepared(cluster, installed, environment)
        if cluster.registered is not None:
            _wait_for(cluster.registered)
        else:
            _start_master(cluster, installed, found)
    except NoCluster as error:
        _say(str(error))
        return NO_CLUSTER
    except (NotInstalled, OSError) as error:
        _say(str(error))
        return NO_SPARK if isinstance(error, NotInstalled) else 1
    found.update(_of_script(found, "python3" if cluster.registered is None else cluster.registered.python))
    os.execvpe(command[0], command, found)
    return 1


class NoCluster(Exception):
    """The registered cluster cannot be used. The message names it and says why."""


def _of_script(environment: Dict[str, str], python: str) -> Dict[str, str]:
    """Executors find their own Python by its name: the driver's path is not on their machine."""
    given = environment.get(SUBMIT, "")
    return {
        SUBMIT: given if "pyspark-shell" in given else ("%s pyspark-shell" % given).strip(),
        PYTHON: environment.get(PYTHON, python),
    }


def _wait_for(one: Registered) -> None:
    """Until a master of the cluster answers. Raises `NoCluster` where none does, or something else answers there."""
    until, is_said = time.monotonic() + AWAY, False
    while True:
        looks = probe.look_at_all(one.master)
        if not looks[-1].problem:
            break
        why = probe.in_words(looks)
        if all(look.is_other for look in looks) or time.monotonic() >= until:
            raise NoCluster("%s cannot be used: %s." % (one.shown[:1].upper() + one.shown[1:], why))
        if not is_said:
            _say("%s does not answer (%s). Trying again for %d s." % (one.shown, why, AWAY))
            is_said = True
        time.sleep(PAUSE)
    words = "%s runs the executors (%d, with %d of its cores and %d MiB each). While fewer are free, the driver waits."
    _say(words % (one.shown, one.executors, one.cores, one.memory >> 20))


def _say(text: str) -> None:
    sys.stderr.write("yardmaster: %s\n" % text)
    sys.stderr.flush()


def _start_master(cluster: Cluster, installed: Installed, environment: Dict[str, str]) -> None:
    """Raises `OSError` where it does not come up."""
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
                return
        except OSError:
            time.sleep(0.05)
    ended = process.poll()
    words = "did not answer" if ended is None else "ended with exit code %d" % ended
    raise OSError("Spark's master %s." % words)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

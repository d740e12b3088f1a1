"""What the tasks of a Spark cluster are told: their sizes and addresses, and Spark's own settings. Pure.

A task's memory has to hold a Java process and the Python processes beside it, which is where TensorFlow keeps its
tensors. So the heap gets a quarter, and not less than Spark accepts; a script that works with large tables in Spark
itself can ask for more in its `spark-defaults.conf`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import asdict, dataclass
from typing import Dict, List, Mapping, Optional

from yardmaster_runner.spark import registered
from yardmaster_runner.spark.registered import Registered

VARIABLE = "YARDMASTER_SPARK_CLUSTER"
FOLDER = "YARDMASTER_SPARK"
"""The folder with Spark's Python packages, where the engine has one; else the task's Python has them."""
DRIVER, EXECUTOR = "driver", "executor"
EVENTS = "spark-events"
"""The folder of the event logs, below the log directory."""
RUNS = ".inprogress"
"""The end of the name of an event log while its application runs."""
LEAST_HEAP = 480 << 20
"""Spark refuses to start a driver or an executor with a heap below 450 MiB."""
MIB = 1 << 20
_PURPOSE = b"yardmaster spark"


@dataclass(frozen=True)
class Cluster:
    """What one task has to know. Memory in bytes; `address` is this task's own HOST:PORT, `master` that of Spark's
    master. `secret` is what all of the job's Spark processes prove to each other that they know."""

    address: str
    master: str
    executors: int
    cores: int
    """Of each executor."""
    driver_memory: int
    executor_memory: int
    secret: str
    work_dir: str
    code_dir: str
    log_dir: str
    uses_tensorflow_on_spark: bool = False
    registered: Optional[Registered] = None
    """The cluster that was there before: the job has a driver alone then, and no master."""

    @property
    def host(self) -> str:
        return self.address.rpartition(":")[0]

    @property
    def port(self) -> str:
        return self.address.rpartition(":")[2]


def to_variable(cluster: Cluster) -> Dict[str, str]:
    """The cluster as a variable of the program's environment."""
    return {VARIABLE: json.dumps(asdict(cluster))}


def from_variable(environment: Mapping[str, str]) -> Cluster:
    """What `to_variable` wrote. Raises KeyError where the process was not started by the runner."""
    said = json.loads(environment[VARIABLE])
    found = said.pop("registered", None)
    return Cluster(**said, registered=found and Registered(**found))


def secret_of(task_token: str) -> str:
    """The same for all tasks of an attempt, which have the same token; it tells nothing of the token."""
    return hmac.new(task_token.encode(), _PURPOSE, hashlib.sha256).hexdigest()


def heap(memory: int) -> int:
    """Bytes of a Java heap in a task with this memory."""
    return max(LEAST_HEAP, memory // 4)


def offered_memory(memory: int) -> int:
    """Bytes that a Spark worker offers to executors: more than their heap has by default, so that a script can ask for
    more."""
    return max(heap(memory), memory - LEAST_HEAP)


def settings(cluster: Cluster, local_ip: str, own: Mapping[str, str], archive: str = "") -> Dict[str, str]:
    """Spark's settings for every process of the cluster. `own` are those of the job's code: they win, but for where
    things are, and who may connect. `archive` has the code for executors elsewhere."""
    found = {
        "spark.executor.instances": str(cluster.executors),
        "spark.executor.cores": str(cluster.cores),
        "spark.cores.max": str(cluster.executors * cluster.cores),
        "spark.executor.memory": "%dm" % (heap(cluster.executor_memory) // MIB),
        "spark.driver.memory": "%dm" % (heap(cluster.driver_memory) // MIB),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # All executors are there before the first task: a library that gives each of them one task would hang else.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "600s",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": "file://%s/%s" % (cluster.log_dir, EVENTS),
        "spark.eventLog.rolling.enabled": "false",
    }
    if cluster.uses_tensorflow_on_spark:
        # Its tasks are the nodes of a TensorFlow cluster: one in each executor, with all of its cores.
        elsewhere = cluster.registered
        found["spark.task.cpus"] = str(cluster.cores if elsewhere is None else elsewhere.cores)
    found.update(own)
    found.update(
        {
            "spark.master": "spark://%s" % cluster.master,
            "spark.authenticate": "true",
            "spark.authenticate.secret": cluster.secret,
            "spark.master.rest.enabled": "false",  # the master's other port, which asks for no secret
            "spark.driver.host": cluster.master.rpartition(":")[0],
            "spark.driver.bindAddress": local_ip,
        }
    )
    if cluster.registered is not None:
        del found["spark.authenticate.secret"]
        found.update(registered.settings(cluster.registered, own, archive))
    return found


def settings_in(text: str) -> Dict[str, str]:
    """The settings in a `spark-defaults.conf`: a name and a value in each line, with spaces, `=` or `:` between."""
    found = {}
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        name = line
        for index, letter in enumerate(line):
            if letter.isspace() or letter in "=:":
                name, line = line[:index], line[index:]
                break
        else:
            line = ""
        found[name] = line.strip().lstrip("=:").strip()
    return found


def as_text(found: Mapping[str, str]) -> str:
    """The settings as the text of a `spark-defaults.conf`."""
    return "".join("%s %s\n" % (name, found[name].replace("\n", " ")) for name in sorted(found))


LOGGING = """rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = spark: %p %c{1}: %m%n%ex
logger.native.name = org.apache.hadoop.util.NativeCodeLoader
logger.native.level = error
logger.master.name = org.apache.spark.deploy.master.Master
logger.master.level = off
logger.worker.name = org.apache.spark.deploy.worker.Worker
logger.worker.level = off
logger.executor.name = org.apache.spark.executor.CoarseGrainedExecutorBackend
logger.executor.filter.released.type = RegexFilter
logger.executor.filter.released.regex = RECEIVED SIGNAL TERM|Executor self-exiting due to : Driver .* disassociated.*
logger.executor.filter.released.onMatch = DENY
logger.executor.filter.released.onMismatch = NEUTRAL
"""
"""Of all of Spark's processes. Its own default writes a line for every step that a task takes, and at its end a worker
writes long reports about the master that has ended. An executor reports as an error that Spark has released it."""
OF_EXECUTORS = r"""appender.console.filter.closed.type = RegexFilter
appender.console.filter.closed.regex = Exception in connection from .*|Exception while bootstrapping client .*|\
    Still have \\d+ requests outstanding when connection from .* is closed
appender.console.filter.closed.onMatch = DENY
appender.console.filter.closed.onMismatch = NEUTRAL
"""
"""More of them, of workers and their executors. The other end of their connections is closed whenever a job ends. If
work fails for it, Spark reports that as well, and the driver says which executor it lost."""


def master_command(spark_class: List[str], cluster: Cluster) -> List[str]:
    return [
        *spark_class, "org.apache.spark.deploy.master.Master",
        "--host", cluster.host, "--port", cluster.port, "--webui-port", "0",
    ]  # fmt: skip


def worker_command(spark_class: List[str], cluster: Cluster, folder: str) -> List[str]:
    return [
        *spark_class, "org.apache.spark.deploy.worker.Worker",
        "--host", cluster.host, "--port", cluster.port, "--webui-port", "0",
        "--cores", str(cluster.cores), "--memory", "%dm" % (offered_memory(cluster.executor_memory) // MIB),
        "--work-dir", folder, "spark://%s" % cluster.master,
    ]  # fmt: skip


LOCAL_IP = "SPARK_LOCAL_IP"
DAEMONS = {
    "SPARK_NO_DAEMONIZE": "1",
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.net.preferIPv4Stack=true",
}
"""The environment of a master and of a worker, which need little, beside that of all of Spark's processes."""

"""The Spark cluster of a JupyterLab session: what its notebooks, its master and its worker are told. Pure.

The cluster is in the session's own task and quota (`cluster_at`). One worker has all of its cores, so that there is one
Java process less for each executor. Notebooks share the executors in turns (`SHARED`). Or it is a registered one, and
each notebook is a driver there (`cluster_elsewhere`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Mapping

from yardmaster_runner.spark.cluster import Cluster
from yardmaster_runner.spark.registered import Registered

EXECUTORS, CORES, MEMORY = "spark_executors", "cores", "memory"
"""Options of the session: how many executors, and the whole cores and the bytes that the session itself has."""
LOOPBACK = "127.0.0.1"
SHARED = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.executorIdleTimeout": "60s",
    "spark.dynamicAllocation.shuffleTracking.timeout": "60s",
    # A notebook begins although another one computes: its first cell waits and says so, in place of all of its cells.
    "spark.scheduler.minRegisteredResourcesRatio": "0",
    "spark.eventLog.enabled": "false",
    "spark.ui.killEnabled": "false",
}
"""A notebook that computes gets all executors that are free, and one that has not computed for a minute has none. With
a fixed share, a single notebook would leave a part of the session idle; without these settings, the first notebook
would keep all executors until its kernel ends. The settings of the user's own file come before them."""


def cluster_at(master: str, options: Mapping[str, Any], secret: str, folder: str, home: str) -> Cluster:
    """What a notebook's settings are made of, for a master at this HOST:PORT. `folder` gets the settings and what Spark
    writes; `home` may have a `spark-defaults.conf` of the user's. Executors' heaps together get a quarter of the
    session's memory, and that of each notebook's driver an eighth (`cluster.heap`)."""
    executors, memory = int(options[EXECUTORS]), int(options[MEMORY])
    return Cluster(
        address=master,
        master=master,
        executors=executors,
        cores=max(1, int(options[CORES]) // executors),
        driver_memory=memory // 2,
        executor_memory=memory // executors,
        secret=secret,
        work_dir=folder,
        code_dir=home,
        log_dir=folder,
    )


def cluster_elsewhere(address: str, one: Registered, memory: int, folder: str, home: str) -> Cluster:
    """The same for notebooks on a registered cluster. `address` is the session's own HOST:PORT, `memory` its bytes: the
    driver of a notebook gets as much as beside executors of the session. Files of the home are not sent to executors: a
    home may have many gigabytes."""
    return Cluster(
        address=address,
        master=address,
        executors=one.executors,
        cores=one.cores,
        driver_memory=memory // 2,
        executor_memory=one.memory,
        secret="",
        work_dir=folder,
        code_dir=home,
        log_dir=folder,
        registered=replace(one, has_code=False),
    )


def worker_of(cluster: Cluster) -> Cluster:
    """What the one worker is told, which runs all executors: it listens at a port that is free."""
    return replace(
        cluster,
        address="%s:0" % cluster.host,
        cores=cluster.executors * cluster.cores,
        executor_memory=cluster.executors * cluster.executor_memory,
    )

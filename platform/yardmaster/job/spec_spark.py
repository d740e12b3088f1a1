"""The registered Spark cluster of a job, or of a JupyterLab session, which is a job as well: what its specification may
say, and what it counts as. Pure.

Not here: whether there is such a cluster, and what it allows (`apps.jobs.spark_clusters`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from yardmaster.errors import Problem
from yardmaster.job.programs import JUPYTER
from yardmaster.job.spec import InputShare, Role, SparkInput, Strategy, TrainingSpec
from yardmaster.job.spec_limits import SpecLimits, shorten
from yardmaster.quantity import format_bytes

LONGEST_NAME = 63
CLUSTER_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}", re.ASCII)
LEAST_MEMORY = 480 << 20
"""Spark refuses to start an executor with less than 450 MiB."""
LEAST_TASK = 1 << 30
"""Of a driver or an executor: 480 MiB for the Java heap, and about as much for the rest of that process, for Python,
and for a second Java process, which is Spark's master or its worker (220 MiB)."""
LEAST_DRIVER_ELSEWHERE = 768 << 20
"""Of a driver on a registered cluster, which has no second Java process."""
MOST_MEMORY = 1 << 50
MOST = 10_000
_RESOURCE = "spark/"
"""Before the name of a cluster: its cores among the resources that a job waits for."""


def spark_problems(spec: TrainingSpec, _: SpecLimits) -> Iterator[Problem]:
    """Every problem of the spec's `spark`."""
    found = spec.spark
    if found is None:
        return
    if spec.strategy is not Strategy.SPARK and spec.program != JUPYTER:
        message = f"Only a job with the strategy spark uses a Spark cluster; this one is {spec.strategy.value}."
        yield Problem("spark", "conflict", message, "Remove spark, or use the strategy spark.", shorten(found.cluster))
        return
    if Role.EXECUTOR in spec.roles:
        message = "With spark.cluster the executors run on that cluster, so the job has the role driver only."
        remedy = "Remove roles.executor, and set spark.executors, spark.cores and spark.memory instead."
        yield Problem("roles.executor", "conflict", message, remedy, str(spec.replicas(Role.EXECUTOR)))
    if not CLUSTER_NAME.fullmatch(found.cluster):
        message = "This is not the name of a Spark cluster."
        remedy = "Enter the name of a registered cluster, or remove spark to run the executors as tasks."
        yield Problem("spark.cluster", "bad_value", message, remedy, shorten(found.cluster))
    yield from amount_problems(found)
    for index, one in enumerate(spec.inputs):
        if one.share is InputShare.SHARDS:
            message = "The job has only one task, so there are no other tasks to share the shards with."
            yield Problem(f"inputs.{index}.share", "conflict", message, "Remove share.", one.share.value)


def amount_problems(found: SparkInput) -> Iterator[Problem]:
    """Numbers and sizes of executors that no cluster gives."""
    for field, value in (("executors", found.executors), ("cores", found.cores)):
        if not 1 <= value <= MOST:
            message = f"{field} must be between 1 and {MOST}."
            yield Problem(f"spark.{field}", "out_of_range", message, "Enter a whole number, such as 2.", str(value))
    if not LEAST_MEMORY <= found.memory <= MOST_MEMORY:
        message = f"The memory of an executor must be {format_bytes(LEAST_MEMORY)} to {format_bytes(MOST_MEMORY)}."
        remedy = 'Enter an amount such as "1Gi". A plain number is in bytes.'
        yield Problem("spark.memory", "out_of_range", message, remedy, str(found.memory))


def spark_memory_problems(spec: TrainingSpec, limits: SpecLimits) -> Iterator[Problem]:
    """Roles of a Spark job whose memory cannot hold what a task starts, whatever the script does."""
    if spec.strategy is not Strategy.SPARK:
        return
    least = LEAST_TASK if spec.spark is None else LEAST_DRIVER_ELSEWHERE
    for role, one in spec.roles.items():
        if role in (Role.DRIVER, Role.EXECUTOR) and limits.least_memory <= one.resources.memory < least:
            message = f"The {role.value} of a Spark job needs at least {format_bytes(least)}, for Java and Python."
            remedy = f"Request {format_bytes(least)}, or more if the script imports TensorFlow."
            yield Problem(f"roles.{role.value}.memory", "out_of_range", message, remedy, str(one.resources.memory))


def is_without_role(spec: TrainingSpec, role: Role) -> bool:
    """Whether the spec has no task of this role although its strategy has: the executors are elsewhere."""
    return spec.spark is not None and spec.strategy is Strategy.SPARK and role is Role.EXECUTOR


def resource_of(cluster: str) -> str:
    """What the cores of this cluster are called among resources."""
    return _RESOURCE + cluster


def of_spark_cluster(resource: str) -> str:
    """The cluster whose cores this resource is; empty where it is another one."""
    return resource[len(_RESOURCE) :] if resource.startswith(_RESOURCE) else ""


def elsewhere(spark: SparkInput | None) -> dict[str, int]:
    """What a job takes that is on no engine, by the name of its resource."""
    return {} if spark is None else {resource_of(spark.cluster): spark.all_cores}

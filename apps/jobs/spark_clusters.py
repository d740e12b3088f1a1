"""The registered Spark cluster of a job, or of a session of the workbench: may it use it, does it ask for more than it
may have, and what is its driver told of it?"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from django.conf import settings

from apps.jobs.engines.configured import engine_named
from apps.namespaces.models import Namespace
from apps.spark.models import SparkCluster
from apps.spark.sealed import secret_of
from apps.spark.selectors import cluster_of_job, clusters_for
from yardmaster.engines.drivers import DriverAddress, driver_address_on
from yardmaster.errors import Problem, YardmasterError
from yardmaster.job.spec import SparkInput, TrainingSpec
from yardmaster.job.spec_limits import shorten
from yardmaster.quantity import format_bytes

NAMED = 10


def spark_cluster_problems(namespace: Namespace, engine: str, spec: TrainingSpec) -> list[Problem]:
    """What of the spec's `spark` this namespace may not have. The cluster itself is not asked."""
    asked = spec.spark
    if asked is None:
        return []
    allowed = {one.name: one for one in clusters_for(namespace)}
    found = allowed.get(asked.cluster)
    if found is None:
        known = ", ".join(list(allowed)[:NAMED])
        message = f"There is no Spark cluster {shorten(asked.cluster)} that {namespace.slug} may use."
        remedy = f"Use one of: {known}; or remove" if known else "Remove"
        remedy += " spark to run the executors as tasks of the job, or ask an administrator to register it."
        return [Problem("spark.cluster", "unknown_spark_cluster", message, remedy, shorten(asked.cluster))]
    if not runs_drivers(engine):
        return [engine_elsewhere(engine, found.name, "spark.cluster", "remove spark")]
    return list(too_much(found, asked))


def runs_drivers(engine: str) -> bool:
    """Whether executors of a cluster reach tasks of this engine."""
    return driver_address_on(engine_named(engine)) is not None


def engine_elsewhere(engine: str, cluster: str, field: str, otherwise: str) -> Problem:
    """Of one whose tasks they do not reach. `otherwise`: what else the user can do."""
    others = [one for one in settings.YARDMASTER_ENGINES if _certainly_runs_drivers(one)]
    message = f"Executors of {cluster} cannot reach tasks of the engine {engine}."
    remedy = f"Choose the engine {' or '.join(others[:NAMED])}, or {otherwise}." if others else f"{otherwise}."
    remedy += f" An administrator can let executors reach tasks of {engine} if its kind allows it (docs/spark.md)."
    return Problem(field, "engine_elsewhere", message, remedy[:1].upper() + remedy[1:], cluster)


def _certainly_runs_drivers(engine: str) -> bool:
    with contextlib.suppress(YardmasterError):
        return runs_drivers(engine)
    return False


def facts_for_driver(spec: TrainingSpec, namespace: Namespace, engine: str) -> dict[str, str] | None:
    """What a driver of this namespace needs to use its cluster, as it is registered now. None: its cluster is its own.
    An empty `driver_address` is that of the task itself; `url` is where executors reach the portal. Raises `NotFound`
    where the cluster was removed, or may not be used any more, and `CannotOpen`."""
    if spec.spark is None:
        return None
    found = cluster_of_job(spec.spark.cluster, namespace)
    is_own = driver_address_on(engine_named(engine)) is DriverAddress.OWN
    return {
        "master": found.master,
        "driver_address": "" if is_own else found.driver_address,
        "python": found.python,
        "secret": secret_of(found),
        "url": settings.TASK_URL,
    }


def too_much(cluster: SparkCluster, asked: SparkInput) -> Iterator[Problem]:
    """What it asks for and may not have of this cluster, as it is registered now."""
    memory = asked.executors * asked.memory
    code, ask = "spark_limit", f"A job may have at most {{}} of the Spark cluster {cluster.name}."
    if cluster.most_executors is not None and asked.executors > cluster.most_executors:
        message = ask.format(f"{cluster.most_executors} executors")
        yield Problem("spark.executors", code, message, "Ask for fewer executors.", str(asked.executors))
    if cluster.most_cores is not None and asked.all_cores > cluster.most_cores:
        message = ask.format(f"{cluster.most_cores} cores") + f" {asked.executors} executors request {asked.all_cores}."
        yield Problem("spark.cores", code, message, "Ask for fewer executors, or fewer cores each.", str(asked.cores))
    if cluster.most_memory is not None and memory > cluster.most_memory:
        message = ask.format(format_bytes(cluster.most_memory))
        message += f" {asked.executors} executors request {format_bytes(memory)}."
        yield Problem("spark.memory", code, message, "Ask for fewer executors, or less memory each.", str(asked.memory))
    at_once = cluster.most_cores_at_once
    if at_once is not None and asked.all_cores > at_once:
        message = f"All jobs together may have {at_once} cores of the Spark cluster {cluster.name}; this job requests "
        message += f"{asked.all_cores}, so it would never start."
        yield Problem("spark.cores", code, message, "Ask for fewer executors, or fewer cores each.", str(asked.cores))

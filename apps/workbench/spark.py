"""The Spark cluster of a Jupyter, within its own size or a registered one: whether it may have it, and how large."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from apps.errors import Conflict, Invalid
from apps.jobs.engines.configured import can_have_spark, why_no_spark
from apps.jobs.spark_clusters import NAMED, engine_elsewhere, runs_drivers, too_much
from apps.namespaces.models import Namespace
from apps.spark.models import SparkCluster
from apps.spark.selectors import clusters_for
from apps.workbench.models import WorkbenchSession
from apps.workbench.sizes import Size, sizes
from yardmaster.errors import Problem
from yardmaster.job.spec import Resources, SparkInput
from yardmaster.job.spec_limits import shorten
from yardmaster.job.spec_spark import amount_problems
from yardmaster.quantity import format_bytes

MEMORY_FOR_JUPYTER = 1 << 30
"""Bytes for JupyterLab, a kernel with TensorFlow, and Spark's own processes."""
MEMORY_OF_EXECUTOR = 1 << 30
"""Bytes for each executor: its heap, and the Python processes beside it."""
FIELD, CLUSTER, CORES, MEMORY = "spark_executors", "spark_cluster", "spark_cores", "spark_memory"
USUAL = SparkInput("")
"""Of the executors of a registered cluster, where a start says no size of its own."""
MOST_OFFERED = 8
"""Executors of a registered cluster that a form offers, where its limits allow them. The API takes more."""
WITHIN = "within this session"


@dataclass(frozen=True)
class Spark:
    """So many executors; those of the registered `cluster`, where that is not empty, with so many cores and so many
    bytes each. Those of the session itself share what it has."""

    executors: int = 0
    cluster: str = ""
    cores: int = USUAL.cores
    memory: int = USUAL.memory

    @property
    def elsewhere(self) -> SparkInput | None:
        """What it takes of a registered cluster."""
        is_taken = self.cluster and self.executors
        return SparkInput(self.cluster, self.executors, self.cores, self.memory) if is_taken else None

    @property
    def columns(self) -> dict[str, Any]:
        """As sessions keep it."""
        return {FIELD: self.executors, CLUSTER: self.cluster, CORES: self.cores, MEMORY: self.memory}

    @property
    def said(self) -> dict[str, Any]:
        """As a start takes it."""
        found = self.columns
        return found if self.cluster else {FIELD: found[FIELD], CLUSTER: ""}


@dataclass(frozen=True)
class Asked:
    """What a start says of it; None: as before."""

    executors: int | None = None
    cluster: str | None = None
    cores: int | None = None
    memory: int | None = None


NO_SPARK = Spark()
AS_BEFORE = Asked()


@dataclass(frozen=True)
class Choices:
    """What a form offers. `missing`: what to install where notebooks cannot use Spark yet."""

    executors: Sequence[tuple[str, str]] = ()
    clusters: Sequence[tuple[str, str]] = ()
    """Where they run; empty: within the session alone. The sizes of executors are those of a registered cluster."""
    missing: str = ""


NO_CHOICES = Choices()


def before(session: WorkbenchSession) -> Spark:
    """What its last start had."""
    return Spark(session.spark_executors, session.spark_cluster, session.spark_cores, session.spark_memory)


def most_executors(resources: Resources) -> int:
    """How many a session of this size can have: each has a core of its own, and its part of the memory."""
    return max(0, min(int(resources.cpu), (resources.memory - MEMORY_FOR_JUPYTER) // MEMORY_OF_EXECUTOR))


def spark_of(session: WorkbenchSession, asked: Asked, size: Size, engine: str) -> Spark:
    """What a start of this session has: what is asked for, or as before where that is None. Raises `Invalid` where it
    is more than its size has, or than it may have of the cluster, and `Conflict` where the engine has no Spark."""
    name = session.spark_cluster if asked.cluster is None else asked.cluster
    count = session.spark_executors if asked.executors is None else asked.executors
    if asked.cluster and asked.executors is None and not count:
        count = USUAL.executors
    if not count:
        return NO_SPARK if asked.executors == 0 else _sized(session, asked, 0, "")
    if not session.is_personal:
        message = "Only a Jupyter has a Spark cluster."
        raise Invalid([Problem(FIELD, "conflict", message, "Leave spark_executors out.", str(count))])
    found = _sized(session, asked, count, name)
    if name:
        _require_of_cluster(session.namespace, found, engine)
    elif count < 0 or count > most_executors(size.resources):
        raise Invalid([_too_many(count, size)])
    if missing := why_no_spark(engine):
        raise Conflict(missing, "no_spark", remedy="Choose another engine, or start it with 0 Spark executors.")
    return found


def _sized(session: WorkbenchSession, asked: Asked, executors: int, cluster: str) -> Spark:
    """With the size of each executor, which one within the session has not. Raises `Invalid` where one is given there
    all the same."""
    if cluster:
        cores = session.spark_cores if asked.cores is None else asked.cores
        return Spark(executors, cluster, cores, session.spark_memory if asked.memory is None else asked.memory)
    given = [(name, value) for name, value in ((CORES, asked.cores), (MEMORY, asked.memory)) if value is not None]
    if given:
        message = "Executors within the session share its cores and memory, so they have no size of their own."
        remedy = f"Leave it out and choose the size of the session, or name a registered {CLUSTER}."
        raise Invalid([Problem(name, "conflict", message, remedy, str(value)) for name, value in given])
    return Spark(executors)


def _require_of_cluster(namespace: Namespace, asked: Spark, engine: str) -> None:
    """Raises `Invalid` where the namespace may not use it, or not so much of it."""
    name, wanted = shorten(asked.cluster), asked.elsewhere
    allowed: Mapping[str, SparkCluster] = {one.name: one for one in clusters_for(namespace)}
    cluster = allowed.get(asked.cluster)
    if cluster is None or wanted is None:
        message = f"There is no Spark cluster {name} that {namespace.slug} may use."
        known = ", ".join(list(allowed)[:NAMED])
        remedy = f"Use one of: {known}; or leave" if known else "Leave"
        remedy += f" {CLUSTER} empty for executors within the session, or ask an administrator to register it."
        raise Invalid([Problem(CLUSTER, "unknown_spark_cluster", message, remedy, name)])
    if not runs_drivers(engine):
        raise Invalid([engine_elsewhere(engine, cluster.name, CLUSTER, f"leave {CLUSTER} empty")])
    if found := [*amount_problems(wanted)] or [*too_much(cluster, wanted)]:
        raise Invalid([replace(one, field=one.field.replace("spark.", "spark_")) for one in found])


def _too_many(count: int, size: Size) -> Problem:
    most = most_executors(size.resources)
    message = (
        f"A session of the size {size.words} can have {most or 'no'} Spark executor{'' if most == 1 else 's'}: each "
        f"needs a whole core and {format_bytes(MEMORY_OF_EXECUTOR)}, beside {format_bytes(MEMORY_FOR_JUPYTER)} for "
        "JupyterLab and a kernel."
    )
    larger = [one.name for one in sizes().values() if most_executors(one.resources) >= count]
    fewer = f"Ask for at most {most}" if most else "Start it with 0 executors"
    remedy = f"{fewer}, or choose the size {' or '.join(larger)}." if larger else f"{fewer}."
    return Problem(FIELD, "too_many", message, remedy, str(count))


def choices(engines: Collection[str], namespace: Namespace | None, known: Spark) -> Choices:
    """What a form of this namespace offers for these engines; nothing where none of them has a Spark, and then what to
    install for it. `known`: what the session had."""
    lacks = {one: why_no_spark(one) for one in engines}
    if "" not in lacks.values():
        return Choices(missing=next((words for one, words in lacks.items() if can_have_spark(one)), ""))
    clusters = list(clusters_for(namespace)) if namespace is not None else []
    most = max((most_executors(one.resources) for one in sizes().values()), default=0)
    counts = set(range(1, max([most, *map(_most_of, clusters)]) + 1)) | ({known.executors} - {0})
    if not counts:
        return NO_CHOICES
    named = [(str(one), "1 executor" if one == 1 else f"{one} executors") for one in sorted(counts)]
    places = [(one.name, f"on the Spark cluster {one.name}") for one in clusters]
    if known.cluster and known.cluster not in {one.name for one in clusters}:
        places.append((known.cluster, f"on the Spark cluster {known.cluster} (not for this namespace)"))
    return Choices([("0", "None"), *named], [("", WITHIN), *places] if places else [])


def _most_of(cluster: SparkCluster) -> int:
    """Executors of it that a form offers."""
    limits = (cluster.most_executors, cluster.most_cores, cluster.most_cores_at_once)
    memory = None if cluster.most_memory is None else cluster.most_memory // USUAL.memory
    return min([MOST_OFFERED, *(one for one in (*limits, memory) if one is not None)])

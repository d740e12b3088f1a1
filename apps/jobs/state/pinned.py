"""Which nodes alone may take a job, by what its engine said last: a notebook runs where its files are, and what runs
Spark where that is."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace

from yardmaster.engines.base import Capacity
from yardmaster.job.spark_needs import SparkNeed
from yardmaster.queueing.needs import JobNeeds
from yardmaster.queueing.placement import Only, Tasks

FILES, JUPYTERLAB = "its files", "JupyterLab"
SPARK = {SparkNeed.SPARK: "Spark", SparkNeed.PERHAPS: "Spark", SparkNeed.JAVA: "Spark or Java"}


def pinned(tasks: tuple[Tasks, ...], namespace_id: uuid.UUID, needs: JobNeeds, capacity: Capacity) -> tuple[Tasks, ...]:
    """Tasks of the job, with where they may run."""
    asked = {} if needs.spark is None else {SPARK[needs.spark]: _with_spark(needs.spark, capacity)}
    machine = None
    if needs.home_of is not None:
        asked = {JUPYTERLAB: capacity.notebooks, **asked}
        machine = capacity.homes.get((namespace_id, needs.home_of))
    known = {why: names for why, names in asked.items() if names is not None}
    if machine is not None:
        only = _at_home(machine, known, capacity)
    elif known:
        both = "both " if len(known) > 1 else ""
        names = frozenset.intersection(*known.values())
        only = Only(names, both + " and ".join(known), keeps=needs.home_of is None)
    else:
        return tasks
    return tuple(replace(one, only=only) for one in tasks)


def named_nodes(capacity: Capacity) -> frozenset[str]:
    """Those that `pinned` may name."""
    with_spark = [_with_spark(one, capacity) or frozenset() for one in SparkNeed]
    return frozenset(capacity.homes.values()).union(capacity.notebooks or (), *with_spark)


def _at_home(machine: str, known: Mapping[str, frozenset[str]], capacity: Capacity) -> Only:
    """It runs on the machine that has its files, unless that lacks something: then nowhere."""
    is_there = any(one.name == machine for one in capacity.nodes)
    lacks = [why for why, names in known.items() if is_there and machine not in names]
    if lacks:
        return Only(frozenset(), f"both {FILES}, which are on {machine}, and {' and '.join(lacks)}")
    return Only(frozenset({machine}), FILES)


def _with_spark(need: SparkNeed, capacity: Capacity) -> frozenset[str] | None:
    """The nodes that have what is needed; None: all, or it is not known which."""
    if capacity.spark is None or (need is SparkNeed.PERHAPS and not capacity.spark):
        return None
    names = capacity.spark | capacity.java if need is SparkNeed.JAVA else capacity.spark
    return None if names >= {one.name for one in capacity.nodes} else names

"""What jobs take that is on no engine, among what an engine has: the cores of registered Spark clusters. So a job waits
for them as it waits for cores of its engine, in the same queue, by the same rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from apps.spark.selectors import cores_at_once
from yardmaster.job.spec import Resources
from yardmaster.job.spec_spark import of_spark_cluster
from yardmaster.queueing.ledger import EngineCapacity, Holder

UNBOUNDED = 10**9
"""Cores of a cluster without a limit."""


def with_clusters(capacity: EngineCapacity, holders: Iterable[Holder] = ()) -> EngineCapacity:
    """The capacity of an engine with the cores of all clusters. `holders`: the admitted jobs, those of other engines
    among them, whose cores are not free here either."""
    limits = {name: UNBOUNDED if most is None else most for name, most in cores_at_once().items()}
    if not limits:
        return capacity
    taken: Counter[str] = Counter()
    for one in holders:
        if not one.on_engine:
            taken.update({name: count for name, count in one.resources.extended.items() if of_spark_cluster(name)})
    free = {name: most - taken[name] for name, most in limits.items()}
    return replace(capacity, total=_with(capacity.total, limits), free=_with(capacity.free, free))


def _with(amount: Resources, more: Mapping[str, int]) -> Resources:
    return replace(amount, extended={**amount.extended, **more})

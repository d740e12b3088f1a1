"""What is guaranteed to a group or a namespace, and what it borrows beyond.

A job that stays within a guarantee of its namespace, or of a group above it, comes before every job that borrows. While
it lacks something of the engine, no job that borrows gets more of that, however short the first has waited: so what is
lent comes back as the jobs that hold it end. The hard limit is the namespace's quota, as ever.

A guarantee bounds the resources that it names. CPU and memory that it does not name are not bounded; of all others,
such as GPUs, nothing is guaranteed that is not named. Pure. Not here: the order (`order`).
"""

from __future__ import annotations

import uuid

from yardmaster.queueing.resources import Units
from yardmaster.queueing.shares import Standing

_COMMON = ("cpu", "memory")


def has_guarantee(standing: Standing, namespace_id: uuid.UUID) -> bool:
    """Whether anything is guaranteed to the namespace, or to a group above it."""
    return any(standing.member(key).guaranteed for key in standing.path(namespace_id))


def is_within(standing: Standing, namespace_id: uuid.UUID, asked: Units) -> bool:
    """Whether a job that asks for this much borrows nothing: with it, some node on its path still holds no more than is
    guaranteed to it."""
    return any(_holds(standing, key, asked) for key in standing.path(namespace_id))


def _holds(standing: Standing, key: uuid.UUID, asked: Units) -> bool:
    guaranteed, held = standing.member(key).guaranteed, standing.held(key)
    if not any(guaranteed.get(name, 0) for name, units in asked.items() if units > 0):
        return False
    return all(
        held.get(name, 0) + units <= guaranteed.get(name, 0)
        for name, units in asked.items()
        if units > 0 and (name in guaranteed or name not in _COMMON)
    )

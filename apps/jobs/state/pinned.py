"""Which nodes alone may take a job, by what its engine said last: a notebook runs where its files are."""

from __future__ import annotations

import uuid
from dataclasses import replace

from yardmaster.engines.base import Capacity
from yardmaster.queueing.placement import Only, Tasks

FILES, JUPYTERLAB = "its files", "JupyterLab"


def pinned(
    tasks: tuple[Tasks, ...], namespace_id: uuid.UUID, home_of: uuid.UUID | None, capacity: Capacity
) -> tuple[Tasks, ...]:
    """The same tasks, with where they may run. `home_of`: whose home directory the job has (`JobNeeds.home_of`)."""
    if home_of is None:
        return tasks
    machine = capacity.homes.get((namespace_id, home_of))
    if machine is not None and _lacks_jupyterlab(machine, capacity):
        only = Only(frozenset(), f"both {FILES}, which are on {machine}, and {JUPYTERLAB}")
    elif machine is not None:
        only = Only(frozenset({machine}), FILES)
    elif capacity.notebooks is not None:
        only = Only(capacity.notebooks, JUPYTERLAB)
    else:
        return tasks
    return tuple(replace(one, only=only) for one in tasks)


def named_nodes(capacity: Capacity) -> frozenset[str]:
    """Those that `pinned` may name."""
    return frozenset(capacity.homes.values()) | (capacity.notebooks or frozenset())


def _lacks_jupyterlab(machine: str, capacity: Capacity) -> bool:
    """Of a machine that is there."""
    is_there = any(one.name == machine for one in capacity.nodes)
    return is_there and capacity.notebooks is not None and machine not in capacity.notebooks

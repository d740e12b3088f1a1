"""What a job asks for, as its row keeps it (`Job.needs`): the queue is read, and jobs are admitted, without their
specifications.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from yardmaster.job.spec import Resources, TrainingSpec
from yardmaster.job.strategy import is_service
from yardmaster.queueing.placement import Tasks


@dataclass(frozen=True)
class JobNeeds:
    """`roles`: what each role asks for in all."""

    total: Resources
    tasks: tuple[Tasks, ...]
    roles: Mapping[str, Resources]


def needs_of(spec: TrainingSpec) -> dict[str, Any]:
    """What a spec asks for in all, its tasks, and what each role asks for, as JSON."""
    return {
        **_as_json(spec.total()),
        "tasks": {
            role.value: {**_as_json(one.resources), "replicas": one.replicas} for role, one in spec.roles.items()
        },
        "roles": {role.value: _as_json(one.resources * one.replicas) for role, one in spec.roles.items()},
        **({"serves": True} if is_service(spec.strategy) else {}),
    }


def needs_or_none(stored: Any) -> JobNeeds | None:
    """What was written by `needs_of`; None where it is damaged."""
    try:
        roles = {role: _amount(one) for role, one in stored["roles"].items()}
        serves = bool(stored.get("serves"))
        tasks = tuple(Tasks(role, _amount(one), int(one["replicas"]), serves) for role, one in stored["tasks"].items())
        return JobNeeds(_amount(stored), tasks, roles)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def _amount(stored: Mapping[str, Any]) -> Resources:
    """Raises where it is none."""
    found = Resources(stored["cpu"], stored["memory"], stored["gpus"], stored["extended"])
    if not all(map(math.isfinite, found.as_amounts().values())):
        raise ValueError("an amount without end")
    return found


def _as_json(amount: Resources) -> dict[str, Any]:
    return {"cpu": amount.cpu, "memory": amount.memory, "gpus": amount.gpus, "extended": dict(amount.extended)}

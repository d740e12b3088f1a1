"""What a job asks for, as its row keeps it (`Job.needs`): the queue is read, and jobs are admitted, without their
specifications.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from yardmaster.job.programs import JUPYTER
from yardmaster.job.spark_needs import SparkNeed, spark_need
from yardmaster.job.spec import NOTHING, Resources, Role, TrainingSpec
from yardmaster.job.spec_spark import elsewhere
from yardmaster.job.strategy import is_service
from yardmaster.queueing.placement import Tasks


@dataclass(frozen=True)
class JobNeeds:
    """`roles`: what each role asks for in all."""

    total: Resources
    tasks: tuple[Tasks, ...]
    roles: Mapping[str, Resources]
    longest: timedelta | None = None
    """How long it runs at most from its start, with the time to end; None: it has no limit."""
    to_end: timedelta | None = None
    """How long its tasks have to end, once they were asked to. None: written by a release that did not say."""
    home_of: UUID | None = None
    """Of a notebook: whose home directory it has. None: it is none, or an earlier release wrote this."""
    spark: SparkNeed | None = None
    """What its machines need of Spark. None: nothing, or an earlier release wrote this."""

    def ends_by(
        self,
        started_at: datetime | None,
        admitted_at: datetime | None,
        asked_at: datetime | None,
        start_timeout: timedelta,
    ) -> datetime | None:
        """When it has ended at the latest; None: that is not known. `asked_at`: when its tasks were asked to end; from
        then on no limit counts, which a worker may have noticed late."""
        if asked_at is not None and self.to_end is not None:
            return asked_at + self.to_end
        begun = started_at or (None if admitted_at is None else admitted_at + start_timeout)
        return None if begun is None or self.longest is None else begun + self.longest


def needs_of(spec: TrainingSpec) -> dict[str, Any]:
    """What a spec asks for in all, its tasks, and what each role asks for, as JSON."""
    return {
        **_as_json(total_of(spec)),
        "tasks": {
            role.value: {**_as_json(one.resources), "replicas": one.replicas} for role, one in spec.roles.items()
        },
        "roles": {role.value: _as_json(amount) for role, amount in _held_by_roles(spec).items()},
        **({"serves": True} if is_service(spec.strategy) else {}),
        **({"home_of": str(spec.options["owner"])} if spec.program == JUPYTER and "owner" in spec.options else {}),
        **({} if (spark := spark_need(spec)) is None else {"spark": spark.value}),
        "to_end": _seconds(spec.time_to_end),
        **({} if spec.max_runtime is None else {"longest": _seconds(longest_of(spec))}),
    }


def total_of(spec: TrainingSpec) -> Resources:
    """What the job takes in all: of its engine, and of a registered Spark cluster, whose cores are a resource of their
    own (`spec_spark`)."""
    return spec.total() + _elsewhere(spec)


def _elsewhere(spec: TrainingSpec) -> Resources:
    return replace(NOTHING, extended=elsewhere(spec.spark))


def _held_by_roles(spec: TrainingSpec) -> dict[Role, Resources]:
    """What each role holds. What is on no engine is held with the driver, or by the session whose notebooks are
    drivers: the cluster is free when that has ended."""
    held = {role: one.resources * one.replicas for role, one in spec.roles.items()}
    drives = Role.DRIVER if Role.DRIVER in held else Role.WORKER
    if spec.spark is not None and drives in held:
        held[drives] += _elsewhere(spec)
    return held


def needs_or_none(stored: Any) -> JobNeeds | None:
    """What was written by `needs_of`; None where it is damaged."""
    try:
        roles = {role: _amount(one) for role, one in stored["roles"].items()}
        serves = bool(stored.get("serves"))
        tasks = tuple(Tasks(role, _amount(one), int(one["replicas"]), serves) for role, one in stored["tasks"].items())
        home_of = stored.get("home_of")
        return JobNeeds(
            _amount(stored),
            tasks,
            roles,
            _time(stored.get("longest")),
            _time(stored.get("to_end")),
            None if home_of is None else UUID(home_of),
            None if (spark := stored.get("spark")) is None else SparkNeed(spark),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def longest_of(spec: TrainingSpec) -> timedelta | None:
    """The time limit with the time that the tasks have to end; None: it has no limit. Of several roles one may still be
    held for the reclaim delay after the others have succeeded in the last moment."""
    if spec.max_runtime is None:
        return None
    reclaims = spec.reclaim_delay if len(spec.roles) > 1 else timedelta(0)
    return spec.max_runtime + reclaims + spec.time_to_end


def _seconds(time: timedelta | None) -> float | None:
    return None if time is None else time.total_seconds()


def _time(seconds: Any) -> timedelta | None:
    """Raises where it is none."""
    return None if seconds is None else timedelta(seconds=float(seconds))


def _amount(stored: Mapping[str, Any]) -> Resources:
    """Raises where it is none."""
    found = Resources(stored["cpu"], stored["memory"], stored["gpus"], stored["extended"])
    if not all(map(math.isfinite, found.as_amounts().values())):
        raise ValueError("an amount without end")
    return found


def _as_json(amount: Resources) -> dict[str, Any]:
    return {"cpu": amount.cpu, "memory": amount.memory, "gpus": amount.gpus, "extended": dict(amount.extended)}

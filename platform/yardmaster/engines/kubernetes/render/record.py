"""What of a run the cluster must remember, so that an observation needs nothing but the cluster: the record in the
owner object's data. It holds numbers and our own words, never a user's text.

`released-<role>` is written before a role's workload is deleted: its pods go, and the facts of its tasks stay.
`restarted-together` is written before the pods of a run that restarts as a whole are evicted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from yardmaster.job.spec import UPLOADS_NOTHING, Role, Strategy, TrainingSpec, time_to_end, time_to_restart
from yardmaster.lifecycle.phases import TaskPhase, TaskState

RECORD = "run.json"
GANG_RESTARTS = "restarted-together"
_RELEASED = "released-"
_LONGEST_MESSAGE = 300
"""A record holds up to 1,000 tasks in an object of at most 1 MiB."""


@dataclass(frozen=True)
class RoleShape:
    replicas: int
    memory: int
    """The limit in bytes, for the words about who passed it."""


@dataclass(frozen=True)
class RunShape:
    """The run as far as its observation depends on it."""

    roles: Mapping[Role, RoleShape]
    retries: int
    grace: int
    """Seconds that a script has between SIGTERM and SIGKILL; a pod has `time_to_end`."""
    strategy: Strategy | None = None
    """None in the record of a run that an earlier version began."""

    @classmethod
    def of(cls, spec: TrainingSpec) -> RunShape:
        roles = {role: RoleShape(one.replicas, one.resources.memory) for role, one in spec.roles.items()}
        return cls(roles, spec.retries, int(spec.grace_period.total_seconds()), spec.strategy)

    @property
    def time_to_end(self) -> int:
        """Seconds that a pod has, but for a parameter server's, which has only `grace`: it uploads nothing."""
        if self.strategy in UPLOADS_NOTHING:
            return self.grace
        return int(time_to_end(timedelta(seconds=self.grace)).total_seconds())

    def time_to_restart(self, role: Role) -> int:
        """Seconds that a pod of this role has when all tasks are to start again."""
        if role is Role.PS or self.strategy in UPLOADS_NOTHING:
            return self.grace
        return int(time_to_restart(timedelta(seconds=self.grace)).total_seconds())

    def tasks(self) -> list[tuple[Role, int]]:
        """Every (role, index), in the spec's order."""
        return [(role, index) for role in Role if role in self.roles for index in range(self.roles[role].replicas)]

    def to_json(self) -> str:
        roles = {role.value: {"replicas": one.replicas, "memory": one.memory} for role, one in self.roles.items()}
        whole: dict[str, Any] = {"version": 1, "roles": roles, "retries": self.retries, "grace": self.grace}
        if self.strategy is not None:
            whole["strategy"] = self.strategy.value
        return json.dumps(whole)

    @classmethod
    def from_json(cls, text: str) -> RunShape:
        data = json.loads(text)
        roles = {Role(role): RoleShape(one["replicas"], one["memory"]) for role, one in data["roles"].items()}
        strategy = Strategy(data["strategy"]) if "strategy" in data else None
        return cls(roles, data["retries"], data["grace"], strategy)


@dataclass(frozen=True)
class Released:
    """A role that was asked to end: when, and its tasks as they were then."""

    at: datetime
    tasks: Mapping[int, TaskState]

    def to_json(self) -> str:
        return json.dumps({"at": self.at.isoformat(), "tasks": [_task_to_json(one) for one in self.tasks.values()]})

    @classmethod
    def from_json(cls, role: Role, text: str) -> Released:
        data = json.loads(text)
        tasks = (_task_from_json(role, one) for one in data["tasks"])
        return cls(datetime.fromisoformat(data["at"]), {one.index: one for one in tasks})


def in_order_of_application(roles: Iterable[Role]) -> list[Role]:
    """The leading task's role last: nothing continues without its workload, so that one says whether all is there."""
    wanted = frozenset(roles)
    return [role for role in reversed(Role) if role in wanted]


@dataclass(frozen=True)
class GangRestarts:
    """What the owner remembers of restarts of all tasks."""

    count: int = 0
    spent: int = 0
    """Those of them that a task caused which failed by itself: each costs the job one of its restarts."""
    lives: Mapping[str, int] = field(default_factory=dict)
    """`role/index` of a Job's task → how many lives of it are accounted for."""
    stale: frozenset[str] = frozenset()
    """The uids of the pods that were there at the last gang restart."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """`role/index` of a Job's task → how many failures of it are accounted for in `spent`."""

    def to_json(self) -> str:
        whole = {"count": self.count, "spent": self.spent, "lives": dict(self.lives), "stale": sorted(self.stale)}
        return json.dumps({**whole, "failures": dict(self.failures)})

    @classmethod
    def in_data(cls, data: Mapping[str, str]) -> GangRestarts:
        """From an owner's data; nothing where it never happened."""
        if GANG_RESTARTS not in data:
            return cls()
        read: dict[str, Any] = json.loads(data[GANG_RESTARTS])
        stale, failures = frozenset(read["stale"]), read.get("failures", {})
        return cls(read["count"], read["spent"], read["lives"], stale, failures)


NEVER = GangRestarts()


def released_key(role: Role) -> str:
    """Under which key of the owner's data a role's `Released` stands."""
    return _RELEASED + role.value


def released_in(data: Mapping[str, str]) -> dict[Role, Released]:
    """The released roles of an owner's data."""
    return {role: Released.from_json(role, data[released_key(role)]) for role in Role if released_key(role) in data}


def release_of(role: Role, at: datetime, tasks: Iterable[TaskState]) -> Released:
    kept = {one.index: replace(one, message=one.message[:_LONGEST_MESSAGE]) for one in tasks if one.role is role}
    return Released(at, kept)


def _task_to_json(task: TaskState) -> dict[str, Any]:
    """Without what is empty: there may be many."""
    whole = {
        "index": task.index,
        "phase": task.phase.value,
        "reason": task.reason,
        "message": task.message,
        "exit_code": task.exit_code,
        "restarts": task.restarts,
        "node": task.node,
        "started_at": task.started_at and task.started_at.isoformat(),
        "finished_at": task.finished_at and task.finished_at.isoformat(),
    }
    return {name: value for name, value in whole.items() if value not in (None, "")}


def _task_from_json(role: Role, data: Mapping[str, Any]) -> TaskState:
    started, finished = data.get("started_at"), data.get("finished_at")
    return TaskState(
        role=role,
        index=data["index"],
        phase=TaskPhase(data["phase"]),
        reason=data.get("reason", ""),
        message=data.get("message", ""),
        exit_code=data.get("exit_code"),
        restarts=data.get("restarts", 0),
        node=data.get("node", ""),
        started_at=datetime.fromisoformat(started) if started else None,
        finished_at=datetime.fromisoformat(finished) if finished else None,
    )

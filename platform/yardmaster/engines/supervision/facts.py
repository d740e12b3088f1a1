"""What is on disk about one run: its order, its wishes, the state of each task, as frozen values and as JSON.

Only values and their two forms. Not here: where the files lie and how they are written (`folder`).
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from yardmaster.engines.supervision.processes import ProcessId
from yardmaster.errors import SpecUnreadable
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role, TrainingSpec
from yardmaster.job.spec_stored import stored_form, stored_spec
from yardmaster.lifecycle.phases import TaskPhase, TaskState
from yardmaster.lifecycle.restarts import NO_TRACE, Trace

Task = tuple[Role, int]


def task_name(role: Role, index: int) -> str:
    """`worker-0`: the folder of a task, and its name in every file here."""
    return f"{role.value}-{index}"


def task_of(name: str) -> Task:
    """The task that has this name. Raises `ValueError` for any other text."""
    role, _, index = name.rpartition("-")
    return Role(role), int(index)


LOOPBACK = "127.0.0.1"
NO_FACTS = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError)
"""What reading something else than facts raises: scripts can write the files."""


@dataclass(frozen=True)
class Order:
    """What `submit` was asked for and what it allotted: all that a supervisor needs to know. Written once."""

    key: JobKey
    spec: TrainingSpec
    portal_url: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    """What every task gets beside its own variables."""
    gpus: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The GPUs of each task, by task name."""
    ports: Mapping[str, int] = field(default_factory=dict)
    """The port of each task with a server, by task name."""
    control_group: str = ""
    """The control group under which tasks get theirs; empty where the machine has none to give."""
    host: str = LOOPBACK
    """The address of this machine by which the job's other tasks reach those here."""
    elsewhere: Mapping[str, str] | None = None
    """Of a run on several machines: where each task is that is not here, by task name: `host:port`, or empty where it
    has no server. None: all tasks are here."""

    owner: str = ""
    """The portal whose run it is, where several use the machine."""
    part: str = ""
    """Which of all parts that machines ever had of the run this is."""

    @property
    def is_shared(self) -> bool:
        """Whether other machines have a part of the run."""
        return bool(self.elsewhere)

    def tasks(self) -> list[Task]:
        """Those that run here, in the order of the specification."""
        away = self.elsewhere or {}
        return [task for task in self.spec.tasks() if task_name(*task) not in away]

    def cluster(self) -> dict[str, list[str]]:
        """Addresses by role, in order of index, as `YARDMASTER_CLUSTER` has them."""
        cluster: dict[str, list[str]] = {}
        for role, index in self.spec.tasks():
            name = task_name(role, index)
            port = self.ports.get(name)
            address = (self.elsewhere or {}).get(name, "") if port is None else f"{self.host}:{port}"
            if address:
                cluster.setdefault(role.value, []).append(address)
        return cluster

    def to_json(self) -> dict[str, Any]:
        return {
            "key": key_to_json(self.key),
            "spec": stored_form(self.spec),
            "portal_url": self.portal_url,
            "command": list(self.command),
            "environment": dict(self.environment),
            "gpus": {name: list(gpus) for name, gpus in self.gpus.items()},
            "ports": dict(self.ports),
            "control_group": self.control_group,
            "host": self.host,
            "owner": self.owner,
            "part": self.part,
            "elsewhere": None if self.elsewhere is None else dict(self.elsewhere),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Order:
        """No rule is applied: what runs continues under any release. Raises `SpecUnreadable` where this is no order."""
        try:
            return cls(
                key=key_from_json(data["key"]),
                spec=stored_spec(data["spec"]),
                portal_url=data["portal_url"],
                command=tuple(data["command"]),
                environment=data["environment"],
                gpus={name: tuple(gpus) for name, gpus in data.get("gpus", {}).items()},
                ports=data.get("ports", {}),
                control_group=data.get("control_group", ""),
                host=data.get("host", LOOPBACK),
                elsewhere=None if data.get("elsewhere") is None else dict(data["elsewhere"]),
                owner=data.get("owner", ""),
                part=data.get("part", ""),
            )
        except NO_FACTS as error:
            raise SpecUnreadable(f"The run's order cannot be read: {error!r}") from error


@dataclass(frozen=True)
class Wishes:
    """Roles that are to end, and when (seconds since 1970) what is left of each is killed. Only grows or hastens."""

    kill_at: Mapping[Role, float] = field(default_factory=dict)

    def hastened(self, roles: frozenset[Role], moment: float) -> Wishes:
        """These with `roles` to be killed at `moment`, or before where that was wished already."""
        earlier = {role: min(moment, self.kill_at.get(role, moment)) for role in roles}
        return Wishes({**self.kill_at, **earlier})

    def to_json(self) -> dict[str, float]:
        return {role.value: moment for role, moment in self.kill_at.items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Wishes:
        return cls({Role(role): float(moment) for role, moment in data.items()})


@dataclass(frozen=True)
class Others:
    """Of a run on several machines: what has come of its tasks elsewhere, as far as this machine was told. Only grows:
    what is told late, or twice, does no harm."""

    spent: int = 0
    """How many of the job's restarts tasks elsewhere have spent, without those of the whole cluster."""
    succeeded: frozenset[str] = frozenset()
    """The tasks elsewhere that have ended well, by name."""
    generation: int = 0
    """How often the whole cluster was started again, as far as any machine knows."""
    cleared: int = 0
    """Nothing of a generation before this one runs elsewhere."""

    def with_news(self, other: Others) -> Others:
        """Both: none of it is ever undone."""
        return Others(
            max(self.spent, other.spent),
            self.succeeded | other.succeeded,
            max(self.generation, other.generation),
            max(self.cleared, other.cleared),
        )

    def to_json(self) -> dict[str, Any]:
        some = {"spent": self.spent, "generation": self.generation, "cleared": self.cleared}
        return {**some, "succeeded": sorted(self.succeeded)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Others:
        """Raises one of `NO_FACTS` where this is none."""
        return cls(int(data["spent"]), frozenset(data["succeeded"]), int(data["generation"]), int(data["cleared"]))


@dataclass(frozen=True)
class Facts:
    """One task: what everybody may see, and what its supervisor must remember over its own death."""

    state: TaskState
    leader: ProcessId | None = None
    """The task's first process while it runs."""
    start_at: float = 0.0
    """Seconds since 1970 before which a pending task is not started: restarts wait longer each time."""
    recalled: bool = False
    """It is being ended only in order to be started again with the others."""
    spent: int = 0
    """How many of the job's restarts were spent on its account."""
    trace: Trace = NO_TRACE
    """How it failed last, on its own account."""
    generation: int = 0
    """How often it was started again with the whole cluster."""

    def to_json(self) -> dict[str, Any]:
        state, leader = self.state, self.leader
        return {
            "phase": state.phase.value,
            "reason": state.reason,
            "message": state.message,
            "exit_code": state.exit_code,
            "restarts": state.restarts,
            "started_at": state.started_at and state.started_at.isoformat(),
            "finished_at": state.finished_at and state.finished_at.isoformat(),
            "peak_memory": state.peak_memory,
            "leader": leader and [leader.pid, leader.started, leader.boot],
            "start_at": self.start_at,
            "recalled": self.recalled,
            "spent": self.spent,
            "signature": self.trace.signature,
            "reached": self.trace.reached,
            "generation": self.generation,
        }

    @classmethod
    def from_json(cls, role: Role, index: int, data: Mapping[str, Any]) -> Facts:
        """Raises one of `NO_FACTS` where this is none: scripts can write the file, so that every value is looked at."""
        state = TaskState(
            role=role,
            index=index,
            phase=TaskPhase(data["phase"]),
            reason=_text(data["reason"], 200)[:_LONGEST_REASON],
            message=_text(data["message"], 20_000),
            exit_code=None if data["exit_code"] is None else _whole(data["exit_code"]),
            restarts=_whole(data["restarts"]),
            node=NODE,
            started_at=_moment(data["started_at"]),
            finished_at=_moment(data["finished_at"]),
            peak_memory=None if data["peak_memory"] is None else _whole(data["peak_memory"], _MOST_MEMORY),
        )
        found = None
        if data["leader"]:
            pid, started, boot = data["leader"]
            found = ProcessId(_whole(pid), _whole(started, _MOST_MEMORY), _text(boot, 100))
        start_at, generation = float(data["start_at"]), _whole(data.get("generation", 0))
        if not math.isfinite(start_at):
            raise ValueError("no time")
        spent = _whole(data["spent"])
        return cls(state, found, start_at, bool(data["recalled"]), spent, Trace.in_note(data), generation)

    def with_state(self, **changes: Any) -> Facts:
        """A copy whose visible state differs in these fields."""
        return replace(self, state=replace(self.state, **changes))


_MOST_MEMORY = 1 << 62
_LONGEST_REASON = 63
_MOST = (1 << 31) - 1
"""What the portal's database takes, as of reasons."""
_EARLIEST, _LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2500, 1, 1, tzinfo=UTC)
NODE = "local"
"""Every task's `node`: there is only this machine."""


def fresh(role: Role, index: int) -> Facts:
    """A task that was never started."""
    return Facts(TaskState(role, index, TaskPhase.PENDING, node=NODE))


def key_to_json(key: JobKey) -> list[Any]:
    return [str(key.namespace_id), str(key.job_id), key.attempt]


def key_from_json(data: list[Any]) -> JobKey:
    return JobKey(uuid.UUID(data[0]), uuid.UUID(data[1]), int(data[2]))


def _whole(value: object, most: int = _MOST) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError(f"no number: {str(value)[:50]}")
    return value


def _text(value: object, longest: int) -> str:
    if not isinstance(value, str) or len(value) > longest:
        raise ValueError("no text")
    return value


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    found = datetime.fromisoformat(text)
    if found.tzinfo is None or not _EARLIEST <= found <= _LATEST:
        raise ValueError("no time")
    return found

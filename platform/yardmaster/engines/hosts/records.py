"""What the portal itself remembers of machines and runs, in files that all its processes on one machine share:

    placements/<run>.json   which task of a run is on which machine, and on which ports
    seen/<run>.json         what the machines said of it last, for while one does not answer
    machines/<name>.json    what a machine had last; since when it does not answer

The machines hold the truth of what runs on them, and these files of where that is.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from yardmaster.engines.base import TaskAccess
from yardmaster.engines.supervision.facts import Facts, Task, key_from_json, key_to_json, task_name, task_of
from yardmaster.engines.supervision.folder import read_json, write_json
from yardmaster.errors import SpecUnreadable, Unavailable
from yardmaster.ids import JobKey
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.spec_stored import stored_form, stored_spec

_LOCK_PATIENCE = 10.0
_GAP = 180.0
"""Seconds between two looks at a machine after which it is not known that it was away all the time."""


@dataclass(frozen=True)
class Share:
    """What of a run is on one machine. `host` is the machine's address, as the tasks elsewhere know it; `part` names
    this part among all that machines ever had of the run."""

    part: str
    host: str
    tasks: tuple[str, ...]
    ports: Mapping[str, int] = field(default_factory=dict)
    gpus: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def address(self, task: str) -> str:
        """`host:port`; empty where the task has no server."""
        return f"{self.host}:{self.ports[task]}" if task in self.ports else ""

    def to_json(self) -> dict[str, Any]:
        gpus = {task: list(cards) for task, cards in self.gpus.items()}
        return {
            "part": self.part,
            "host": self.host,
            "tasks": list(self.tasks),
            "ports": dict(self.ports),
            "gpus": gpus,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Share:
        gpus = {task: tuple(cards) for task, cards in data["gpus"].items()}
        return cls(data["part"], data["host"], tuple(data["tasks"]), dict(data["ports"]), gpus)


@dataclass(frozen=True)
class Placement:
    """Where a run is. `left` is None while it is there; once it is being removed, the parts that machines still have to
    remove."""

    key: JobKey
    spec: TrainingSpec
    access: TaskAccess
    shares: Mapping[str, Share]
    left: Mapping[str, str] | None = None
    unmade: tuple[str, ...] = ()
    """Machines that have not confirmed yet that they have made their part."""
    facts: Mapping[Task, Facts] = field(default_factory=dict)
    """Of tasks that were on machines that were lost, as it was known then: of those that no machine has now, all."""
    former: Mapping[str, str] = field(default_factory=dict)
    """The addresses that those of them had that have ended, by task name: peers count tasks by their place in lists."""
    gone: Mapping[str, str] = field(default_factory=dict)
    """Older parts of the run that machines still have to remove."""
    pending: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What machines were asked for while they did not answer: by machine, the arguments of each verb. They do it when
    they are back."""

    def tasks(self) -> dict[str, str]:
        """The machine of each task that has one, by task name."""
        return {task: machine for machine, share in self.shares.items() for task in share.tasks}

    def unplaced(self) -> list[Task]:
        """The tasks that wait for a machine, after theirs was lost."""
        there = self.tasks()
        return [
            task
            for task in self.spec.tasks()
            if task_name(*task) not in there and not (task in self.facts and self.facts[task].state.phase.is_ended)
        ]

    @property
    def was_moved(self) -> bool:
        """Whether tasks of it were on machines that were lost."""
        return bool(self.facts)

    def elsewhere(self, machine: str) -> dict[str, str]:
        """The tasks that are not on this machine, with their addresses."""
        others = (share for name, share in self.shares.items() if name != machine)
        return {**self.former, **{task: share.address(task) for share in others for task in share.tasks}}

    def address(self, task: str) -> str:
        return next((one.address(task) for one in self.shares.values() if task in one.tasks), "")

    def to_json(self) -> dict[str, Any]:
        return {
            "key": key_to_json(self.key),
            "spec": stored_form(self.spec),
            "access": [self.access.portal_url, self.access.token],
            "shares": {name: one.to_json() for name, one in self.shares.items()},
            "left": None if self.left is None else dict(self.left),
            "unmade": list(self.unmade),
            "facts": {task_name(*task): one.to_json() for task, one in self.facts.items()},
            "former": dict(self.former),
            "gone": dict(self.gone),
            "pending": {machine: dict(one) for machine, one in self.pending.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Placement:
        """Raises `KeyError`, `TypeError`, `ValueError`, `AttributeError` or `SpecUnreadable` where this is none."""
        return cls(
            key_from_json(data["key"]),
            stored_spec(data["spec"]),
            TaskAccess(*data["access"]),
            {name: Share.from_json(one) for name, one in data["shares"].items()},
            data["left"],
            tuple(data["unmade"]),
            {task_of(name): Facts.from_json(*task_of(name), one) for name, one in data["facts"].items()},
            data["former"],
            data["gone"],
            data["pending"],
        )


class Records:
    """The files under `root`. May be shared by threads and processes of one machine."""

    def __init__(self, root: Path) -> None:
        self._placements, self._seen, self._machines = root / "placements", root / "seen", root / "machines"
        self._locks = root / "locks"

    @contextlib.contextmanager
    def locked(self, key: JobKey) -> Iterator[None]:
        """One at a time changes where a run is. Raises `Unavailable` where another does so for long."""
        deadline, path = time.monotonic() + _LOCK_PATIENCE, self._locks / key.name
        _make_private(self._locks)
        while (descriptor := _lock(path)) is None:
            if time.monotonic() > deadline:
                raise _busy(key)
            time.sleep(0.02)
        try:
            yield
        finally:
            if self.placement(key) is None:
                path.unlink(missing_ok=True)
            os.close(descriptor)

    # --- runs --------------------------------------------------------------------------------------------------------

    def placement(self, key: JobKey) -> Placement | None:
        return _placement_in(self._placements / f"{key.name}.json")

    def placements(self) -> list[Placement]:
        found = (_placement_in(path) for path in sorted(self._placements.glob("*.json")))
        return [one for one in found if one is not None]

    def place(self, placement: Placement) -> None:
        """Remember it. Raises `OSError`."""
        _make_private(self._placements)
        write_json(self._placements / f"{placement.key.name}.json", placement.to_json(), durable=True)

    def note_pending(self, key: JobKey, machines: Collection[str], verb: str, arguments: Mapping[str, Any]) -> None:
        """Remember what these are to do when they are back. A run that is no more has nothing to do."""
        with self.locked(key):
            placement = self.placement(key)
            if placement is not None and placement.left is None:
                added = {one: _joined(placement.pending.get(one, {}), verb, arguments) for one in machines}
                self.place(replace(placement, pending={**placement.pending, **added}))

    def done(self, key: JobKey, machine: str, verbs: Mapping[str, Any]) -> None:
        """It has done these, as they were asked for then."""
        with self.locked(key):
            placement = self.placement(key)
            if placement is not None:
                now = placement.pending.get(machine, {})
                rest = {verb: asked for verb, asked in now.items() if verbs.get(verb) != asked}
                others = {name: one for name, one in placement.pending.items() if name != machine}
                self.place(replace(placement, pending={**others, machine: rest} if rest else others))

    def forget(self, key: JobKey) -> None:
        for folder in (self._placements, self._seen):
            (folder / f"{key.name}.json").unlink(missing_ok=True)

    def removing(self, placement: Placement, left: Mapping[str, str]) -> None:
        """Remember which machines still have a part of a run that is no more."""
        if left:
            self.place(replace(placement, left=left))
        else:
            self.forget(placement.key)

    def seen(self, key: JobKey) -> dict[str, Any]:
        """What each machine said of the run last, by machine."""
        return read_json(self._seen / f"{key.name}.json") or {}

    def note_seen(self, key: JobKey, reports: Mapping[str, Any]) -> None:
        """A disk that is full costs only what is known while a machine is away."""
        with contextlib.suppress(OSError):
            _make_private(self._seen)
            write_json(self._seen / f"{key.name}.json", reports)

    # --- machines ----------------------------------------------------------------------------------------------------

    def machine(self, name: str) -> dict[str, Any]:
        return read_json(self._machines / f"{name}.json") or {}

    def note_machine(self, name: str, **known: Any) -> None:
        """Remember what is known of it beside what was."""
        before = self.machine(name)
        after = {**before, **known}
        if after != before:
            with contextlib.suppress(OSError):
                _make_private(self._machines)
                write_json(self._machines / f"{name}.json", after)

    def away_since(self, name: str) -> float:
        """Seconds since 1970 since when it does not answer, as it did not again now. Where it was not looked at for a
        while, that counts from now."""
        known, now = self.machine(name), time.time()
        since, looked = known.get("away_since"), known.get("looked", 0)
        if since is None or not 0 <= now - looked <= _GAP:
            since = now
        if since == now or now - looked > _GAP / 6:
            self.note_machine(name, away_since=since, looked=now)
        return float(since)


def _lock(path: Path) -> int | None:
    """A descriptor that holds the lock until it is closed; None where another has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(BlockingIOError, FileNotFoundError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), os.stat(path)):  # it was not removed meanwhile
            return descriptor
    os.close(descriptor)
    return None


def _busy(key: JobKey) -> Unavailable:
    return Unavailable(f"Another process of the portal is busy with run {key.name}.", remedy="The portal tries again.")


def _joined(before: Mapping[str, Any], verb: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What a machine has to do, with one thing more: all roles that were to end, and the earlier of two ends."""
    asked = dict(arguments)
    if verb in before and "roles" in asked:
        asked["roles"] = sorted({*before[verb]["roles"], *asked["roles"]})
    if verb in before and "grace" in asked:
        asked["grace"] = min(before[verb]["grace"], asked["grace"])
    return {**before, verb: asked}


def _make_private(folder: Path) -> None:
    """Of the portal's user alone: placements have the tokens of jobs."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _placement_in(path: Path) -> Placement | None:
    data = read_json(path)
    if data is None:
        return None
    try:
        return Placement.from_json(data)
    except (KeyError, TypeError, ValueError, AttributeError, SpecUnreadable):
        return None

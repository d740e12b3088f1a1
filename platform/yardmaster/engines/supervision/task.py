"""One task under supervision: its stage, its process, and what is remembered of it. It acts only on this one task.

Not here: when a task is to start, to end or to start again, which needs the view of the whole run (`supervisor`).
"""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from enum import Enum, auto
from pathlib import Path

from yardmaster.engines.supervision import launch, scratch
from yardmaster.engines.supervision.control_groups import ControlGroup
from yardmaster.engines.supervision.endings import Ending, ending_of
from yardmaster.engines.supervision.facts import Facts, Order, task_name
from yardmaster.engines.supervision.folder import RunFolder, read_json
from yardmaster.engines.supervision.processes import (
    Row,
    identify,
    machine_oom_kills,
    members,
    memory_at_most,
    memory_of,
    send_signal,
)
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import TaskPhase

_OUTPUT_LIMIT = 1 << 20
_CLEARED_AT_LATEST = 5.0


class Stage(Enum):
    """What the supervisor waits for."""

    WAITING = auto()
    """For its moment to start."""
    RUNNING = auto()
    """For the end of its first process."""
    CLEARING = auto()
    """For the end of what its first process left behind, which is being killed."""
    ENDED = auto()
    """For nothing."""


class SupervisedTask:
    """One task of `order`, taken up where its facts on disk say it was."""

    def __init__(self, folder: RunFolder, order: Order, role: Role, index: int, rows: Mapping[int, Row]) -> None:
        self.role, self.index = role, index
        self.name = task_name(role, index)
        self.resources = order.spec.roles[role].resources
        self.facts = folder.read_facts(role, index)
        self.kill_at: float | None = None
        self.is_child = False
        self._folder, self._order = folder, order
        self._mark = launch.mark(folder, role, index)
        self._group = _group_for(order, folder, self.name)
        self._exit_code: int | None = None
        self._passed_memory = False
        self._quick_peak = 0
        self._oom_kills = machine_oom_kills()
        self._cleared_by: float | None = None
        self._written = self.facts
        self.stage = self._stage_found(rows)

    def _stage_found(self, rows: Mapping[int, Row]) -> Stage:
        """Where an earlier supervisor left it. What runs without its first process is cleared away, as is what was
        started but could not be written down."""
        strays = self.members(rows)
        leader = self.facts.leader
        if self.facts.state.phase.is_ended:
            self.kill(rows)
            return Stage.ENDED
        if leader is not None and leader.is_alive():
            return Stage.RUNNING
        return Stage.CLEARING if strays or leader is not None else Stage.WAITING

    # --- start -------------------------------------------------------------------------------------------------------

    def start(self, now: float) -> None:
        """Start its first process. Raises `OSError` where the machine does not let us; it then still waits."""
        work = self._folder.work(self.role, self.index)
        (work / "exit.json").unlink(missing_ok=True)
        if self._group is not None:
            self._group.make(self.resources)
        restarts = self.facts.state.restarts
        environment = launch.task_environment(self._order, self._folder, self.role, self.index, restarts)
        waiting = launch.spawn(
            self._order.command,
            {**environment, **scratch.make(self._folder, self.role, self.index)},
            work,
            self._folder.output(self.role, self.index),
            None if self._group is None else self._group.path,
        )
        self.stage, self.is_child = Stage.RUNNING, True
        self.kill_at = self._exit_code = self._cleared_by = None
        self._passed_memory, self._oom_kills = False, machine_oom_kills()
        begun = self.facts.with_state(
            phase=TaskPhase.RUNNING, reason="", message="", exit_code=None, started_at=_moment(now), finished_at=None
        )
        self.facts = replace(begun, leader=identify(waiting.pid), recalled=False)
        # Written before it becomes anything. Where the disk is full it runs all the same: its mark finds it again.
        self.save()
        waiting.go()

    def put_off(self, until: float, message: str) -> None:
        """It could not be started: try again later, and say why meanwhile."""
        self.facts = replace(self.facts.with_state(reason="StartFailed", message=message), start_at=until)

    # --- end ---------------------------------------------------------------------------------------------------------

    def end_gently(self, kill_at: float) -> None:
        """SIGTERM to its first process, which passes it on; what still runs at `kill_at` is killed. Asked again, the
        earlier moment counts and no second signal is sent."""
        if self.kill_at is None and self.facts.leader is not None:
            self.facts.leader.signal(signal.SIGTERM)
        self.kill_at = kill_at if self.kill_at is None else min(self.kill_at, kill_at)

    def kill(self, rows: Mapping[int, Row]) -> int:
        """SIGKILL to all of it; how many there were."""
        if self._group is not None:
            self._group.kill()
        living = self.members(rows)
        for row in living:
            send_signal(row.pid, signal.SIGKILL)
        return len(living)

    def first_process_ended(self, exit_code: int | None, peak_memory: int = 0) -> None:
        """Its first process is gone; `exit_code` None: another process's child, which alone learned it."""
        self._exit_code = exit_code
        self._note_peak(max(peak_memory, self._group.peak() if self._group else 0))
        self._passed_memory = self._passed_memory or self._was_killed_by_kernel()
        self.bound_output()
        self.stage = Stage.CLEARING

    def clear(self, rows: Mapping[int, Row], now: float) -> bool:
        """Kill what its first process left behind; true when nothing is left. A process that the kernel cannot end
        (a dead disk) holds up a restart for ever, but the news of an end for only a while."""
        if self.kill(rows) == 0:
            if self._group is not None:
                self._group.remove()
            return True
        self._cleared_by = self._cleared_by or now + _CLEARED_AT_LATEST
        return False

    def is_overdue(self, now: float) -> bool:
        return self._cleared_by is not None and now >= self._cleared_by

    def ending(self) -> Ending:
        """How it ended, when all of it has; compared with how it failed before."""
        note = read_json(self._folder.work(self.role, self.index) / "exit.json")
        limit = self.resources.memory if self._passed_memory and self._exit_code != 0 else None
        found = ending_of(self._exit_code, note, limit, self.facts.state.peak_memory)
        return replace(found, reason=found.trace.reason_after(self.facts.trace, found.reason))

    def conclude(self, phase: TaskPhase, ending: Ending, now: float) -> None:
        """It will not be started again."""
        self.stage = Stage.ENDED
        ended = self.facts.with_state(
            phase=phase,
            reason=ending.reason,
            message=ending.message,
            exit_code=ending.exit_code,
            finished_at=_moment(now),
        )
        self.facts = replace(ended, leader=None, recalled=False)

    def restart_at(
        self,
        moment: float,
        ending: Ending,
        *,
        spends: bool = False,
        is_own: bool = False,
        generation: int | None = None,
    ) -> None:
        """Start it again at `moment`; until then the reason of its end shows. `spends` one of the job's restarts;
        `is_own`: it failed on its own account, which is remembered. `generation` None: as it is."""
        self.stage = Stage.WAITING
        again = self.facts.with_state(
            phase=TaskPhase.PENDING,
            reason=ending.reason,
            message=ending.message,
            exit_code=ending.exit_code,
            restarts=self.facts.state.restarts + 1,
        )
        self.facts = replace(
            again,
            leader=None,
            recalled=False,
            start_at=moment,
            spent=self.facts.spent + (1 if spends else 0),
            trace=ending.trace if is_own else self.facts.trace,
            generation=self.facts.generation if generation is None else generation,
        )

    def recall(self, kill_at: float, start_at: float, generation: int) -> None:
        """End it because the whole cluster starts again, at `start_at` or when all of it has ended."""
        recalled = self.stage is not Stage.WAITING
        self.facts = replace(self.facts, recalled=recalled, start_at=start_at, generation=generation)
        if self.stage is Stage.RUNNING:
            self.end_gently(kill_at)

    # --- watch -------------------------------------------------------------------------------------------------------

    def members(self, rows: Mapping[int, Row]) -> list[Row]:
        """Its living processes."""
        return members(rows, self.facts.leader, self._mark)

    def watch_memory(self, rows: Mapping[int, Row], kill_at: float) -> float:
        """Kill it when it has passed its memory; returns the part of it that is used.

        Its first process is spared at first: it is the runner, which still has lines to ship and an end to report.
        """
        leader = self.facts.leader
        if self.stage is not Stage.RUNNING or leader is None or leader.pid not in rows:
            return 0.0
        mine = members(rows, leader, self._mark)
        used = self._memory_of(mine)
        if used > self.resources.memory:
            below = [row for row in mine if row.pid != leader.pid]
            for row in below if below and not self._passed_memory else mine:
                send_signal(row.pid, signal.SIGKILL)
            self._passed_memory = True
            self.kill_at = kill_at if self.kill_at is None else min(self.kill_at, kill_at)
        return used / self.resources.memory

    def _memory_of(self, mine: Sequence[Row]) -> int:
        """What these use together, and a note of the most. The quick sum counts pages that forked children share once
        for each: it serves while it is no larger than before, and is never noted."""
        quick = memory_at_most(mine)
        if quick <= min(self._quick_peak, self.resources.memory):
            return quick
        self._quick_peak = quick + quick // 50
        used = memory_of(mine)
        self._note_peak(used)
        return used

    def bound_output(self) -> None:
        """Keep what the first process itself printed from filling the disk: the last part stays."""
        path = self._folder.output(self.role, self.index)
        with contextlib.suppress(OSError), open(path, "r+b") as file:
            if file.seek(0, 2) > 2 * _OUTPUT_LIMIT:
                file.seek(-_OUTPUT_LIMIT, 2)
                path.with_name("output.1").write_bytes(file.read())
                file.truncate(0)

    # --- memory of it on disk ----------------------------------------------------------------------------------------

    def save(self) -> bool:
        """Write what has changed; false where the disk does not take it, to be tried again."""
        if not self.is_dirty:
            return True
        try:
            self._folder.write_facts(self.facts)
        except OSError:
            return False
        self._written = self.facts
        return True

    @property
    def is_dirty(self) -> bool:
        """Whether anything but the memory's peak differs from what is written: that alone is not worth a write."""
        return _without_peak(self.facts) != _without_peak(self._written)

    def _note_peak(self, used: int) -> None:
        if used > (self.facts.state.peak_memory or 0):
            self.facts = self.facts.with_state(peak_memory=used)

    def _was_killed_by_kernel(self) -> bool:
        if self._group is not None:
            return self._group.out_of_memory_kills() > 0
        return (
            self._exit_code == 128 + signal.SIGKILL and self.kill_at is None and machine_oom_kills() > self._oom_kills
        )


def _group_for(order: Order, folder: RunFolder, name: str) -> ControlGroup | None:
    return ControlGroup(Path(order.control_group), f"{folder.path.name}.{name}") if order.control_group else None


def _without_peak(facts: Facts) -> Facts:
    return facts.with_state(peak_memory=None)


def _moment(now: float) -> datetime:
    return datetime.fromtimestamp(now, UTC)

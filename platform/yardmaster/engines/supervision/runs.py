"""The verbs on the runs of one machine. They write files and wake or start a run's supervisor, which does the rest: the
truth of a run is in its folder, so that any process may call any verb at any time.

Not here: what is ordered (the engines), and what there is of the machine (`machine`).
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from yardmaster.engines.supervision import ports
from yardmaster.engines.supervision.facts import Facts, Order, Task
from yardmaster.engines.supervision.folder import Layout, RunFolder, read_end, translated
from yardmaster.engines.supervision.journal import Journal
from yardmaster.engines.supervision.machine import find_gpus
from yardmaster.engines.supervision.removal import remove_run
from yardmaster.engines.supervision.starting import Draft, remove_drafts, start_supervisor
from yardmaster.errors import Unavailable
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import ABSENT, Observation

_OUTPUT = 2 << 20
"""Bytes of each of the two files with what a task has printed: the longest that one becomes (`task`)."""
SOURCE_ROOT = Path(__file__).resolve().parents[3]
"""The folder from which supervisors and tasks import what is ours."""

Cards = Mapping[str, tuple[str, ...]]
"""The GPUs of each task that has some, by task name."""


@dataclass(frozen=True)
class Needs:
    """What of the machine a run must have for itself before it is made: by task name, which ports and GPUs."""

    with_ports: tuple[str, ...] = ()
    gpus: Mapping[str, int] | None = None
    port_range: range | None = None
    """Where ports are taken from; None: where the kernel leaves room (`ports`)."""
    known_gpus: Sequence[str] | None = None
    """The GPUs that there are; None: those that are found."""


@dataclass(frozen=True)
class Known:
    """What the files say of a run. `message`: what hinders all of it."""

    tasks: Mapping[Task, Facts]
    message: str = ""

    def observation(self) -> Observation:
        gangs = max((one.generation for one in self.tasks.values()), default=0)
        return Observation(True, tuple(one.state for one in self.tasks.values()), self.message, gang_restarts=gangs)


class Runs:
    """The runs under `root`, a folder of its own on a local disk. All verbs raise `Unavailable` and `Misconfigured` in
    the place of errors about files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.layout = Layout(root)

    def folder(self, key: JobKey) -> RunFolder:
        return self.layout.run(key)

    # --- questions ---------------------------------------------------------------------------------------------------

    def exists(self, key: JobKey) -> bool:
        return self.folder(key).exists()

    def order(self, key: JobKey) -> Order | None:
        """What was ordered; None before that, and when the run was removed. Raises `SpecUnreadable`."""
        with translated(self.root):
            return self.folder(key).read_order()

    def observe(self, keys: Collection[JobKey]) -> Mapping[JobKey, Observation]:
        """One pass over the runs' files. Where a run should continue but its supervisor was killed or the machine was
        started again, another supervisor is started, which continues from the files."""
        with translated(self.root):
            found = {key: self.facts(key) for key in keys}
        return {key: ABSENT if one is None else one.observation() for key, one in found.items()}

    def facts(self, key: JobKey) -> Known | None:
        """All that is known of a run, and a supervisor for it as `observe` says; None where it is not there."""
        folder = self.folder(key)
        if not folder.exists():
            return None
        tasks = {task: folder.read_facts(*task) for task in folder.tasks()}
        message = ""
        if not all(one.state.phase.is_ended for one in tasks.values()):
            try:
                self.keep_supervised(folder)
            except Unavailable as error:
                message = error.message
        # Removed while we were reading: half of it is nothing.
        return Known(tasks, message) if folder.exists() else None

    def tail(self, key: JobKey, role: Role, index: int, lines: int) -> list[str]:
        """The last lines that the task's first process itself printed (of the last 2 MiB at most)."""
        current = self.folder(key).output(role, index)
        parts = (read_end(path, _OUTPUT) for path in (current.with_name("output.1"), current))
        data = b"".join(part or b"" for part in parts)
        text = data.decode(errors="replace").splitlines()
        return text[-lines:] if lines > 0 else []

    def changes(self) -> Iterator[JobKey]:
        """Runs that have changed, for ever, within about 0.05 s."""
        return Journal(self.layout.journal).follow()

    # --- actions -----------------------------------------------------------------------------------------------------

    def submit(self, key: JobKey, needs: Needs, order: Callable[[Mapping[str, int], Cards], Order], token: str) -> None:
        """Make the run's folder in one step, whole or not at all, and start its supervisor. `order` is asked with what
        was claimed, ports and GPUs by task name, where the run is not there yet."""
        folder = self.folder(key)
        with translated(self.root):
            if not folder.exists():
                self._make(key, needs, order, token)
            self.keep_supervised(folder)

    def publish(self, order: Order, token: str, facts: Mapping[Task, Facts]) -> None:
        """Make the run's folder where ports and GPUs were claimed before: what of them the run does not hold any more
        is claimed again. Raises `Unavailable` where another has it. `facts`: of tasks that were on other machines
        before. Already there: nothing changes. Its supervisor is not started yet (`keep_supervised`)."""
        folder = self.folder(order.key)
        with translated(self.root):
            if not folder.exists():
                self._hold(order)
                with Draft(self.layout.runs, order.key.name) as draft:
                    draft.folder.make(order, token, facts)
                    draft.publish()

    def nudge(self, key: JobKey, role: Role, index: int) -> None:
        """Have the task's runner report at once; absent: nothing happens."""
        folder = self.folder(key)
        with translated(self.root):
            if folder.exists():
                folder.nudge(role, index)

    def release(self, key: JobKey, roles: Collection[Role]) -> None:
        """SIGTERM to the tasks of these roles, SIGKILL after the time that the spec gives."""
        folder = self.folder(key)
        with translated(self.root):
            if folder.exists():
                self._end(folder, frozenset(roles) & folder.roles(), folder.time_to_end())

    def stop(self, key: JobKey, grace: timedelta) -> None:
        """SIGTERM to every task now, SIGKILL to whatever of it is left after `grace`."""
        folder = self.folder(key)
        with translated(self.root):
            if folder.exists():
                self._end(folder, folder.roles(), grace)

    def clean_up(self, key: JobKey) -> None:
        """Kill what runs, give back ports and GPUs, remove the folder. Needs no disk space. Raises `Unavailable` where
        the kernel does not end a process in time."""
        with translated(self.root):
            remove_run(self.folder(key))
            remove_drafts(self.layout.runs, key.name)
            self.layout.ports.free(key.name)
            self.layout.gpus.free(key.name)

    def keep_supervised(self, folder: RunFolder) -> None:
        """Start a supervisor where none lives and something is left to run."""
        if folder.supervisor() is None and not _is_over(folder):
            start_supervisor(folder, sys.executable, SOURCE_ROOT)

    # --- claims ------------------------------------------------------------------------------------------------------

    def claim_ports(self, key: JobKey, needs: Needs) -> dict[str, int]:
        """A port for each task that needs one, held by the run. Raises `Unavailable`, and then none is held."""
        span = needs.port_range if needs.port_range is not None else ports.default_range()
        wanted = len(needs.with_ports)
        taken = self.layout.ports.claim(key.name, ports.candidates(span), wanted, lambda port: ports.is_free(int(port)))
        if len(taken) < wanted:
            raise Unavailable(
                f"No {wanted} free ports are left between {span[0]} and {span[-1]}.",
                remedy="Wait until other jobs have ended, or widen port_range.",
            )
        return {task: int(port) for task, port in zip(needs.with_ports, taken, strict=True)}

    def claim_gpus(self, key: JobKey, needs: Needs) -> dict[str, tuple[str, ...]]:
        """GPUs for each task that needs some, held by the run. Raises `Unavailable`, and then none is held."""
        asked = needs.gpus or {}
        needed = sum(asked.values())
        known = needs.known_gpus if needs.known_gpus is not None else find_gpus()
        taken = self.layout.gpus.claim(key.name, known, needed, lambda _: True)
        if len(taken) < needed:
            raise Unavailable(
                f"{needed} GPUs are needed, but fewer are free.", remedy="Wait until other jobs have ended."
            )
        given: dict[str, tuple[str, ...]] = {}
        for task, count in asked.items():
            if count:
                given[task] = tuple(taken[:count])
                taken = taken[count:]
        return given

    def _hold(self, order: Order) -> None:
        run = order.key.name
        cards = [card for some in order.gpus.values() for card in some]
        wanted = [(self.layout.ports, str(port)) for port in order.ports.values()]
        for ledger, name in [*wanted, *((self.layout.gpus, card) for card in cards)]:
            if name not in ledger.held_by(run) and not ledger.claim(run, [name], 1, lambda _: True):
                raise Unavailable(f"{name} was claimed for run {run}, but another run has taken it.")

    # --- parts -------------------------------------------------------------------------------------------------------

    def _make(self, key: JobKey, needs: Needs, order: Callable[[Mapping[str, int], Cards], Order], token: str) -> None:
        """The run's folder with what its tasks hold; nothing where it cannot be made whole."""
        with Draft(self.layout.runs, key.name) as draft, contextlib.ExitStack() as undo:
            numbers = self.claim_ports(key, needs)
            undo.callback(self.layout.ports.free, key.name, [str(port) for port in numbers.values()])
            cards = self.claim_gpus(key, needs)
            undo.callback(self.layout.gpus.free, key.name, [card for some in cards.values() for card in some])
            draft.folder.make(order(numbers, cards), token)
            if draft.publish():
                undo.pop_all()

    def _end(self, folder: RunFolder, roles: frozenset[Role], grace: timedelta) -> None:
        try:
            if roles and not _is_over(folder, roles):
                folder.hasten(roles, time.time() + grace.total_seconds())
                folder.wake()
                if folder.is_readable():  # else none can supervise it, and `clean_up` ends what is left
                    self.keep_supervised(folder)
        except FileNotFoundError:
            if folder.exists():
                raise


def _is_over(folder: RunFolder, roles: frozenset[Role] | None = None) -> bool:
    """Whether every task (of these roles) has ended."""
    tasks: list[Task] = [task for task in folder.tasks() if roles is None or task[0] in roles]
    return all(folder.read_facts(*task).state.phase.is_ended for task in tasks)

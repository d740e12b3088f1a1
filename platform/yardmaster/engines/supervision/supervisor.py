"""The process that looks after one run: `python -m yardmaster.engines.supervision.supervisor <run folder>`.

It detaches itself, so that it is no process's child and outlives the one that started it, and it takes the run's lock,
so that there is never a second one. It starts the tasks, sees their ends, restarts what `restarts` says, ends what the
wishes say, and writes down every change. When nothing is left to run it ends. It knows only the run's folder; killed at
any point, the next one continues from there, with the tasks that still run.

It imports the standard library and the pure core only, so that a job starts quickly. Not here: actions on one task
(`task`), and who starts supervisors (`engine`).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from yardmaster.engines.supervision import ports
from yardmaster.engines.supervision.endings import Ending, exit_code_of
from yardmaster.engines.supervision.facts import Facts, Order, Others, Task, Wishes, task_of
from yardmaster.engines.supervision.folder import Layout, RunFolder
from yardmaster.engines.supervision.journal import Journal
from yardmaster.engines.supervision.processes import descendants, send_signal, table
from yardmaster.engines.supervision.task import Stage, SupervisedTask
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import TaskPhase
from yardmaster.lifecycle.restarts import Restart, after_exit, restart_delay, tasks_to_restart

_SOON = 0.01
_POLL = 0.1
_LONGEST_WAIT = 1.0
_WATCH_SHARE = 100
"""Looking at the memory may cost one part in this many of a processor."""
_PORT_PATIENCE = 10.0
_PR_SET_CHILD_SUBREAPER = 36


class Supervisor:
    """Looks after the run in `folder`, which must hold an order, until nothing is left to run."""

    def __init__(self, folder: RunFolder, order: Order) -> None:
        rows = table()
        self.folder, self.order = folder, order
        self.tasks = {one: SupervisedTask(folder, order, *one, rows) for one in order.tasks()}
        self._others = Others()
        self._layout = Layout(folder.path.parent.parent)
        self._journal = Journal(self._layout.journal)
        self._grace = order.spec.time_to_restart.total_seconds()
        self._noted: dict[Task, Facts] = {one: task.facts for one, task in self.tasks.items()}
        self._watch_at = 0.0
        self._deaf, self._bell = os.pipe()
        for end in (self._deaf, self._bell):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(self._bell, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._wake = folder.listen()

    def run(self) -> None:
        """Until every task has ended and all of it is written down, or the run was removed."""
        while self.folder.exists():
            try:
                wait = self.step(time.time())
            except Exception:  # noqa: BLE001 - the top of the loop: a run must not stay without supervision
                say(traceback.format_exc())
                wait = _LONGEST_WAIT
            if wait is None:
                break
            self._sleep(wait)
        self._end_orphans()

    def step(self, now: float) -> float | None:
        """Everything that is due now. Returns how many seconds nothing will be, or None when all is over."""
        self._reap()
        wishes = self.folder.read_wishes()
        self._obey(wishes, now)
        self._hear(now)
        self._clear(wishes, now)
        self._start_due(now)
        self._watch(now)
        self._publish()
        if all(task.stage is Stage.ENDED and not task.is_dirty for task in self.tasks.values()):
            return None
        return max(0.0, min(self._waits(now)))

    # --- what has happened -------------------------------------------------------------------------------------------

    def _reap(self) -> None:
        """Take note of every process that has ended."""
        by_pid = {task.facts.leader.pid: task for task in self._in(Stage.RUNNING) if task.facts.leader is not None}
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if pid == 0:
                    break
                task = by_pid.get(pid)
                if task is not None and task.is_child:
                    task.first_process_ended(exit_code_of(status), usage.ru_maxrss << 10)
        for task in self._in(Stage.RUNNING):
            leader = task.facts.leader
            if not task.is_child and (leader is None or not leader.is_alive()):
                task.first_process_ended(None)

    def _obey(self, wishes: Wishes, now: float) -> None:
        """End the tasks of the roles that are to end, and those that an earlier supervisor had recalled."""
        for task in self.tasks.values():
            if task.facts.recalled and task.stage is Stage.RUNNING and task.kill_at is None:
                task.end_gently(now + self._grace)
            kill_at = wishes.kill_at.get(task.role)
            if kill_at is None:
                continue
            if task.stage is Stage.RUNNING:
                task.end_gently(kill_at)
            elif task.stage is Stage.WAITING:
                self._conclude(task, TaskPhase.RELEASED, Ending(task.facts.state.exit_code), now)

    def _hear(self, now: float) -> None:
        """Of a run on several machines: take note of what has come of the others, and end the tasks here where the
        whole cluster starts again because of one elsewhere."""
        if not self.order.is_shared:
            return
        self._others = self.folder.read_others()
        for one in self._of_cluster():
            if self.tasks[one].facts.generation < self._others.generation:
                self.tasks[one].recall(now + self._grace, now, self._others.generation)

    def _clear(self, wishes: Wishes, now: float) -> None:
        """Kill what is overdue and what ended tasks left behind; decide what follows where nothing is left."""
        overdue = [task for task in self._in(Stage.RUNNING) if task.kill_at is not None and now >= task.kill_at]
        clearing = self._in(Stage.CLEARING)
        if not overdue and not clearing:
            return
        rows = table()
        for task in overdue:
            task.kill(rows)
        for task in clearing:
            is_clear = task.clear(rows, now)
            if is_clear or task.is_overdue(now):
                self._decide(task, is_clear, wishes, now)

    def _decide(self, task: SupervisedTask, is_clear: bool, wishes: Wishes, now: float) -> None:
        """What follows the end of one task. It restarts only when nothing of it is left."""
        ending = task.ending()
        # What ended well before it was asked to end, has ended well.
        if task.role in wishes.kill_at and (task.kill_at is not None or ending.exit_code != 0):
            return self._conclude(task, TaskPhase.RELEASED, Ending(ending.exit_code), now)
        # What was recalled may have answered that with exit 0: its work need not be done.
        if task.facts.recalled:
            return task.restart_at(task.facts.start_at, ending) if is_clear else None
        if ending.exit_code == 0:
            return self._conclude(task, TaskPhase.SUCCEEDED, ending, now)
        spent, spec = self._spent(), self.order.spec
        succeeded = self._succeeded()
        restart = after_exit(spec, task.role, task.index, ending.exit_code, ending.reason, spent, succeeded)
        if restart is Restart.NONE_FAILED:
            return self._conclude(task, TaskPhase.FAILED, _last(ending, spent), now)
        if not is_clear:
            return None
        return self._restart(task, restart, ending, now + restart_delay(spent).total_seconds(), now)

    def _restart(self, task: SupervisedTask, restart: Restart, ending: Ending, start_at: float, now: float) -> None:
        """Have the task start again, and with it those that cannot continue without it."""
        is_all = restart is Restart.CLUSTER
        generation = self._generation()
        if is_all and task.facts.generation == generation:
            generation += 1
        for one in self._of_cluster() if is_all else []:
            if self.tasks[one] is not task:
                self.tasks[one].recall(now + self._grace, start_at, generation)
        # Written last: a supervisor that dies before this one decides again, and the same.
        self._publish()
        # One restart of all is spent by all tasks together, on whichever machines they are: they count generations.
        task.restart_at(start_at, ending, spends=not is_all, generation=generation, is_own=True)

    def _of_cluster(self) -> list[Task]:
        """The tasks here that start again with the whole cluster."""
        every = tasks_to_restart(self.order.spec, Restart.CLUSTER, Role.WORKER, 0, self._succeeded())
        return [one for one in every if one in self.tasks and self.tasks[one].stage is not Stage.ENDED]

    def _succeeded(self) -> list[Task]:
        """The tasks that have ended well so far, here and elsewhere."""
        here = [one for one, task in self.tasks.items() if task.facts.state.phase is TaskPhase.SUCCEEDED]
        return here + [task_of(name) for name in self._others.succeeded]

    def _spent(self) -> int:
        """How many of the job's restarts were used."""
        return sum(one.facts.spent for one in self.tasks.values()) + self._others.spent + self._generation()

    def _generation(self) -> int:
        """How often the whole cluster was started again, as far as is known here."""
        return max(self._others.generation, *(task.facts.generation for task in self.tasks.values()))

    def _conclude(self, task: SupervisedTask, phase: TaskPhase, ending: Ending, now: float) -> None:
        task.conclude(phase, ending, now)
        with contextlib.suppress(OSError):  # freed again when the run is cleaned up
            self._layout.gpus.free(self.folder.path.name, self.order.gpus.get(task.name, ()))

    # --- what is to be done ------------------------------------------------------------------------------------------

    def _start_due(self, now: float) -> None:
        """Start what waits and is due. While some of the cluster is still being recalled, nothing starts: the old and
        the new incarnation would find each other."""
        if any(task.facts.recalled for task in self.tasks.values()):
            return
        for task in self._in(Stage.WAITING):
            if now < task.facts.start_at or not self._has_its_port(task, now):
                continue
            if self.order.is_shared and task.facts.generation > self._others.cleared:
                continue  # elsewhere some of the old incarnation may still run
            try:
                task.start(now)
            except OSError as error:
                if str(error) != task.facts.state.message:
                    say(f"{task.name} could not be started: {error}")
                task.put_off(now + _LONGEST_WAIT, str(error))

    def _has_its_port(self, task: SupervisedTask, now: float) -> bool:
        """Whether its port is free again. After a while it is started all the same: its own log says it best."""
        port = self.order.ports.get(task.name)
        restarted = task.facts.state.restarts > 0
        return port is None or now >= task.facts.start_at + _PORT_PATIENCE or ports.is_free(port, again=restarted)

    def _watch(self, now: float) -> None:
        """See that no task takes more memory than it asked for; more often when one comes near."""
        if now < self._watch_at:
            return
        begun = time.thread_time()  # what it took of a processor: on a busy machine most of the time is others'
        rows = table(with_marks=False)
        fullest = max([task.watch_memory(rows, now + self._grace) for task in self.tasks.values()], default=0.0)
        for task in self.tasks.values():
            task.bound_output()
        cost = time.thread_time() - begun
        self._watch_at = now + max(0.2 if fullest > 0.7 else _LONGEST_WAIT, cost * _WATCH_SHARE)

    def _publish(self) -> None:
        """Write down what has changed, and say that something has."""
        changed = False
        for one, task in self.tasks.items():
            if task.save() and _news(task.facts) != _news(self._noted[one]):
                self._noted[one] = task.facts
                changed = True
        if changed:
            with contextlib.suppress(OSError):  # an event, not a fact
                self._journal.note(self.order.key)

    # --- waiting -----------------------------------------------------------------------------------------------------

    def _waits(self, now: float) -> Iterable[float]:
        yield _LONGEST_WAIT
        if self._in(Stage.RUNNING):
            yield self._watch_at - now
        for task in self.tasks.values():
            if task.stage is Stage.CLEARING:
                yield _SOON
            elif task.stage is Stage.RUNNING and task.kill_at is not None:
                yield max(_SOON, task.kill_at - now)
            elif task.stage is Stage.RUNNING and not task.is_child:
                yield _POLL
            elif task.stage is Stage.WAITING:
                yield max(_POLL, task.facts.start_at - now)

    def _sleep(self, seconds: float) -> None:
        """Wait until then, or until a child ends or the portal asks for something."""
        ready, _, _ = select.select([self._deaf, self._wake], [], [], seconds)
        for descriptor in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(descriptor, 4096)

    def _in(self, stage: Stage) -> list[SupervisedTask]:
        return [task for task in self.tasks.values() if task.stage is stage]

    def _end_orphans(self) -> None:
        """Kill what escaped from its task by every means but one: we are the reaper, hence its parent."""
        rows = table(with_marks=False)
        for pid in descendants(rows, [os.getpid()]) - {os.getpid()}:
            send_signal(pid, signal.SIGKILL)


def _last(ending: Ending, spent: int) -> Ending:
    """Where the script merely failed again, that it was tried again is the better news."""
    again = spent > 0 and ending.reason == "ScriptFailed"
    return Ending(ending.exit_code, "RestartsSpent", ending.message) if again else ending


def _news(facts: Facts) -> tuple[object, ...]:
    """What others want to hear of at once."""
    state = facts.state
    return state.phase, state.restarts, state.reason, state.message


def say(text: str) -> None:
    """A line for the operator, in the run's supervisor.log. A full disk is no reason to stop."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {text.rstrip()}\n")
        sys.stderr.flush()


def become_reaper() -> None:
    """Have orphans among our descendants given to us, not to the machine's first process. Without it nothing fails,
    and only what hides best is missed."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def supervise(path: Path, report: int) -> int:
    """The detached process. Says through `report` when it is in charge, or that another process is."""
    folder = RunFolder(path)
    lock = folder.take_lock()
    order = folder.read_order() if lock is not None else None
    if order is None:  # another supervisor has it, or it was removed meanwhile
        os.write(report, b"-")
        return 0
    os.write(report, b"+")
    os.close(report)
    become_reaper()
    Supervisor(folder, order).run()
    return 0


def main(path: Path) -> int:
    """Fork, let the child supervise, and end as soon as it is in charge: 0. It failed before that: 1."""
    inside, outside = os.pipe()
    if os.fork():
        os.close(outside)
        return 0 if os.read(inside, 1) else 1
    os.close(inside)
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    return supervise(path, outside)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))

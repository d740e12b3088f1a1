"""Start one task's first process: its own session, a clean environment, its output in a file, its limits on.

The process waits at a gate before it becomes the command, so that who started it can first write down that it exists.
If that one dies before it opens the gate, the process ends without having become anything. Not here: when to start.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from yardmaster.engines.supervision import scratch
from yardmaster.engines.supervision.facts import Order, task_name
from yardmaster.engines.supervision.folder import RunFolder
from yardmaster.job.spec import Role

_OOM_SCORE = "500"
"""Where memory runs out for the whole machine, the kernel takes a task before it takes the portal."""


@dataclass(frozen=True)
class Waiting:
    """A process at its gate."""

    pid: int
    gate: int

    def go(self) -> None:
        """Let it become the command."""
        with contextlib.suppress(BrokenPipeError):  # killed meanwhile: its exit tells
            os.write(self.gate, b"!")
        os.close(self.gate)


def task_environment(order: Order, folder: RunFolder, role: Role, index: int, restart: int) -> dict[str, str]:
    """All variables of a task: the order's own, the runner's, and its share of processors and GPUs."""
    threads = str(max(1, math.ceil(order.spec.roles[role].resources.cpu)))
    return {
        "OMP_NUM_THREADS": threads,
        "TF_NUM_INTRAOP_THREADS": threads,
        **order.environment,
        **scratch.variables(folder, role, index),
        # Without GPUs of its own a task must not take everybody's: TensorFlow grabs all that it sees.
        "CUDA_VISIBLE_DEVICES": ",".join(order.gpus.get(task_name(role, index), ())) or "-1",
        "YARDMASTER_URL": order.portal_url,
        "YARDMASTER_TOKEN_FILE": str(folder.token_file),
        "YARDMASTER_ROLE": role.value,
        "YARDMASTER_INDEX": str(index),
        "YARDMASTER_CLUSTER": json.dumps(order.cluster()),
        "YARDMASTER_WORK_DIR": str(folder.work(role, index)),
        "YARDMASTER_LOG_DIR": str(folder.path / "log"),
        "YARDMASTER_CACHE_DIR": str(folder.path / "cache"),
        "YARDMASTER_RESTART": str(restart),
        "YARDMASTER_OWN_PYTHON": "1",
        "YARDMASTER_NUDGE_FILE": str(folder.nudge_file(role, index)),
    }


def mark(folder: RunFolder, role: Role, index: int) -> bytes:
    """The mark that every process of this task bears in its environment, and no other."""
    return os.fsencode(folder.work(role, index))


def spawn(
    command: Sequence[str], environment: Mapping[str, str], work: Path, output: Path, control_group: Path | None
) -> Waiting:
    """Fork a process that will run `command` in `work`. Raises `OSError` where that cannot be. The caller must be
    single-threaded, and must call `go`."""
    ours, theirs = os.pipe()
    descriptor = os.open(output, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        pid = os.fork()
        if pid == 0:
            _become(command, environment, work, descriptor, (ours, theirs), control_group)
    except OSError:
        os.close(theirs)
        raise
    finally:
        os.close(ours)
        os.close(descriptor)
    return Waiting(pid, theirs)


def _become(
    command: Sequence[str],
    environment: Mapping[str, str],
    work: Path,
    output: int,
    gate: tuple[int, int],
    control_group: Path | None,
) -> NoReturn:
    """In the child. Leaves only by becoming the command or by `_exit`."""
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        os.close(gate[1])
        if not os.read(gate[0], 1):
            os._exit(125)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(work)
        _be_taken_first()
        if control_group is not None:
            (control_group / "cgroup.procs").write_text("0")
        os.execvpe(command[0], list(command), dict(environment))
    except BaseException as error:  # noqa: BLE001 - nothing of ours may run on in the child
        # Told as the runner would tell it; no such file, no permission, no memory.
        with contextlib.suppress(OSError):
            note = {"exit_code": 127, "reason": "StartFailed", "message": f"{command[0]}: {error}"}
            (work / "exit.json").write_text(json.dumps(note))
        os._exit(127)


def _be_taken_first() -> None:
    with contextlib.suppress(OSError, ValueError):
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)
        # A crash in native code must not write all of a task's memory to the disk.
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))

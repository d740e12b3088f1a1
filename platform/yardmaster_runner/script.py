"""The script as a process: started in a session of its own, signalled as a group, and left with no survivors.

Whatever the script starts dies with it: children that linger in its group, and those that left the group but, since
the runner adopts orphans, not its sight.
"""

from __future__ import annotations

import contextlib
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Set

from yardmaster_runner import seccomp
from yardmaster_runner.narrower import Listening, Narrower
from yardmaster_runner.processes import IS_LINUX, descendants

TERM_WAIT = 1.0
KILL_WAIT = 2.0

GUARD = (pkgutil.get_data("yardmaster_runner", "guard.py") or b"").decode()
"""The program between us and the script, as text: the runner may be one file."""


class Script:
    """A running script. All methods but `wait` and `end_survivors` may be called from any thread."""

    spared: Callable[[], Set[int]] = set
    """Processes below the runner that are none of the script's; each with all below it."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.pid = process.pid
        self._process = process
        self._has_ended = False

    @classmethod
    def start(
        cls,
        command: List[str],
        environment: Dict[str, str],
        directory: str,
        output: int,
        narrowed: Optional[Listening] = None,
    ) -> "Script":
        """Start `command` with stdout and stderr going into `output`. To be called from the main thread: the kernel
        ties the script's life to the thread that started it. With `narrowed` it can listen on loopback alone, and that
        learns what it was refused. Raises `OSError`."""
        streams: Dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": output}
        process = start_guarded(command, narrowed, cwd=directory, env=environment, start_new_session=True, **streams)
        return cls(process)

    def send(self, number: int) -> None:
        """Signal the script's process group. Without effect once the script has ended."""
        if not self._has_ended:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)

    def kill(self) -> None:
        """SIGKILL to the group and to processes that left it."""
        self.send(signal.SIGKILL)
        _signal_all(self._survivors(), signal.SIGKILL)

    def wait(self) -> int:
        """Block until the script itself has ended; its exit code, 128 + N for signal N. Reaps adopted orphans too."""
        while True:
            pid, status = os.waitpid(-1, 0)
            if pid == self.pid:
                self._has_ended = True
                self._process.returncode = 0  # reaped here: Popen must not wait for a pid that may be another process's
                return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

    def end_survivors(self) -> int:
        """After `wait`: SIGTERM, a second, SIGKILL to whatever the script left behind. How many there were."""
        left = self._survivors()
        if not left and not _group_exists(self.pid):
            return 0
        for number, patience in ((signal.SIGTERM, TERM_WAIT), (signal.SIGKILL, KILL_WAIT)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)
            _signal_all(self._outside_of_the_group(), number)
            until = time.monotonic() + patience
            while time.monotonic() < until:
                _reap()
                if not self._survivors() and not _group_exists(self.pid):
                    return max(1, len(left))
                time.sleep(0.02)
        return max(1, len(left))

    def _outside_of_the_group(self) -> Set[int]:
        """Those that made a group of their own: no process is to be told twice."""
        found = set()
        for pid in self._survivors():
            with contextlib.suppress(ProcessLookupError):
                if os.getpgid(pid) != self.pid:
                    found.add(pid)
        return found

    def _survivors(self) -> Set[int]:
        spared = {self.pid, *self.spared()}
        found = set()
        for one in descendants(os.getpid()):  # parents come before children
            if one.parent in spared and one.parent != self.pid:
                spared.add(one.pid)
            if not one.is_zombie and one.pid not in spared:
                found.add(one.pid)
        return found


def start_guarded(command: List[str], narrowed: Optional[Listening], **how: Any) -> "subprocess.Popen[bytes]":
    """Start `command` behind the guard, and, with `narrowed`, behind its filter; `how` is `Popen`'s. It lives no longer
    than the thread that calls. Raises `OSError`."""
    ours: Optional[socket.socket] = None
    theirs: Optional[socket.socket] = None
    filtered = ["-", "0", ""]
    if narrowed is not None:
        machine = seccomp.this_machine()
        ours, theirs = socket.socketpair()
        filtered = [str(theirs.fileno()), str(machine.seccomp), seccomp.filter_for(machine).hex()]
    if IS_LINUX:
        command = [sys.executable, "-I", "-S", "-c", GUARD, str(os.getpid()), *filtered, *command]
    try:
        passed = [theirs.fileno()] if theirs is not None else []
        process: "subprocess.Popen[bytes]" = subprocess.Popen(command, pass_fds=passed, **how)
    except OSError:
        if ours is not None:
            ours.close()
        raise
    finally:
        if theirs is not None:
            theirs.close()
    if ours is not None and narrowed is not None:
        Narrower(ours, narrowed).start()
    return process


def _signal_all(pids: Set[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _group_exists(group: int) -> bool:
    """Whether the group has members, zombies included: those vanish when their parent, or we, reap them."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True

"""The process between the portal and one shell in a task: a WebSocket on one side, a terminal (pty) on the other.

A process of its own, started by `shells`: a program that prints without end must not slow the runner, and what is
started from the shell is found below it and ends with it. It reads its orders from its standard input, and later, on a
line, why it is to end. When the runner is gone, so is it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Tuple

from yardmaster_runner.exits import note
from yardmaster_runner.processes import adopt_orphans, descendants
from yardmaster_runner.shell_protocol import LONGEST_MESSAGE, WINDOW, amount_read, cost, is_size, read_json
from yardmaster_runner.websocket import Closed, WebSocket, connect

CONNECT_PATIENCE = 20.0
PING_EVERY = 20.0
HEARTBEAT_TIMEOUT = 75.0
"""Seconds without a heartbeat of the portal, which pings: then it is gone."""
LAST_WORDS = 3.0
HANG_UP = 1.0
PTY_CHUNK = 4096
CANNOT_START = 127
SIZES = struct.Struct("HHHH")
SHELLS = ("/bin/bash", "/usr/bin/bash", "/bin/sh")
TERM = "xterm-256color"
DEFAULTS = (
    signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD,
    signal.SIGTSTP,
)  # fmt: skip
"""Signals that mean in the shell what they mean to any program, whatever who started the runner made of them."""


def main() -> int:
    orders = _orders()
    adopt_orphans()
    try:
        socket = connect(orders["url"], {"Authorization": "Bearer " + orders["token"]}, CONNECT_PATIENCE)
    except Closed as error:
        note("the terminal %s was not opened: %s" % (orders["url"], error))
        return 1
    return ShellHost(socket, orders).live()


def _orders() -> Dict[str, Any]:
    """What `shells` wrote: a length on 8 bytes, and JSON."""
    size = int.from_bytes(_exactly(8), "big")
    return dict(json.loads(_exactly(size)))


def _exactly(size: int) -> bytes:
    found = b""
    while len(found) < size:
        data = os.read(0, size - len(found))
        if not data:
            sys.exit(1)
        found += data
    return found


class ShellHost:
    """One terminal, from its begin to its end."""

    def __init__(self, socket: WebSocket, orders: Dict[str, Any]) -> None:
        self._socket = socket
        self._wake, wakes = os.pipe()
        for one in (self._wake, wakes):
            os.set_blocking(one, False)
        signal.set_wakeup_fd(wakes)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        self._shell, self._pty = _start(orders)
        os.set_blocking(self._pty, False)
        self._typed: Deque[bytes] = deque()
        """What the terminal has not taken yet; of the first of it, `_taken` bytes."""
        self._taken = 0
        self._unread = 0
        """What the other side has not read of what was sent."""
        self._why = ""
        self._exit_code: Optional[int] = None
        self._pinged_at = time.monotonic()
        self._is_drained = False

    def live(self) -> int:
        """Until the shell has ended, the runner wants it to end, or the portal is gone."""
        try:
            while not self._is_over():
                self._step()
            self._say_how_it_ended()
        except Closed:
            pass
        finally:
            self._end_all()
            self._socket.close()
        return 0

    def _is_over(self) -> bool:
        return bool(self._why) or (self._exit_code is not None and self._is_drained)

    def _step(self) -> None:
        may_print = self._unread < WINDOW and self._socket.unsent < WINDOW
        readers: List[Any] = [0, self._wake, self._socket]
        readers += [self._pty] if may_print and not self._is_drained else []
        writers: List[Any] = [self._socket] if self._socket.unsent else []
        writers += [self._pty] if self._typed else []
        # What has ended may leave others that keep the terminal open: it is then over when nothing more is printed.
        ready, writable, _ = select.select(readers, writers, [], 0.2 if self._exit_code is not None else PING_EVERY)
        if 0 in ready:
            self._hear_runner()
        if self._wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake, 512)
            self._reap()
        if self._socket in ready:
            self._hear_portal()
        if self._pty in ready:
            self._pass_on()
        elif self._exit_code is not None and may_print:
            self._is_drained = True
        if self._pty in writable:
            self._type()
        self._keep_alive()
        self._socket.flush()

    def _hear_runner(self) -> None:
        said = os.read(0, 4096)
        self._why = said.decode("utf-8", "replace").strip() or "The task has ended."

    def _hear_portal(self) -> None:
        for message in self._socket.receive():
            value = {} if isinstance(message, bytes) else read_json(message)
            self._unread = max(0, self._unread - amount_read(value))
            if isinstance(message, bytes):
                self._typed.append(message)
            elif is_size(value):
                self._resize(value["rows"], value["columns"])
                self._say({"read": cost(message)})
        if sum(map(len, self._typed)) > WINDOW + LONGEST_MESSAGE:
            raise Closed("more was typed than was read")
        self._type()

    def _type(self) -> None:
        """Give the terminal what it takes, and have the other side send more."""
        with contextlib.suppress(OSError):  # it takes nothing now, or has ended
            while self._typed:
                whole = self._typed[0]
                self._taken += os.write(self._pty, whole[self._taken : self._taken + 4096])
                if self._taken == len(whole):
                    self._typed.popleft()
                    self._taken = 0
                    self._say({"read": cost(whole)})

    def _pass_on(self) -> None:
        """What is printed by now, in one message: the kernel gives 4 KiB of it at a time."""
        printed = b""
        try:
            while len(printed) <= LONGEST_MESSAGE - PTY_CHUNK and not self._is_drained:
                more = os.read(self._pty, PTY_CHUNK)
                self._is_drained = not more
                printed += more
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            self._is_drained = True  # the terminal has no other end any more
        if printed:
            self._unread += cost(printed)
            self._socket.send(printed)

    def _resize(self, rows: int, columns: int) -> None:
        with contextlib.suppress(OSError):
            fcntl.ioctl(self._pty, termios.TIOCSWINSZ, SIZES.pack(rows, columns, 0, 0))

    def _say(self, value: Dict[str, Any]) -> None:
        self._socket.send(json.dumps(value))

    def _keep_alive(self) -> None:
        now = time.monotonic()
        if now - self._socket.received_at > HEARTBEAT_TIMEOUT:
            raise Closed("the portal is gone")
        if now - self._pinged_at >= PING_EVERY:
            self._pinged_at = now
            self._socket.ping()

    def _reap(self) -> None:
        """What ended below us, the shell among it."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                if pid == self._shell:
                    self._exit_code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

    def _say_how_it_ended(self) -> None:
        self._say({"ended": self._why or "The shell has ended.", "exit_code": self._exit_code})
        self._socket.say_goodbye()
        until = time.monotonic() + LAST_WORDS
        while self._socket.unsent and time.monotonic() < until:
            select.select([], [self._socket], [], 0.1)
            self._socket.flush()

    def _end_all(self) -> None:
        """Hang up, and after a moment kill what is left of all that the shell started."""
        os.close(self._pty)  # the kernel tells the session that its terminal is gone
        until = time.monotonic() + HANG_UP
        while True:
            self._reap()
            left = [one.pid for one in descendants(os.getpid()) if not one.is_zombie]
            if not left:
                return
            for pid in left if time.monotonic() > until else ():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > until + HANG_UP:
                return
            time.sleep(0.02)


def _start(orders: Dict[str, Any]) -> Tuple[int, int]:
    """The shell's pid, and our end of its terminal."""
    pid, terminal = pty.fork()
    if pid:
        return pid, terminal
    try:
        for number in DEFAULTS:
            signal.signal(number, signal.SIG_DFL)
        os.chdir(orders["directory"])
        shell = next((one for one in SHELLS if os.access(one, os.X_OK)), SHELLS[-1])
        os.execve(shell, [os.path.basename(shell), "-i"], {**orders["environment"], "SHELL": shell, "TERM": TERM})
    except BaseException as error:  # noqa: BLE001 - this is a fork: it must not become a second host
        os.write(2, ("yardmaster: no shell can be started: %s\r\n" % error).encode())
    os._exit(CANNOT_START)

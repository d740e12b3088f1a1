"""The process between the portal and one shell in a task: a WebSocket on one side, a terminal (pty) on the other. Where
one command is to run, it has pipes in the place of the terminal (`command_host`).

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
from typing import Any, Deque, Dict, List, Optional, Tuple, Type

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
    return live_as(ShellHost)


def live_as(kind: Type[ShellHost]) -> int:
    """Be the host that `shells` has ordered; the exit code of the process."""
    orders = _orders()
    adopt_orphans()
    try:
        socket = connect(orders["url"], {"Authorization": "Bearer " + orders["token"]}, CONNECT_PATIENCE)
    except Closed as error:
        note("the terminal %s was not opened: %s" % (orders["url"], error))
        return 1
    return kind(socket, orders).live()


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

    ended = "The shell has ended."

    def __init__(self, socket: WebSocket, orders: Dict[str, Any]) -> None:
        self._socket = socket
        self._wake, wakes = os.pipe()
        for one in (self._wake, wakes):
            os.set_blocking(one, False)
        signal.set_wakeup_fd(wakes)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        self._orders = orders
        self._shell = -1
        self._input = -1
        """What is typed goes there; -1: nowhere."""
        self._outputs: Dict[int, bytes] = {}
        """What is printed comes from there until it ends, and is sent with this before it."""
        self._typed: Deque[bytes] = deque()
        """What the terminal has not taken yet; of the first of it, `_taken` bytes."""
        self._taken = 0
        self._unread = 0
        """What the other side has not read of what was sent."""
        self._why = ""
        self._exit_code: Optional[int] = None
        self._pinged_at = time.monotonic()
        self.begin()

    def begin(self) -> None:
        """Start what there is to start at once."""
        self._shell, terminal = _start(self._orders)
        os.set_blocking(terminal, False)
        self._input, self._outputs = terminal, {terminal: b""}

    def live(self) -> int:
        """Until the shell has ended, the runner wants it to end, or the portal is gone."""
        try:
            self._hear_portal()  # what came with the answer that opened the connection is not seen by `select`
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
        return bool(self._why) or (self._exit_code is not None and not self._outputs)

    def _step(self) -> None:
        may_print = self._unread < WINDOW and self._socket.unsent < WINDOW
        readers: List[Any] = [0, self._wake, self._socket]
        outputs = list(self._outputs) if may_print else []
        readers += outputs
        writers: List[Any] = [self._socket] if self._socket.unsent else []
        writers += [self._input] if self._typed and self._input >= 0 else []
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
        for output in outputs:
            if output in ready:
                self._pass_on(output)
            elif self._exit_code is not None:
                self.end_output(output)
        if self._input in writable:
            self.type()
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
            elif not amount_read(value):
                self.hear(value)
                self._say({"read": cost(message)})
        if sum(map(len, self._typed)) > WINDOW + LONGEST_MESSAGE:
            raise Closed("more was typed than was read")
        self.type()

    def hear(self, value: Dict[str, Any]) -> None:
        """What the user says beside bytes."""
        if is_size(value):
            with contextlib.suppress(OSError):
                size = SIZES.pack(value["rows"], value["columns"], 0, 0)
                fcntl.ioctl(self._input, termios.TIOCSWINSZ, size)

    def type(self) -> None:
        """Give the terminal what it takes, and have the other side send more."""
        with contextlib.suppress(OSError):  # it takes nothing now, or has ended
            while self._typed:
                whole = self._typed[0]
                self._taken += self.take(whole[self._taken : self._taken + 4096])
                if self._taken == len(whole):
                    self._typed.popleft()
                    self._taken = 0
                    self._say({"read": cost(whole)})

    def take(self, typed: bytes) -> int:
        """Write it, or some of it: how much. Raises `OSError`."""
        return os.write(self._input, typed)

    def _pass_on(self, output: int) -> None:
        """What is printed by now, in one message: the kernel gives 4 KiB of it at a time."""
        printed = mark = self._outputs[output]
        try:
            while len(printed) <= LONGEST_MESSAGE - PTY_CHUNK:
                more = os.read(output, PTY_CHUNK)
                printed += more
                if not more:
                    self.end_output(output)
                    break
        except BlockingIOError:
            pass
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            self.end_output(output)  # the terminal has no other end any more
        if printed != mark:
            self.print(printed)

    def print(self, printed: bytes) -> None:
        """Send it. It counts until it is read."""
        self._unread += cost(printed)
        self._socket.send(printed)

    def end_output(self, output: int) -> None:
        """Nothing comes from there any more."""
        self._outputs.pop(output, None)

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

    def hang_up(self) -> None:
        """Have what runs end by itself."""
        os.close(self._input)  # the kernel tells the session that its terminal is gone

    def _say_how_it_ended(self) -> None:
        self._say({"ended": self._why or self.ended, "exit_code": self._exit_code})
        self._socket.say_goodbye()
        until = time.monotonic() + LAST_WORDS
        while self._socket.unsent and time.monotonic() < until:
            select.select([], [self._socket], [], 0.1)
            self._socket.flush()
        # What is left unread would make the end a reset, which takes the last words with it.
        with contextlib.suppress(Closed):
            while time.monotonic() < until:
                if select.select([self._socket], [], [], 0.1)[0]:
                    self._socket.receive()

    def _end_all(self) -> None:
        """Hang up, and after a moment kill what is left of all that the shell started."""
        self.hang_up()
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


def as_of_any_program() -> None:
    """In a process that is to become another program."""
    for number in DEFAULTS:
        signal.signal(number, signal.SIG_DFL)


def _start(orders: Dict[str, Any]) -> Tuple[int, int]:
    """The shell's pid, and our end of its terminal."""
    pid, terminal = pty.fork()
    if pid:
        return pid, terminal
    try:
        as_of_any_program()
        os.chdir(orders["directory"])
        shell = next((one for one in SHELLS if os.access(one, os.X_OK)), SHELLS[-1])
        os.execve(shell, [os.path.basename(shell), "-i"], {**orders["environment"], "SHELL": shell, "TERM": TERM})
    except BaseException as error:  # noqa: BLE001 - this is a fork: it must not become a second host
        os.write(2, ("yardmaster: no shell can be started: %s\r\n" % error).encode())
    os._exit(CANNOT_START)

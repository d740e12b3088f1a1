"""Python inside a portal's settings, scripts and the portal's own processes, without the two seconds that each would
import for: they are forked from processes that have imported everything (`tests.real.fork_server`).
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.real.once import once

ROOT = Path(__file__).resolve().parents[2]
MANAGE = "import sys\nfrom django.core.management import execute_from_command_line\nexecute_from_command_line(sys.argv)"


class CannotFork(AssertionError):
    """Django does not start in this environment. The message is the traceback."""


class Fork:
    """A process that was forked; as much of `subprocess.Popen` as tests need."""

    def __init__(self, server: _Server, pid: int) -> None:
        self._server, self.pid = server, pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        if self.returncode is None:
            self.returncode = self._server.ended(self.pid)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code. Raises `subprocess.TimeoutExpired`."""
        deadline, pause = time.monotonic() + (timeout or float("inf")), 0.005
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("a fork", timeout or 0)
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
        return code

    def send_signal(self, number: int) -> None:
        """Nothing where it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Forks:
    """Forks of one process that has set up Django in `folder` and with `environment`. Raises `CannotFork`."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)
        self._here = {"folder": str(folder), "environment": self.environment}
        above, modules = _imported()
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = Fork(above, above.ask({**self._here, "modules": modules}, [theirs.fileno()]))
        self._server = _Server(ours)
        if problem := self._server.heard():
            self.close()
            raise CannotFork(problem)

    def start(self, command: Sequence[str], output: int) -> Fork:
        """Run `command`, which begins with this Python, with what it prints in this open file."""
        asked = {**self._here, "command": list(command)}
        return Fork(self._server, self._forked(asked, output, output))

    def run(self, code: str, arguments: list[str]) -> str:
        """What the code printed. `sys.argv` are the arguments. Raises AssertionError where it fails."""
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
            asked = {**self._here, "code": code, "arguments": arguments}
            status = Fork(self._server, self._forked(asked, out.fileno(), errors.fileno())).wait()
            for file in (out, errors):
                file.seek(0)
            assert status == 0, f"{status}: {errors.read()[-4000:]}"
            return out.read()

    def close(self) -> None:
        """Ends what still runs, too."""
        self._server.close()
        self._process.wait(20)

    def _forked(self, request: Mapping[str, Any], out: int, errors: int) -> int:
        with open(os.devnull) as nothing:
            return self._server.ask(request, [nothing.fileno(), out, errors])


class _Server:
    """The near end of a channel to one of the processes that fork."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._answers = channel.makefile("r")
        self._turn = threading.Lock()

    def ask(self, request: Mapping[str, Any], files: Sequence[int] = ()) -> Any:
        with self._turn:
            text = json.dumps(request).encode() + b"\n"
            sent = socket.send_fds(self._channel, [text], list(files)) if files else 0
            self._channel.sendall(text[sent:])
            return self.heard()

    def ended(self, pid: int) -> int | None:
        """The exit code of what it has forked; None while that runs."""
        code: int | None = self.ask({"ended": pid})
        return code

    def heard(self) -> Any:
        """The next answer."""
        line = self._answers.readline()
        if not line:
            raise AssertionError("The process that forks has ended.")
        return json.loads(line)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._channel.shutdown(socket.SHUT_RDWR)  # for all that hold this end
        self._answers.close()
        self._channel.close()


@functools.cache
def _imported() -> tuple[_Server, list[str]]:
    """The process of these tests that has imported what needs no settings, and what is to be imported with some."""
    modules = json.loads(once("modules.json", _write_modules).read_text())
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.real.fork_server", str(theirs.fileno())],
            cwd=ROOT, env=_plain(), stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()],
        )  # fmt: skip
    server = _Server(ours)
    server.ask({"modules": modules["without settings"]})

    @atexit.register
    def end() -> None:
        server.close()
        process.wait(20)

    return server, modules["with settings"]


def _write_modules(file: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="yardmaster-modules-") as home:
        told = {
            "DJANGO_SETTINGS_MODULE": "portal.settings",
            "YARDMASTER_HOME": home,
            "YARDMASTER_SECRET_KEY": "only-for-modules-" + "x" * 40,
        }
        command = [sys.executable, "-m", "tests.real.fork_server", "--modules", str(file)]
        done = subprocess.run(
            command, cwd=ROOT, env={**_plain(), **told}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-4000:]


def _plain() -> dict[str, str]:
    """The environment without any setting; with what Python and its C library read when they start."""
    settings = ("YARDMASTER_", "PYTEST_", "DJANGO_")
    base = {name: value for name, value in os.environ.items() if not name.startswith(settings)}
    return {**base, "PYTHONPATH": f"{ROOT / 'platform'}:{ROOT}", "PYTHONUNBUFFERED": "1", "MALLOC_ARENA_MAX": "2"}

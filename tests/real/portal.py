"""A real portal for tests: its own home, port and processes, with the commands that `make up` starts them with, each of
which can be killed. In a run of tests they are forks of what has imported Django (`tests.real.forks`); the tests of
`make up` itself (`tests.real.up`), and benchmarks, start them by exec.

Not here: what is tested with it. Start only the processes that a test needs: each costs seconds and memory.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pytest

from portal.env import socket_folder
from portal.up import home as portal_home
from portal.up.processes import Address, Process, broker, environment, portal
from tests.real.forks import MANAGE, CannotFork, Fork, Forks
from tests.real.migrated import migrate, migrated
from tests.real.once import RUN

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 60.0
LIGHT = ("valkey", "web")
WHOLE = ("valkey", "web", "worker", "beat", "conductor")
CHEAP = {"DJANGO_SETTINGS_MODULE": "tests.real.settings"}
"""Passwords that cost nothing."""
EXACT = {"DJANGO_SETTINGS_MODULE": "tests.real.settings_of_exact_counts"}
"""The same, for who counts what is let through."""
PORTS = range(11_000, 20_000, 2)
"""Below those that the system gives to programs that ask for any, and the local engine to tasks. Every other one: a
portal takes the next port for its sessions."""

_MAKE_USER = """
import json, sys
import django
django.setup()
from apps.accounts.models import User
from apps.accounts.services import token_create, user_create
name, staff = sys.argv[1], sys.argv[2] == "1"
user = User.objects.filter(username=name).first()
user = user or user_create(username=name, password="correct horse battery", is_staff=staff)
print(json.dumps(token_create(user=user, name="test", scopes=[], expires_in=None)[1]))
"""


@dataclass
class RealPortal:
    """A running portal. `environment` is what its processes were told."""

    home: Path
    url: str
    environment: dict[str, str]
    commands: dict[str, Process]
    running: dict[str, subprocess.Popen[bytes] | Fork] = field(default_factory=dict)
    _forks: list[Forks] = field(default_factory=list)
    """One for each environment that the portal has had: processes that run keep theirs."""

    def start(self, *names: str) -> None:
        """Start these processes, or start them again, all at once, and wait until each is ready."""
        for name in names:
            (self.home / "run" / f"{name}.ready").unlink(missing_ok=True)
            with (self.home / "log" / f"{name}.log").open("ab") as log:
                self.running[name] = self._spawn(self.commands[name].command, log)
        deadline = time.monotonic() + PATIENCE
        for name in names:
            while not self._is_ready(name):
                if self.running[name].poll() is not None or time.monotonic() > deadline:
                    raise AssertionError(f"{name} did not come up:\n{self.log_of(name)[-4000:]}")
                time.sleep(0.05)

    def start_stopped(self) -> None:
        """Start every process of a whole portal that does not run, whatever an earlier test did to it."""
        self.start(*[name for name in WHOLE if name not in self.running or self.running[name].poll() is not None])

    def kill(self, name: str, how: signal.Signals = signal.SIGKILL) -> None:
        """End one process and wait until it is gone."""
        process = self.running.pop(name)
        process.send_signal(how)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def stop(self) -> None:
        """End all, the message server last."""
        for name in sorted(self.running, key=WHOLE.index, reverse=True):
            self.kill(name, signal.SIGTERM)
        while self._forks:
            self._forks.pop().close()

    def manage(self, *arguments: str) -> str:
        """Run a management command; returns what it printed."""
        return self.script(MANAGE, *arguments)

    def script(self, code: str, *arguments: str) -> str:
        """Run Python inside the portal's settings, in a process of its own; returns what it printed."""
        return self._forks_of_now().run(code, ["manage.py", *arguments])

    def token_of(self, username: str, *, is_staff: bool = False) -> str:
        """A personal token of this user, who is made when there is none."""
        return str(json.loads(self.script(_MAKE_USER, username, "1" if is_staff else "0").splitlines()[-1]))

    def log_of(self, name: str) -> str:
        return (self.home / "log" / f"{name}.log").read_text(errors="replace")

    def processor_seconds(self, name: str) -> float:
        """What the process has used so far (Linux)."""
        fields = Path(f"/proc/{self.running[name].pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _spawn(self, command: Sequence[str], log: IO[bytes]) -> subprocess.Popen[bytes] | Fork:
        if command[0] == sys.executable and RUN in os.environ:
            with contextlib.suppress(CannotFork):  # it then says itself what is wrong with its settings
                return self._forks_of_now().start(command, log.fileno())
        return subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=log, stderr=log)

    def _forks_of_now(self) -> Forks:
        for forks in self._forks:
            if forks.environment == self.environment:
                return forks
        self._forks.append(Forks(ROOT, self.environment))
        return self._forks[-1]

    def _is_ready(self, name: str) -> bool:
        if name == "valkey":
            return _accepts(socket_folder(self.home) / "valkey.sock")
        if name != "web":
            return (self.home / "run" / f"{name}.ready").exists()
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=2) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


@contextlib.contextmanager
def real_portal(
    home: Path,
    names: Sequence[str] = LIGHT,
    settings: dict[str, str] | None = None,
    host: str = "127.0.0.1",
    tasks_host: str = "",
) -> Iterator[RealPortal]:
    """A portal in `home` with the processes `names`, stopped at the end. `settings` are environment variables, `host`
    is where it listens, `tasks_host` this machine's address where tasks reach it, if that is another one."""
    portal_home.prepare(home)
    address = Address(host, free_port(), free_port())
    base = {name: value for name, value in os.environ.items() if not name.startswith(("YARDMASTER_", "PYTEST_"))}
    told = {**environment(base, ROOT, home, address), **(settings or {})}
    if tasks_host:
        told["YARDMASTER_TASK_URL"] = f"http://{tasks_host}:{address.port}"
    folder = socket_folder(home)
    folder.mkdir(mode=0o700, exist_ok=True)
    processes = (broker(folder / "valkey.sock", home / "run"), *portal(address, home))
    running = RealPortal(home, address.url, told, {process.name: process for process in processes})
    try:
        _prepare_database(home, told)
        running.start(*names)
        yield running
    finally:
        running.stop()


def _prepare_database(home: Path, told: Mapping[str, str]) -> None:
    own = home / "portal.sqlite3"
    if "YARDMASTER_DATABASE_URL" in told or own.exists():
        migrate(told)
    else:
        shutil.copyfile(migrated(), own)


@pytest.fixture(scope="session")
def light_portal() -> Iterator[RealPortal]:
    """The web process and the message server, for all tests of a run: who kills a process starts it again."""
    with (
        tempfile.TemporaryDirectory(prefix="yardmaster-real-") as folder,
        real_portal(Path(folder), LIGHT, CHEAP) as portal,
    ):
        yield portal


@pytest.fixture(scope="module")
def whole_portal() -> Iterator[RealPortal]:
    """Every process, so that jobs run (local engine), for all tests of a module."""
    with (
        tempfile.TemporaryDirectory(prefix="yardmaster-real-") as folder,
        real_portal(Path(folder), WHOLE, CHEAP) as portal,
    ):
        yield portal


def free_port(host: str = "127.0.0.1") -> int:
    """A port of this address that was free a moment ago. It stays so until it is used: all workers and runs of tests on
    this machine take the next of `PORTS` in turn."""
    with Path(tempfile.gettempdir(), f"yardmaster-ports-of-tests-{os.getuid()}").open("a+") as last:
        fcntl.flock(last, fcntl.LOCK_EX)
        last.seek(0)
        given = int(last.read() or PORTS[-1])
        last_at = (given - PORTS.start) // PORTS.step
        after = (PORTS[(last_at + step) % len(PORTS)] for step in range(1, len(PORTS) + 1))
        port = next(one for one in after if _is_free(host, one) and _is_free(host, one + 1))
        last.truncate(0)
        last.write(str(port))
        return port


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


def _accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True

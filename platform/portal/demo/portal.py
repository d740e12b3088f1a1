"""The portal that the demonstration runs in: a child process of this one, and a way to sign in to it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

ROOT = Path(__file__).resolve().parents[3]


class PortalFailed(Exception):
    """The portal did not come up; what it printed has been shown."""


@dataclass(frozen=True)
class Access:
    """A way in: a token for programs, a one-time link for people."""

    token: str
    link: str


class RunningPortal:
    """`portal.up` as a child, ready when the block begins and stopped when it ends."""

    def __init__(self, port: int, host: str = "127.0.0.1", store: str = "folder") -> None:
        self.host, self.port = host, _free_port(host, port)
        self._workbench_port = _free_port(host, self.port + 1)
        self.url = f"http://{host}:{self.port}"
        self._store = store
        self._child: subprocess.Popen[str] | None = None

    def __enter__(self) -> RunningPortal:
        command = [sys.executable, "-m", "portal.up", "--host", self.host, "--port", str(self.port)]
        command += ["--workbench-port", str(self._workbench_port), "--store", self._store]
        # A session of its own, so that Ctrl-C reaches the demonstration first and it can say goodbye in order.
        self._child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True)
        assert self._child.stdout is not None
        try:
            for line in self._child.stdout:
                if "is ready at" in line:
                    return self
                print(line, end="")
        except BaseException:  # Ctrl-C while it starts: a portal of a session of its own would continue
            self._child.terminate()
            self._child.communicate(timeout=60)
            raise
        self._child.wait()
        raise PortalFailed

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._child is None:
            return
        self._child.send_signal(signal.SIGTERM)
        output, _ = self._child.communicate(timeout=60)
        print(*(line for line in output.splitlines() if "sign-in" not in line and "Ctrl-C" not in line), sep="\n")

    def wait(self) -> None:
        """Until the portal ends or Ctrl-C."""
        if self._child is not None:
            self._child.wait()

    def access(self) -> Access:
        """A token that ends after a day, and a one-time sign-in link, for the first administrator."""
        done = subprocess.run(
            [sys.executable, "manage.py", "access", "--name", "demonstration", "--hours", "24"],
            cwd=ROOT, env={**os.environ, "YARDMASTER_PUBLIC_URL": self.url}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        return Access(**json.loads(done.stdout.strip().splitlines()[-1]))


def _free_port(host: str, wanted: int) -> int:
    """`wanted`, else any free one: a demonstration must not fail because something else listens there."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise PortalFailed

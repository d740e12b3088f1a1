"""Whether running processes still have a heartbeat: the web process and the message server answer a probe, the others
touch a file.

The time without one is counted while this process itself runs, so that neither a machine that slept nor one that is too
busy to run the keeper makes a process look stale. Not here: ending and starting processes (`keeper`).
"""

from __future__ import annotations

import http.client
import socket
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from portal.up.processes import Process

LIMIT = 60.0
START_LIMITS = 5
"""A process that has had no heartbeat since its start has so many limits of time: it may have a lot to prepare."""
_LONGEST_STEP = 1.0
"""Seconds that one look may add to the time without a heartbeat: the keeper looks twice a second when it runs."""


@dataclass(frozen=True)
class Heartbeat:
    """The heartbeat of one process since its start. `mark` changes with each."""

    mark: int
    looked_at: float
    seconds: float = 0.0
    """Since the last one, or since the start."""
    has_begun: bool = False
    """There was a first one."""

    def after_look(self, mark: int, now: float) -> Heartbeat:
        """What is known once the process was looked at again, `now` on a clock that never goes back."""
        if mark != self.mark:
            return Heartbeat(mark, now, has_begun=True)
        step = min(max(now - self.looked_at, 0.0), _LONGEST_STEP)
        return replace(self, looked_at=now, seconds=self.seconds + step)

    def is_over(self, limit: float) -> bool:
        """Whether it has lasted too long."""
        return self.seconds >= (limit if self.has_begun else limit * START_LIMITS)


class Health:
    """The heartbeats of all processes of one keeper."""

    def __init__(self, limit: float = LIMIT) -> None:
        self.limit = limit
        self._heartbeats: dict[str, Heartbeat] = {}
        self._probes: dict[str, _Probe] = {}

    def begin(self, process: Process, now: float) -> None:
        """The process has just been started, or started again."""
        if process.probed_at and process.name not in self._probes:
            self._probes[process.name] = _Probe(process.probed_at, self.limit / 3)
            self._probes[process.name].start()
        self._heartbeats[process.name] = Heartbeat(self._mark(process), now)

    def is_unresponsive(self, process: Process, now: float) -> bool:
        """To be asked again and again while the process lives."""
        if not (process.probed_at or process.touches):
            return False
        found = self._heartbeats[process.name].after_look(self._mark(process), now)
        self._heartbeats[process.name] = found
        return found.is_over(self.limit)

    def seconds_without(self, name: str) -> float:
        """Seconds since the process's last heartbeat, or since its start."""
        return self._heartbeats[name].seconds

    def end(self, name: str) -> None:
        """The process will not be started again."""
        self._heartbeats.pop(name, None)
        if probe := self._probes.pop(name, None):
            probe.is_over.set()

    def _mark(self, process: Process) -> int:
        if process.probed_at:
            return self._probes[process.name].answers
        try:
            return process.touches.stat().st_mtime_ns if process.touches else 0
        except OSError:
            return 0


class _Probe(threading.Thread):
    """Asks one address again and again, in a thread of its own, and counts the answers, whatever they say."""

    def __init__(self, address: str, patience: float) -> None:
        super().__init__(name=f"probe {address}", daemon=True)
        self.answers = 0
        self.is_over = threading.Event()
        self._address = address
        self._patience = patience

    def run(self) -> None:
        pause = min(2.0, self._patience)
        while not self.is_over.wait(pause if self.answers else pause / 10):
            self.answers += answers(self._address, self._patience)


def answers(address: str, patience: float) -> bool:
    """Whether something answers there: HTTP at a URL, else a message server on a unix socket."""
    try:
        return _answers_http(address, patience) if "://" in address else _answers_ping(Path(address), patience)
    except (OSError, http.client.HTTPException):
        return False


def _answers_http(address: str, patience: float) -> bool:
    url = urlsplit(address)
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=patience)
    try:
        connection.request("GET", url.path)
        return connection.getresponse().status > 0
    finally:
        connection.close()


def _answers_ping(path: Path, patience: float) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(patience)
        client.connect(str(path))
        client.sendall(b"PING\r\n")
        return bool(client.recv(16))

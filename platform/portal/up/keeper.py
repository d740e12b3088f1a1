"""Keeps processes running: starts them, starts again what died or no longer answers (`health`), stops them all. Their
output goes to files (`output`).

Children die with this process, also when it is killed outright: on Linux the kernel sees to it; what another system
leaves behind is found by the next start in `run/processes.json` and ended, checked by its start time so that no
stranger is hit.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from portal.up.health import Health
from portal.up.output import Outputs
from portal.up.processes import Process

_PR_SET_PDEATHSIG = 1
_LOG_KEEP = 512 << 20
_BACK_OFF = (0.2, 1.0, 3.0, 10.0)
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


@dataclass
class _Kept:
    process: Process
    child: subprocess.Popen[bytes]
    begun: float
    deaths: int = 0
    restart_at: float | None = None
    kill_at: float | None = None
    """It did not answer, and was asked to end."""


@dataclass
class Keeper:
    """The processes of one home. Not thread-safe: one loop uses it."""

    home: Path
    root: Path
    environment: Mapping[str, str]
    say: Callable[[str], None]
    health: Health = field(default_factory=Health)
    log_keep: int = _LOG_KEEP
    """The bytes of output that are kept, of all processes together."""
    _kept: dict[str, _Kept] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._outputs = Outputs(self.home / "log", self.log_keep)

    def start(self, processes: Iterable[Process]) -> None:
        for process in processes:
            self._kept[process.name] = _Kept(process, self._spawn(process), time.monotonic())
            self.health.begin(process, time.monotonic())
        self._remember()

    def run(self, command: Iterable[str]) -> subprocess.CompletedProcess[bytes]:
        """One command to its end, in the portal's environment; its output is returned."""
        return subprocess.run(
            list(command), cwd=self.root, env=dict(self.environment), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            check=False,
        )  # fmt: skip

    def mend(self) -> None:
        """Start again what died, with a growing pause so that a broken one does not spin; end what lives and does not
        answer."""
        now = time.monotonic()
        changed = False
        for name, kept in self._kept.items():
            if kept.child.poll() is None:
                self._look_at(kept, now)
                continue
            if kept.restart_at is None:
                kept.deaths = 0 if now - kept.begun > 60 else kept.deaths
                pause = _BACK_OFF[min(kept.deaths, len(_BACK_OFF) - 1)]
                kept.deaths += 1
                kept.restart_at = now + pause
                self.say(f"{name} ended with {kept.child.returncode}; again in {pause:g} s ({self.log_of(name)})")
            elif now >= kept.restart_at:
                kept.child, kept.begun, kept.restart_at, kept.kill_at = self._spawn(kept.process), now, None, None
                self.health.begin(kept.process, now)
                changed = True
        if changed:
            self._remember()

    def _look_at(self, kept: _Kept, now: float) -> None:
        """End it where it no longer answers. A stopped or frozen process takes no SIGTERM."""
        if kept.kill_at is None and self.health.is_unresponsive(kept.process, now):
            kept.kill_at = now + kept.process.grace
            name = kept.process.name
            seconds = self.health.seconds_without(name)
            self.say(f"{name} has not answered for {seconds:.0f} s and is ended ({self.log_of(name)})")
            _signal_group(kept.child, signal.SIGTERM)
        elif kept.kill_at is not None and now >= kept.kill_at:
            _signal_group(kept.child, signal.SIGKILL)

    def is_alive(self, name: str) -> bool:
        return name in self._kept and self._kept[name].child.poll() is None

    def stop(self, names: Iterable[str] | None = None) -> None:
        """SIGTERM to all at once, then SIGKILL to what outlives its grace. Stopped ones are forgotten."""
        chosen = [self._kept.pop(name) for name in list(names or self._kept) if name in self._kept]
        for kept in chosen:
            _signal_group(kept.child, signal.SIGTERM)
        for kept in chosen:
            try:
                kept.child.wait(kept.process.grace)
            except subprocess.TimeoutExpired:
                self.say(f"{kept.process.name} did not end within {kept.process.grace:g} s and is killed")
            _signal_group(kept.child, signal.SIGKILL)
            kept.child.wait()
            self.health.end(kept.process.name)
        self._outputs.settle()
        self._remember()

    def log_of(self, name: str, *, settled: bool = False) -> Path:
        """The process's output; `settled`: with the last words of one that has ended."""
        if settled:
            self._outputs.settle(0.2)
        return self._outputs.file_of(name)

    def end_leftovers(self) -> None:
        """End what an earlier, killed `up` has left running in this home."""
        try:
            rows = json.loads((self.home / "run" / "processes.json").read_text())
        except (FileNotFoundError, ValueError):
            return
        pids = [row["pid"] for row in rows if _started(row["pid"]) == row["started"] is not None]
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            deadline = time.monotonic() + 5
            while pids and time.monotonic() < deadline:
                pids = [pid for pid in pids if _started(pid) is not None]
                time.sleep(0.05)

    def _spawn(self, process: Process) -> subprocess.Popen[bytes]:
        output = self._outputs.open(process.name)
        try:
            return subprocess.Popen(
                process.command, cwd=self.root, env=dict(self.environment), stdin=subprocess.DEVNULL,
                stdout=output, stderr=output, start_new_session=True, preexec_fn=_die_with_parent,
            )  # fmt: skip
        finally:
            os.close(output)

    def _remember(self) -> None:
        rows = [{"pid": k.child.pid, "started": _started(k.child.pid), "name": n} for n, k in self._kept.items()]
        file = self.home / "run" / "processes.json"
        draft = file.with_suffix(".new")
        draft.write_text(json.dumps(rows))
        draft.replace(file)


def _die_with_parent() -> None:
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _signal_group(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


def _started(pid: int) -> float | None:
    """When a process began; None when there is none (or it only waits to be reaped)."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.Error:
        return None

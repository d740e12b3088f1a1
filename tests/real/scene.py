"""What fault and hostile tests share: a real portal with its client, tiny jobs, and a look at what is really there.

The look goes past the portal on purpose: into its database file, into /proc and into its folders, since a portal that
forgot something would not tell. Not here: faults.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from tests.real.portal import CHEAP, ROOT, WHOLE, RealPortal, real_portal
from yardmaster.engines.supervision.processes import Row, identify, table
from yardmaster.ids import JobKey
from yardmaster_client import Job, LogLine, Yardmaster

T = TypeVar("T")

QUICK = {"YARDMASTER_LOOK_AGAIN": "1", "YARDMASTER_JOB_LEASE": "5", "YARDMASTER_LOCAL_ENGINE_FOR_ALL": "1", **CHEAP}
"""A portal that looks again soon: what heals within minutes by default shall be seen to heal within seconds."""
PATIENCE = 90.0
SMALL = {"cpu": 0.1, "memory": "256Mi"}


class Scene:
    """A running portal, seen by its administrator, and everything that a test asks about it."""

    def __init__(self, portal: RealPortal, token: str) -> None:
        self.portal = portal
        self.token = token
        self.client = Yardmaster(portal.url, token)
        self.traces = portal.home / "traces"
        self.traces.mkdir(exist_ok=True)

    # --- jobs --------------------------------------------------------------------------------------------------------

    def put_code(self, files: Mapping[str, str | bytes], name: str = "code") -> str:
        """Upload these files; the version's id."""
        with tempfile.TemporaryDirectory() as folder:
            for path, text in files.items():
                place = Path(folder) / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(text.encode() if isinstance(text, str) else text)
            latest = self.client.code.put(name, [Path(folder)]).latest
        assert latest is not None
        return latest.id

    def spec(self, code: str, **changes: Any) -> dict[str, Any]:
        """One small worker that runs `main.py` without any flag, and nothing that takes its time."""
        return {
            "name": "fault", "strategy": "single", "roles": {"worker": dict(SMALL)}, "code": code,
            "entry_point": "main.py", "paths": {"data_flag": "", "log_flag": ""}, "retries": 0, "grace_period": 5,
            "reclaim_delay": 1, **changes,
        }  # fmt: skip

    def launch(self, script: str, **changes: Any) -> Job:
        return self.client.jobs.launch(self.spec(self.put_code({"main.py": script}), **changes))

    def ended(self, job: Job, timeout: float = PATIENCE) -> Job:
        return self.client.jobs.wait(job.id, timeout=timeout)

    def settled(self, job: Job, timeout: float = PATIENCE) -> Job:
        """The job, when it has ended and nothing of it is left on the engine."""
        self.ended(job, timeout)
        return until(lambda: _if(self.client.jobs.get(job.id), lambda one: one.cleaned_up_at is not None), timeout)

    def lines(self, job: Job, role: str = "worker", index: int = 0, **where: Any) -> list[str]:
        found = self.client.jobs.lines(job.id, role=role, index=index, **where)
        return [one.text for one in found if isinstance(one, LogLine)]

    def portal_has_line(self, job: Job, role: str, index: int) -> bool:
        """Whether the first line of a task has reached the portal."""
        streams = self.client.jobs.streams(job.id)
        return any((one["role"], one["index"]) == (role, index) and one["lines"] for one in streams)

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The `yardmaster` command of the same person, as in a wide terminal."""
        told = {"YARDMASTER_URL": self.portal.url, "YARDMASTER_TOKEN": self.token, "COLUMNS": "200"}
        return subprocess.run(
            [sys.executable, "-m", "yardmaster_client", *arguments],
            cwd=ROOT, env={**self.portal.environment, **told}, capture_output=True, text=True, check=False,
        )  # fmt: skip

    # --- the truth ---------------------------------------------------------------------------------------------------

    def ask(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Read the portal's database behind its back."""
        with contextlib.closing(sqlite3.connect(f"file:{self.portal.home}/portal.sqlite3?mode=ro", uri=True)) as base:
            return base.execute(query, values).fetchall()

    def row(self, job: Job, *columns: str) -> tuple[Any, ...]:
        return self.ask(f"SELECT {', '.join(columns)} FROM jobs_job WHERE id = ?", job.id.replace("-", ""))[0]

    def run_folders(self, job: Job) -> list[Path]:
        return [path for path in self._runs.glob("*") if path.name.startswith(self._run_name(job))]

    def processes_of(self, job: Job) -> list[Row]:
        """Every living process that bears the mark of the job's run, or supervises it."""
        folder = os.fsencode(self._runs / self._run_name(job))
        rows = [row for row in table().values() if row.is_alive]
        return [row for row in rows if row.mark.startswith(folder) or folder in _command(row.pid)]

    def runners(self, job: Job, task: str = "") -> list[int]:
        """The first processes of the job's tasks."""
        return [
            row.pid
            for row in self.processes_of(job)
            if b"-m\0yardmaster_runner" in _command(row.pid) and task.encode() in row.mark
        ]

    def supervisors(self, job: Job) -> list[int]:
        return [row.pid for row in self.processes_of(job) if b"engines.supervision.supervisor" in _command(row.pid)]

    def held(self, job: Job) -> int:
        """Rows of the quota ledger that the job still holds."""
        query = "SELECT COUNT(*) FROM jobs_reservation WHERE job_id = ? AND released_at IS NULL"
        return int(self.ask(query, job.id.replace("-", ""))[0][0])

    def assert_nothing_is_left(self, job: Job) -> None:
        """No quota, no folder, no process, no reason to look again."""
        until(lambda: self.row(job, "next_look_at", "lease_until") == (None, None), PATIENCE, "the job to be let go")
        assert self.held(job) == 0, "quota is still held"
        assert self.run_folders(job) == [], "the run's folder is still there"
        assert self.processes_of(job) == [], "a process of the run still lives"

    # --- inside ------------------------------------------------------------------------------------------------------

    @property
    def _runs(self) -> Path:
        return self.portal.home / "local" / "runs"

    def _run_name(self, job: Job) -> str:
        """How the engine names the current attempt's run."""
        return JobKey(uuid.UUID(job.namespace), uuid.UUID(job.id), job.attempt).name


@contextlib.contextmanager
def scene(names: tuple[str, ...] = WHOLE, settings: Mapping[str, str] | None = None) -> Iterator[Scene]:
    """A portal in a home of its own; gone, with every process of its jobs, at the end."""
    with tempfile.TemporaryDirectory(prefix="yardmaster-fault-") as home, scene_in(Path(home), names, settings) as one:
        yield one


@contextlib.contextmanager
def scene_in(home: Path, names: tuple[str, ...] = WHOLE, settings: Mapping[str, str] | None = None) -> Iterator[Scene]:
    """The same in this folder."""
    try:
        with real_portal(home, names, {**QUICK, **(settings or {})}) as portal:
            one = Scene(portal, portal.token_of("admin", is_staff=True))
            with one.client:
                yield one
    finally:
        end_all_runs(home)


def end_all_runs(home: Path) -> None:
    """Kill whatever still runs for this home."""
    mark = os.fsencode(home)
    for row in table().values():
        if row.mark.startswith(mark) or b"engines.supervision.supervisor\0" + mark in _command(row.pid):
            kill(row.pid)


def until(look: Callable[[], T | None], timeout: float = PATIENCE, what: str = "it") -> T:
    """What `look` finds as soon as that is something true."""
    deadline, pause = time.monotonic() + timeout, 0.02
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"Waited {timeout:g} s in vain for {what}.")
        time.sleep(pause)
        pause = min(1.3 * pause, 0.15)  # most looks are requests: fifty a second would hold up what they wait for


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def is_alive(pid: int) -> bool:
    return (found := identify(pid)) is not None and found.is_alive()


def _if(value: T, holds: Callable[[T], bool]) -> T | None:
    return value if holds(value) else None


def processes_with(text: str) -> list[int]:
    """Living processes whose command line holds `text`."""
    return [pid for pid, row in table().items() if row.is_alive and text.encode() in _command(pid)]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""

"""What every story of the demonstration does with a portal: upload, run a job, show its log as it comes, and time it.

Not here: the stories (`digits`, `reviews`).
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from portal.env import task_python
from yardmaster.quantity import format_bytes
from yardmaster_client import DatasetVersion, Job, LogLine, NotReachable, PortalError, Yardmaster

SHARES = (1.0, 0.5, 0.25)
_COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "bright_red")
Watch = Callable[[LogLine], None]


class NeverFits(Exception):
    """A job of the demonstration is larger than the machine. The message has the numbers."""


class StoryFailed(Exception):
    """A step on which all others depend did not end as it must. The message says which and why."""


def size_of(version: DatasetVersion) -> str:
    """Its records, where they were counted: an S3 server's objects are not read for that."""
    if version.records:
        return f"{version.records} records"
    files = f"{version.files} files, " if version.files is not None else ""
    return f"{files}{format_bytes(version.size)}"


def run_example(script: Path, *arguments: str | Path) -> None:
    """Run a script of the examples on this machine, as tasks would. Raises `StoryFailed` with what it printed."""
    command = [task_python(), str(script), *map(str, arguments)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise StoryFailed(f"{script.name} failed: {done.stderr.strip() or done.returncode}")


def job_file(path: Path, **changes: Any) -> dict[str, Any]:
    """The specification of an example's job file, for the namespace and engine of the demonstration."""
    spec = dict(yaml.safe_load(path.read_text()))
    for place in ("namespace", "engine"):
        spec.pop(place, None)
    return spec | changes


@dataclass
class Stage:
    """A portal with people who watch; collects how long each part took."""

    portal: Yardmaster
    console: Console
    engine: str
    took: dict[str, float] = field(default_factory=dict)
    running: list[Job] = field(default_factory=list)
    """What was launched and is not known to be cleaned up."""

    def put_data(self, name: str, folders: Sequence[Path], what: str) -> str:
        """Upload folders as a version of a dataset; the version's id."""
        with self.progress(what) as progress:
            item = self.portal.datasets.put(name, folders, note="demonstration", progress=progress)
        assert item.latest is not None
        self.console.print(f"Dataset [bold]{name}[/], version {item.latest.number}: {size_of(item.latest)}")
        return item.latest.id

    def put_code(self, name: str, folder: Path) -> str:
        """Upload a folder as a version of a code; the version's id."""
        with self.progress(f"Uploading {folder.parent.name}/{folder.name}") as progress:
            item = self.portal.code.put(name, [folder], note="demonstration", progress=progress)
        assert item.latest is not None
        return item.latest.id

    def run(self, spec: dict[str, Any], watch: Watch = lambda line: None) -> Job:
        """Launch a job and show its log; the job with its verdict. What it still holds is released later."""
        spec = self._fitting(spec)
        tasks = ", ".join(f"{role['replicas']} {name}" for name, role in spec["roles"].items())
        job = self.portal.jobs.launch(spec, engine=self.engine)
        self.running.append(job)
        self.console.print(f"[bold]Launched[/] {job.name} with {tasks} ({job.id})")
        self._show_waiting(job)
        self._show_log(job, watch)
        return self.portal.jobs.wait(job.id, timeout=120)

    def until_cleaned_up(self, job: Job) -> Job:
        """Until nothing of the job runs any more, so that no parameter server outlives the demonstration."""
        deadline = time.monotonic() + 90
        while job.cleaned_up_at is None and time.monotonic() < deadline:
            time.sleep(0.2)
            job = self.portal.jobs.get(job.id)
        self.running = [one for one in self.running if one.id != job.id]
        return job

    def curves(self, job: Job) -> str:
        """What the portal has of the job's scalars: each tag with its number of points, or "none"."""
        found = self.portal.transport.get(f"jobs/{job.id}/scalars/")["results"]
        return ", ".join(sorted(f"{one['tag']} ({len(one['points'])} points)" for one in found)) or "none"

    def end_early(self) -> None:
        """Off this machine no job outlives the demonstration: what is removed under it would count as lost."""
        if self.engine == "local":
            return
        for job in self.running:
            with contextlib.suppress(PortalError, NotReachable):
                self.portal.jobs.stop(job.id)
        for job in list(self.running):
            with contextlib.suppress(PortalError, NotReachable):
                self.until_cleaned_up(job)

    def _fitting(self, spec: dict[str, Any]) -> dict[str, Any]:
        """The spec, with smaller shares of a processor where the machines are too small for it. Raises `NeverFits`."""
        for share in SHARES:
            roles = {role: one | {"cpu": one["cpu"] * share} for role, one in spec["roles"].items()}
            smaller = spec | {"roles": roles}
            check = self.portal.jobs.check(smaller, engine=self.engine)
            if check["verdict"] != "never_fits" or check["problems"]:  # an invalid one is refused where it is launched
                if share < 1:
                    self.console.print(f"Every task gets {share:g} of its processor time, so that the job fits.")
                return smaller
        raise NeverFits(f"There is too little for the demonstration: {check['message']}")

    def _show_waiting(self, job: Job) -> None:
        """Say why the job waits, each time the reason changes, until it is admitted."""
        said = ""
        while job.phase == "QUEUED":
            if job.message and job.message != said:
                self.console.print(f"Waiting: {job.message} {job.remedy}")
                said = job.message
            time.sleep(0.2)
            job = self.portal.jobs.get(job.id)

    def _show_log(self, job: Job, watch: Watch) -> None:
        colours: dict[str, str] = {}
        for line in self.portal.jobs.follow(job.id):
            if not isinstance(line, LogLine):
                self.console.print(f"… {line.count} lines lost …", style="red")
                continue
            task = f"{line.role}-{line.index}"
            colour = colours.setdefault(task, _COLOURS[len(colours) % len(_COLOURS)])
            self.console.print(f"[{colour}]{task:>9}[/] ", end="")
            self.console.print(line.text, markup=False, highlight=False, soft_wrap=True)
            watch(line)

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        begun = time.monotonic()
        yield
        self.took[what] = time.monotonic() - begun

    @contextmanager
    def progress(self, what: str) -> Iterator[Any]:
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
        quiet = not self.console.is_terminal
        with Progress(*columns, console=self.console, transient=True, disable=quiet) as bar:
            task = bar.add_task(what, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)

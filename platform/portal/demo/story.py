"""What the demonstration does: real images, a real distributed job, its log as it comes, and what came of it."""

from __future__ import annotations

import contextlib
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from portal.demo.portal import ROOT
from portal.env import task_python
from yardmaster.quantity import format_bytes
from yardmaster_client import DatasetVersion, Job, LogLine, NotReachable, PortalError, Yardmaster

EXAMPLE = ROOT / "examples" / "digits"
LEAST_ACCURACY = 0.95
RECLAIM_DELAY = timedelta(seconds=5)
"""Shorter than the usual 30 s: people who watch want to see the parameter server go."""
SHARES = (1.0, 0.5, 0.25)
_ACCURACY = re.compile(r"test accuracy[ :=]+([01]\.\d+)")
_COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "bright_red")


class NeverFits(Exception):
    """The demonstration's job is larger than the machine. The message has the numbers."""


def _size_of(version: DatasetVersion) -> str:
    """Its records, where they were counted: an S3 server's objects are not read for that."""
    return f"{version.records} records" if version.records is not None else format_bytes(version.size)


@dataclass
class Story:
    """One run of the demonstration; collects how long each part took."""

    portal: Yardmaster
    console: Console
    engine: str
    took: dict[str, float] = field(default_factory=dict)
    accuracy: float | None = None
    launched: Job | None = None

    def tell(self, parameter_servers: int, workers: int) -> Job:
        """From nothing to a kept model; returns the job, which is final."""
        with self._timed("make and upload the data"):
            data = self._put_data()
        with self._timed("upload the code"):
            code = self._put_code()
        spec = self._fitting(self._spec(code, data, parameter_servers, workers))
        with self._timed("train"):
            job = self.launched = self.portal.jobs.launch(spec, engine=self.engine)
            self.console.print(
                f"[bold]Launched[/] {job.name} with {parameter_servers} PS and {workers} workers ({job.id})"
            )
            self._show_waiting(job)
            self._show_log(job)
            job = self.portal.jobs.wait(job.id, timeout=120)
        delay = f"{RECLAIM_DELAY.total_seconds():g} s"
        self.console.print(f"The verdict stands: {job.phase}. The parameter server is released {delay} later.")
        with self._timed("release what still ran"):
            return self._until_cleaned_up(job)

    def end_early(self) -> None:
        """Off this machine no job outlives the demonstration: what is removed under it would count as lost."""
        if self.engine == "local" or self.launched is None:
            return
        with contextlib.suppress(PortalError, NotReachable):
            self.portal.jobs.stop(self.launched.id)
            self._until_cleaned_up(self.launched)

    @property
    def succeeded(self) -> bool:
        return self.accuracy is not None and self.accuracy >= LEAST_ACCURACY

    def _until_cleaned_up(self, job: Job) -> Job:
        """Until nothing of the job runs any more, so that no parameter server outlives the demonstration."""
        deadline = time.monotonic() + 90
        while job.cleaned_up_at is None and time.monotonic() < deadline:
            time.sleep(0.2)
            job = self.portal.jobs.get(job.id)
        return job

    def _put_data(self) -> str:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([task_python(), str(EXAMPLE / "prepare.py"), folder], check=True, stdout=subprocess.DEVNULL)
            with self._progress("Uploading the handwritten digits") as progress:
                item = self.portal.datasets.put("digits", [Path(folder)], note="demonstration", progress=progress)
        assert item.latest is not None
        self.console.print(f"Dataset [bold]digits[/], version {item.latest.number}: {_size_of(item.latest)}")
        return item.latest.id

    def _put_code(self) -> str:
        with self._progress("Uploading examples/digits") as progress:
            item = self.portal.code.put("digits", [EXAMPLE], note="demonstration", progress=progress)
        assert item.latest is not None
        return item.latest.id

    def _spec(self, code: str, data: str, parameter_servers: int, workers: int) -> dict[str, Any]:
        spec = yaml.safe_load((EXAMPLE / "between_graph.yaml").read_text())
        spec.pop("namespace", None)
        spec.pop("engine", None)
        spec["roles"]["ps"]["replicas"] = parameter_servers
        spec["roles"]["worker"]["replicas"] = workers
        return dict(spec) | {
            "code": code, "inputs": [{"dataset_version": data}], "reclaim_delay": int(RECLAIM_DELAY.total_seconds()),
        }  # fmt: skip

    def _fitting(self, spec: dict[str, Any]) -> dict[str, Any]:
        """The spec, with smaller shares of a processor where the machines are too small for it. Raises `NeverFits`."""
        for share in SHARES:
            roles = {role: one | {"cpu": one["cpu"] * share} for role, one in spec["roles"].items()}
            smaller = spec | {"roles": roles}
            check = self.portal.jobs.check(smaller, engine=self.engine)
            if check["verdict"] != "never_fits":
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

    def _show_log(self, job: Job) -> None:
        colours: dict[str, str] = {}
        for line in self.portal.jobs.follow(job.id):
            if not isinstance(line, LogLine):
                self.console.print(f"… {line.count} lines lost …", style="red")
                continue
            task = f"{line.role}-{line.index}"
            colour = colours.setdefault(task, _COLOURS[len(colours) % len(_COLOURS)])
            self.console.print(f"[{colour}]{task:>9}[/] ", end="")
            self.console.print(line.text, markup=False, highlight=False, soft_wrap=True)
            if found := _ACCURACY.search(line.text):
                self.accuracy = float(found[1])

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        begun = time.monotonic()
        yield
        self.took[what] = time.monotonic() - begun

    @contextmanager
    def _progress(self, what: str) -> Iterator[Any]:
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
        quiet = not self.console.is_terminal
        with Progress(*columns, console=self.console, transient=True, disable=quiet) as bar:
            task = bar.add_task(what, total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)

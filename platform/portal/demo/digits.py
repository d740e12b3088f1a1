"""The first story: real images of digits, a distributed job, its log as it comes, and the model that was kept of it."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from portal.demo.portal import ROOT
from portal.demo.report import Row, model_place, phases
from portal.demo.stage import Stage, job_file, run_example
from yardmaster_client import Job, LogLine

EXAMPLE = ROOT / "examples" / "digits"
LEAST_ACCURACY = 0.95
RECLAIM_DELAY = timedelta(seconds=5)
"""Shorter than the usual 30 s: people who watch want to see the parameter server go."""
_ACCURACY = re.compile(r"test accuracy[ :=]+([01]\.\d+)")


@dataclass
class Digits:
    """One telling of it."""

    stage: Stage
    parameter_servers: int
    workers: int
    accuracy: float | None = None
    job: Job | None = None
    curves: str = ""
    """What the portal has of the job's scalars."""

    def tell(self) -> None:
        """From nothing to a kept model."""
        stage = self.stage
        with stage.timed("make and upload the data"), tempfile.TemporaryDirectory() as folder:
            run_example(EXAMPLE / "prepare.py", folder)
            data = stage.put_data("digits", [Path(folder)], "Uploading the handwritten digits")
        with stage.timed("upload the code"):
            code = stage.put_code("digits", EXAMPLE)
        spec = job_file(
            EXAMPLE / "between_graph.yaml",
            code=code,
            inputs=[{"dataset_version": data}],
            reclaim_delay=int(RECLAIM_DELAY.total_seconds()),
        )
        spec["roles"]["ps"]["replicas"] = self.parameter_servers
        spec["roles"]["worker"]["replicas"] = self.workers
        with stage.timed("train"):
            job = stage.run(spec, self._watch)
        delay = f"{RECLAIM_DELAY.total_seconds():g} s"
        stage.console.print(f"The verdict stands: {job.phase}. The parameter server is released {delay} later.")
        with stage.timed("release what still ran"):
            self.job = stage.until_cleaned_up(job)
        self.curves = stage.curves(self.job)

    @property
    def succeeded(self) -> bool:
        is_good = self.accuracy is not None and self.accuracy >= LEAST_ACCURACY
        return is_good and self.job is not None and self.job.phase == "SUCCEEDED"

    def rows(self, url: str) -> list[Row]:
        """What came of it."""
        if self.job is None:
            return []
        goal = f"(must be at least {LEAST_ACCURACY})"
        return [
            ("job", f"{self.job.phase}: {self.job.message or self.job.reason}"),
            ("test accuracy", f"{self.accuracy:.4f} {goal}" if self.accuracy is not None else f"not reported {goal}"),
            ("curves", self.curves),
            ("model", model_place(self.job, url)),
            *phases(self.job),
        ]

    def _watch(self, line: LogLine) -> None:
        if found := _ACCURACY.search(line.text):
            self.accuracy = float(found[1])

"""The second story: from raw text to a model that reads it. Texts are uploaded as they are, a job prepares them, a job
trains on what that published, a linear model on the same shards says what the result is worth, and the served model is
asked."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from portal.demo.asking import model_of, predictions
from portal.demo.digits import RECLAIM_DELAY
from portal.demo.portal import ROOT
from portal.demo.report import Row, model_place, phases
from portal.demo.stage import Stage, StoryFailed, job_file, run_example
from yardmaster_client import Job, LogLine

EXAMPLE = ROOT / "examples" / "reviews"
RAW = "reviews-raw"
SENTENCES = (
    ("a moving and beautifully acted film that stays with you .", "pos"),
    ("two dull hours of clumsy dialogue and a plot that goes nowhere .", "neg"),
    ("not without charm , but far too long .", ""),
)
"""What the served model is asked, and what it must answer; empty where people would disagree."""
CLEAR = sum(bool(meant) for _, meant in SENTENCES)
LEAST_ACCURACY = 0.70
"""Of the model that has seen all texts. With fewer of them it must only be as good as the linear one."""
_ACCURACY = re.compile(r"^(baseline )?test accuracy ([01]\.\d+)")
_INTERVAL = re.compile(r"^test: (\d+) texts, 95 % interval ±(\d\.\d+)")


@dataclass
class Reviews:
    """One telling of it. `most`: texts of each class; 0: all."""

    stage: Stage
    parameter_servers: int
    workers: int
    most: int = 0
    accuracies: dict[str, float] = field(default_factory=dict)
    """Of "model" and "baseline", on the test split."""
    interval: float = 0.0
    """Half the width of the 95 % interval of such an accuracy."""
    answers: list[tuple[str, float]] = field(default_factory=list)
    """Of the served model to each of `SENTENCES`: the sentiment, and how sure it is."""
    job: Job | None = None
    curves: str = ""
    """What the portal has of the job's scalars."""

    def tell(self) -> None:
        """From files of text to a kept model and its comparison."""
        stage = self.stage
        with stage.timed("fetch and upload the texts"), tempfile.TemporaryDirectory() as folder:
            run_example(EXAMPLE / "fetch.py", folder, "--most", str(self.most))
            raw = stage.put_data(RAW, [Path(folder)], "Uploading the reviews")
        with stage.timed("prepare"):
            prepared = self._prepare(raw)
        code = stage.put_code("reviews", EXAMPLE)
        with stage.timed("train on text"):
            trained = self._run("between_graph.yaml", code, prepared)
        stage.console.print(f"The verdict stands: {trained.phase}. To compare, a linear model:")
        with stage.timed("train the baseline"):
            self._run("baseline.yaml", code, prepared)
        self.job = stage.until_cleaned_up(trained)
        self.curves = stage.curves(self.job)
        with stage.timed("serve it and ask"):
            self.answers = predictions(stage, model_of(self.job), [text for text, _ in SENTENCES])
        for (text, _), (sentiment, surely) in zip(SENTENCES, self.answers, strict=True):
            stage.console.print(f"  {sentiment} ({surely:.2f})  {text}", markup=False)

    def _prepare(self, raw: str) -> str:
        """A job that makes shards of the texts; the version that it published."""
        job = self.stage.run(job_file(EXAMPLE / "prepare.yaml", inputs=[{"dataset_version": raw}]))
        self._must_succeed(job)
        published = self.stage.portal.jobs.published(job.id, wait=True) or {}
        self.stage.until_cleaned_up(job)
        if not published.get("version"):
            problem = published.get("problem") or {}
            raise StoryFailed(f"{job.name} has succeeded, and published nothing. {problem.get('detail', '')}")
        self.stage.console.print(
            f"Published [bold]{published['dataset']}[/], version {published['number']}: {published['records']} records"
        )
        return str(published["version"])

    def _run(self, file: str, code: str, data: str) -> Job:
        spec = job_file(
            EXAMPLE / file,
            code=code,
            inputs=[{"dataset_version": data}],
            reclaim_delay=int(RECLAIM_DELAY.total_seconds()),
        )
        if "ps" in spec["roles"]:
            spec["roles"]["ps"]["replicas"] = self.parameter_servers
            spec["roles"]["worker"]["replicas"] = self.workers
        job = self.stage.run(spec, self._watch)
        self._must_succeed(job)
        return job

    def _must_succeed(self, job: Job) -> None:
        if job.phase != "SUCCEEDED":
            raise StoryFailed(f"{job.name}: {job.phase}. {job.message or job.reason} {job.remedy}")

    @property
    def bound(self) -> float:
        """The least accuracy that counts as success."""
        least = 0.0 if self.most else LEAST_ACCURACY
        return max(least, self.accuracies.get("baseline", 0.0) - self.interval)

    @property
    def clear_and_right(self) -> int:
        """How many of the clear sentences the served model understood."""
        return sum(said == meant for (_, meant), (said, _) in zip(SENTENCES, self.answers, strict=False) if meant)

    @property
    def succeeded(self) -> bool:
        is_good = len(self.accuracies) == 2 and self.accuracies["model"] >= self.bound
        return is_good and len(self.answers) == len(SENTENCES) and (bool(self.most) or self.clear_and_right == CLEAR)

    def rows(self, url: str) -> list[Row]:
        """What came of it."""
        if self.job is None:
            return []
        goal = f"(must be at least {self.bound:.4f}: within {self.interval:.4f} of the linear model)"
        found, must = self.accuracies, f"(must be at least {0 if self.most else CLEAR})"
        return [
            ("job", f"{self.job.phase}: {self.job.message or self.job.reason}"),
            ("test accuracy", f"{found['model']:.4f} {goal}" if "model" in found else f"not reported {goal}"),
            ("a linear model's", f"{found['baseline']:.4f}" if "baseline" in found else "not reported"),
            (
                "the served model",
                f"{self.clear_and_right} of {CLEAR} clear sentences right {must}",
            ),
            ("curves", self.curves),
            ("model", model_place(self.job, url)),
            *phases(self.job),
        ]

    def _watch(self, line: LogLine) -> None:
        if found := _ACCURACY.search(line.text):
            self.accuracies["baseline" if found[1] else "model"] = float(found[2])
        elif found := _INTERVAL.search(line.text):
            self.interval = max(self.interval, float(found[2]))

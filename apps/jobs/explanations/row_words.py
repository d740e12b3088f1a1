"""A job in the words of a list: its shape, how far it has come, why it is where it is, and for how long.

Words only: nothing here reads the database.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from apps.jobs.explanations.waiting_words import NEVER, queue_state
from apps.jobs.models import Job
from apps.jobs.state.list_values import Value
from yardmaster.job.spec import Role, Strategy
from yardmaster.lifecycle.phases import Phase, Wanted

STRATEGY_WORDS = {
    "single": "Single task",
    "between_graph": "Parameter server (between-graph)",
    "parameter_server": "ParameterServerStrategy",
    "multi_worker_mirrored": "MultiWorkerMirroredStrategy",
    "in_graph": "TensorFlow servers only (in-graph)",
    "batch": "Independent tasks (batch)",
    "service": "Service",
    "spark": "Spark",
}
_OF_ONE_TASK = (Strategy.SINGLE.value, Strategy.SERVICE.value)
_SHAPE_ENDINGS = {Strategy.MULTI_WORKER_MIRRORED.value: ", mirrored", Strategy.IN_GRAPH.value: ", in-graph",
                  Strategy.BATCH.value: ", independent"}  # fmt: skip
"""Where the roles alone do not tell the strategy."""
_PLURALS = {"worker": "workers", "ps": "parameter servers", "chief": "chiefs", "evaluator": "evaluators",
            "driver": "drivers", "executor": "executors"}  # fmt: skip
_SINGULARS = {"ps": "parameter server"}
_LONGEST_REASON = 240


@dataclass(frozen=True)
class Row:
    """One job of a list as it is shown at `now`."""

    job: Job
    now: datetime
    values: Sequence[Value] = ()
    """What stands in the further columns."""

    @property
    def shape(self) -> str:
        """What runs, in words that tell the strategy, too."""
        if self.job.strategy in _OF_ONE_TASK:
            return STRATEGY_WORDS[self.job.strategy]
        words = shape_words(self.job.replicas)
        return words + _SHAPE_ENDINGS.get(self.job.strategy, "")

    @property
    def badge(self) -> str:
        """What its badge says: its phase, or of a queued job that it can never start."""
        return "NEVER_FITS" if queue_state(self.job) == NEVER else self.job.phase

    @property
    def strategy(self) -> str:
        return STRATEGY_WORDS.get(self.job.strategy, self.job.strategy)

    @property
    def is_ended(self) -> bool:
        return Phase(self.job.phase).is_final

    @property
    def is_stopping(self) -> bool:
        """A stop was asked for, and it has not stopped yet."""
        return self.job.wanted == Wanted.STOP.value and not self.is_ended

    @property
    def reason(self) -> str:
        """The one sentence on why it is where it is, shortened."""
        return shorten(_reason(self.job), _LONGEST_REASON)

    @property
    def since(self) -> datetime:
        """From when its time counts: from its start, or while it waits from when it was queued."""
        return self.job.started_at or self.job.queued_at

    @property
    def time_word(self) -> str:
        if self.is_ended:
            return "took"
        if queue_state(self.job) == NEVER:
            return "queued for"
        return "for" if self.job.started_at else "queued for"

    @property
    def took(self) -> timedelta:
        return (self.job.decided_at or self.now) - self.since

    @property
    def step(self) -> int | None:
        return _whole(self.job.progress.get("step"))

    @property
    def total(self) -> int | None:
        if self.job.phase == Phase.SUCCEEDED.value and "total" in self.job.progress:
            return self.step or None
        return _whole(self.job.progress.get("total")) or None

    @property
    def has_steps(self) -> bool:
        """False where only epochs are known."""
        return bool(self.step) or self.epoch is None

    @property
    def unit(self) -> str:
        """What is counted, where it is not steps: `records`."""
        return "records" if self.job.progress.get("unit") == "records" else ""

    @property
    def percent(self) -> int | None:
        """How much of the work is done, by steps or else by whole epochs; None where the end is not known. What has
        succeeded has done all of it, whatever was said of more."""
        if self.step is None or not (self.total or self.epochs):
            return None
        if self.job.phase == Phase.SUCCEEDED.value:
            return 100
        done, of = (self.step, self.total) if self.total else (max(0, (self.epoch or 0) - 1), self.epochs or 1)
        return max(0, min(100, done * 100 // of))

    @property
    def epoch(self) -> int | None:
        return _whole(self.job.progress.get("epoch"))

    @property
    def epochs(self) -> int | None:
        return _whole(self.job.progress.get("epochs"))


def rows_of(jobs: Iterable[Job], now: datetime, values: Mapping[UUID, Sequence[Value]] | None = None) -> list[Row]:
    """The jobs as rows, each with its values (`apps.jobs.state.list_values`)."""
    return [Row(job, now, (values or {}).get(job.pk, ())) for job in jobs]


def shape_words(replicas: Mapping[str, int]) -> str:
    """`1 chief, 2 workers, 1 parameter server`."""
    return ", ".join(count_words(role, replicas[role]) for role in Role if role in replicas)


def count_words(role: str, count: int) -> str:
    """`2 workers`."""
    return f"{count} {_SINGULARS.get(role, role) if count == 1 else _PLURALS.get(role, role)}"


def shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _reason(job: Job) -> str:
    if job.phase != Phase.QUEUED.value:
        return job.message
    message = job.message or "Waiting for the scheduler."
    if job.position is None or queue_state(job) == NEVER:
        return message
    return f"Next in the queue. {message}" if job.position == 0 else f"{job.position} ahead. {message}"


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

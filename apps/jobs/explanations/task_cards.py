"""One task as its card on the job's page shows it: its state, and small pictures of its use of cpu and memory over
time. Reads nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from apps.jobs.explanations.stale_tasks import stale_since, unreached_since
from apps.jobs.explanations.stalled_tasks import stalled_since, waits_for
from apps.jobs.models import Job, TaskFact
from yardmaster.job.spec import Resources, TrainingSpec, known_role
from yardmaster.lifecycle.failures import signal_of, task_name
from yardmaster.lifecycle.phases import Phase, TaskPhase
from yardmaster.usage import Sample, cpu_use

WIDTH, HEIGHT = 120, 28
MOST_POINTS = 60


@dataclass(frozen=True)
class Sparkline:
    """A line of values and, across it, the limit that they stay below, if there is one within the picture."""

    line: str
    area: str
    limit: float | None


def sparkline(values: Sequence[tuple[float, float]], limit: float | None) -> Sparkline | None:
    """The picture of (time, value) pairs, oldest first; None where there is too little to draw."""
    if len(values) < 2 or values[-1][0] <= values[0][0]:
        return None
    top = max(1.05 * max(value for _, value in values), limit or 0.0) or 1.0
    first, last = values[0][0], values[-1][0]
    points = [
        (round((time - first) / (last - first) * WIDTH, 1), _y(value, top))
        for time, value in _peaks(values, MOST_POINTS)
    ]
    line = " ".join(f"{x:g},{y:g}" for x, y in points)
    return Sparkline(line, f"0,{HEIGHT} {line} {WIDTH},{HEIGHT}", None if limit is None else _y(limit, top))


def _y(value: float, top: float) -> float:
    return round(HEIGHT - 1 - value / top * (HEIGHT - 2), 1)


def _peaks(values: Sequence[tuple[float, float]], most: int) -> list[tuple[float, float]]:
    """At most `most` of the values: the highest of each stretch, the first and the last."""
    if len(values) <= most:
        return list(values)
    inner, stretches = values[1:-1], most - 2
    bounds = [number * len(inner) // stretches for number in range(stretches + 1)]
    highest = [max(inner[start:end], key=lambda one: one[1]) for start, end in pairwise(bounds) if end > start]
    return [values[0], *highest, values[-1]]


_DOES = {"staging": "Fetching code and data", "uploading": "Uploading results", "running": "Running the script",
         "held": "Failed, and held open"}  # fmt: skip


@dataclass(frozen=True)
class TaskCard:
    """One task at `now`."""

    fact: TaskFact
    asked: Resources
    now: datetime
    attempt_is_over: bool
    job_has_succeeded: bool = False

    @property
    def name(self) -> str:
        """`worker-0`: what it is called in logs and addresses."""
        return f"{self.fact.role}-{self.fact.index}"

    @property
    def title(self) -> str:
        role = known_role(self.fact.role)
        if role is None:
            return self.name
        return task_name(role, self.fact.index).removeprefix("The ").capitalize()

    @property
    def phase(self) -> str:
        return self.fact.phase or TaskPhase.PENDING.value

    @property
    def does(self) -> str:
        """What it does now, in words."""
        return "" if TaskPhase(self.phase).is_ended or self.attempt_is_over else _DOES.get(self.fact.state, "")

    @property
    def has_shells(self) -> bool:
        """Whether terminals can be opened in it now."""
        return self.is_held or (self.phase == TaskPhase.RUNNING.value and self.fact.state == "running")

    @property
    def is_held(self) -> bool:
        """Whether its script has failed, and it is open for terminals for a while."""
        return not self.attempt_is_over and self.phase == TaskPhase.RUNNING.value and self.fact.state == "held"

    @property
    def held_until(self) -> datetime | None:
        until = self.fact.reported.get("held_until")
        return datetime.fromtimestamp(until, UTC) if self.is_held and until else None

    @property
    def message(self) -> str:
        if self._was_released_after_success:
            return ""
        message: str = self.fact.message or self.fact.reported.get("message", "") or self.fact.reason
        return message

    @property
    def exit_words(self) -> str:
        """`exit code 1`, `signal 9 (exit code 137)`; empty while it has not ended."""
        code = self.fact.exit_code if self.fact.exit_code is not None else self.fact.reported.get("exit_code")
        if code is None or self._was_released_after_success:
            return ""
        if code == 0 and self.phase == TaskPhase.RELEASED.value:
            return ""
        signal = signal_of(code)
        return f"exit code {code}" if signal is None else f"signal {signal} (exit code {code})"

    @property
    def _was_released_after_success(self) -> bool:
        """The portal ended it when it was not needed any more: with which status says nothing."""
        return self.job_has_succeeded and self.phase == TaskPhase.RELEASED.value

    @property
    def is_live(self) -> bool:
        """Whether what it last said of its use is what it uses now."""
        has_heartbeat = self.fact.reported_at is not None and stale_since(self.fact, self.now) is None
        return self.phase == TaskPhase.RUNNING.value and has_heartbeat

    @property
    def stale_since(self) -> datetime | None:
        """The time of its last heartbeat, where that is too long ago."""
        return None if self.attempt_is_over else stale_since(self.fact, self.now)

    @property
    def stalled_since(self) -> datetime | None:
        """Since when its script stands still; None where it does not."""
        return None if self.attempt_is_over else stalled_since(self.fact)

    @property
    def waits_for(self) -> str:
        return waits_for(self.fact)

    @property
    def unreached_since(self) -> datetime | None:
        """Since when it runs without having reached the portal, where that is too long."""
        return None if self.attempt_is_over else unreached_since(self.fact, self.now)

    @property
    def step(self) -> int | None:
        step: int | None = self.fact.progress.get("step")
        return step

    @property
    def total(self) -> int | None:
        """Of how many steps; one that has succeeded is at its end, whatever its script said of more."""
        total = self.fact.progress.get("total") or None
        return self.step or None if total and self.phase == TaskPhase.SUCCEEDED.value else total

    @property
    def samples(self) -> list[Sample]:
        return [Sample(*one) for one in self.fact.usage_samples]

    @property
    def cores(self) -> float | None:
        """How many cores were busy lately."""
        use = cpu_use(self.samples)
        return use[-1].cores if use else None

    @property
    def cpu_line(self) -> Sparkline | None:
        return sparkline([(use.time, use.cores) for use in cpu_use(self.samples)], self.asked.cpu)

    @property
    def memory(self) -> int | None:
        memory: int | None = self.fact.usage.get("memory")
        return memory

    @property
    def peak_memory(self) -> int | None:
        return self.fact.peak_memory or self.fact.usage.get("peak_memory")

    @property
    def memory_line(self) -> Sparkline | None:
        return sparkline([(one.time, float(one.memory)) for one in self.samples], float(self.asked.memory))

    @property
    def is_near_its_memory(self) -> bool:
        return (self.peak_memory or 0) >= 0.9 * self.asked.memory


def task_cards(job: Job, spec: TrainingSpec, facts: Iterable[TaskFact], now: datetime) -> list[TaskCard]:
    """A card for every task that the spec names, whether anything is known of it or not."""
    known: Mapping[tuple[str, int], TaskFact] = {(fact.role, fact.index): fact for fact in facts}
    is_over = Phase(job.phase).is_final and job.cleaned_up_at is not None
    return [
        TaskCard(
            known.get((role.value, index)) or TaskFact(role=role.value, index=index),
            spec.roles[role].resources, now, is_over, job.phase == Phase.SUCCEEDED.value,
        )
        for role, index in spec.tasks()
    ]  # fmt: skip

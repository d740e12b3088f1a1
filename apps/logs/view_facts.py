"""What a page needs to show a log: its streams, its end, its errors and warnings. The rest is fetched when it is read.

The end of the log is in the page itself, so that it is there without a script. Who may see it was decided before.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from apps.jobs.models import Job
from apps.jobs.state.retention import cleared_words, is_cleared
from apps.logs.level_counts import Tally, tally
from apps.logs.selectors import MergedPosition, levels_json, lines_of, merged_lines
from apps.stores import log_store
from yardmaster.errors import Unavailable
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import Phase
from yardmaster.lifecycle.retention import Kind
from yardmaster.logs.keys import StreamKey
from yardmaster.logs.store import StreamInfo

TAIL_LINES = 60
COUNT_SECONDS = 0.15


@dataclass(frozen=True)
class LogFacts:
    """One attempt's log, or that of one of its tasks (`task`, such as `worker-0`; empty: of all)."""

    job: Job
    attempt: int
    task: str
    streams: Sequence[StreamInfo]
    lines: Sequence[dict[str, Any]]
    levels: Tally
    trouble: str = ""
    """Why the log cannot be read now."""
    gone: str = ""
    """When and by which rule it was removed."""

    @property
    def names(self) -> list[str]:
        return [one.key.name for one in self.streams]

    @property
    def total(self) -> int:
        return sum(one.lines for one in self.streams if self.task in ("", one.key.name))

    @property
    def is_over(self) -> bool:
        """Whether nothing more will ever come."""
        job = self.job
        return self.attempt < job.attempt or (Phase(job.phase).is_final and job.cleaned_up_at is not None)

    @property
    def attempts(self) -> list[int]:
        return list(range(self.job.attempt, 0, -1))

    @property
    def query(self) -> str:
        """The query of the addresses of this log."""
        role, _, index = self.task.rpartition("-")
        which = f"&role={role}&index={index}" if self.task else ""
        return f"attempt={self.attempt}{which}"

    @property
    def config(self) -> str:
        """For the script of the page, as JSON."""
        return json.dumps(
            {
                "job": str(self.job.pk),
                "attempt": self.attempt,
                "task": self.task,
                "isOver": self.is_over,
                "isNewest": self.attempt == self.job.attempt,
                "lines": {one.key.name: one.lines for one in self.streams},
                "levels": levels_json(self.levels),
            }
        )


def log_facts(job: Job, *, attempt: int | None, task: str) -> LogFacts:
    """The log of an attempt (None: the current one). A task that there is not is passed over: an old link shows more,
    not an error."""
    number = attempt if attempt is not None and 1 <= attempt <= job.attempt else job.attempt
    if is_cleared(job, Kind.LOGS, number):
        return LogFacts(job, number, "", [], [], Tally(0, 0, 0, 0), gone=cleared_words(job, Kind.LOGS))
    try:
        streams = log_store().streams(job.pk, number)
        chosen = next((one.key for one in streams if one.key.name == task), None) or _named(job, number, task)
        keys = [chosen] if chosen else [one.key for one in streams]
        return LogFacts(
            job,
            number,
            chosen.name if chosen else "",
            streams,
            _end_of(job, number, chosen),
            tally(keys, COUNT_SECONDS),
        )
    except Unavailable as error:
        return LogFacts(job, number, "", [], [], Tally(0, 0, 0, 0), f"{error.message} {error.remedy}".strip())


def _named(job: Job, attempt: int, task: str) -> StreamKey | None:
    """A task that the job has, though it has not written a line yet."""
    role, _, index = task.rpartition("-")
    replicas = job.replicas.get(role, 0)
    if not index.isdecimal() or len(index) > 6 or int(index) >= replicas:
        return None
    return StreamKey(job.pk, attempt, Role(role), int(index))


def _end_of(job: Job, attempt: int, stream: StreamKey | None) -> list[dict[str, Any]]:
    if stream is not None:
        page = lines_of(stream, -TAIL_LINES, TAIL_LINES)
    else:
        page = merged_lines(job.pk, attempt, MergedPosition(first=-TAIL_LINES), TAIL_LINES)
    lines: list[dict[str, Any]] = page["lines"]
    return lines

"""The table at the end of the demonstration: what came of each story, how long it took, and where to look."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from rich.console import Console
from rich.markup import escape

from yardmaster_client import Job

Row = tuple[str, str]


def print_rows(console: Console, rows: Iterable[Row]) -> None:
    console.print()
    for name, value in rows:
        console.print(f"[dim]{name:<28}[/]{escape(value)}", soft_wrap=True)


def model_place(job: Job, url: str) -> str:
    """Where the model of a job is."""
    if not job.model:
        return "none was kept"
    return f"{url}/jobs/{job.id}/ (or: yardmaster models download {job.name})"


def phases(job: Job) -> list[Row]:
    """How long a job was in each of its phases."""
    marks = [("waited", job.queued_at), ("started", job.admitted_at), ("ran", job.started_at), ("", job.decided_at)]
    known = [(name, at) for name, at in marks if at is not None]
    return [
        (f"  {name}", f"{(after - at).total_seconds():.1f} s") for (name, at), (_, after) in pairwise(known) if name
    ]

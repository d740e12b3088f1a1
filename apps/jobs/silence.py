"""Running tasks that have not been heard from for a while: their machine, or the way from it to us, may be gone.

A job with such tasks stays RUNNING: what the portal does not hear goes on all the same. Reads nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from apps.api.templatetags.portal_tags import duration
from apps.jobs.models import TaskFact
from yardmaster.phases import TaskPhase

REASON = "TasksSilent"
SILENT = timedelta(seconds=60)
"""A task reports every five seconds; after one that hung, and the longest wait, 45 have passed."""
REMEDY = (
    "Nothing is lost yet: a task goes on without the portal, and sends what it has printed when it can. If it stays "
    "away, ask an administrator to look at its machine and the network."
)
NAMED = 5


def silent_since(fact: TaskFact, now: datetime) -> datetime | None:
    """When the task was last heard from, where that is too long ago for one that runs."""
    told = fact.reported_at
    return told if fact.phase == TaskPhase.RUNNING.value and told is not None and now - told >= SILENT else None


def silence(facts: Iterable[TaskFact], now: datetime) -> str:
    """Which of the running tasks are silent, and for how long at most, as a sentence; empty where none is."""
    running = [one for one in facts if one.phase == TaskPhase.RUNNING.value]
    since = {f"{one.role}-{one.index}": told for one in running if (told := silent_since(one, now))}
    if not since:
        return ""
    longest = duration(now - min(since.values()))
    if len(since) == 1:
        return f"{next(iter(since))} has not been heard from for {longest}."
    more = "" if len(since) <= NAMED else f" and {len(since) - NAMED} more"
    names = ", ".join(list(since)[:NAMED]) + more
    return f"{len(since)} of {len(running)} running tasks have not been heard from for up to {longest}: {names}."

"""Running tasks that are stale, that is without a heartbeat for too long, or that never sent one: their machine or the
network may have failed, or have been set up wrong.

A job with such tasks stays RUNNING: a task continues without the portal. Reads nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from apps.api.display import duration
from apps.jobs.models import TaskFact
from yardmaster.lifecycle.phases import TaskPhase
from yardmaster.quantity import some_of

REASON = "TasksStale"
STALE_AFTER = timedelta(seconds=60)
"""A task reports every five seconds; after one that hung, and the longest wait, 45 have passed."""
REMEDY = (
    "Nothing is lost yet: tasks continue without the portal and send their output later. If this lasts, ask an "
    "administrator to check the task's machine and the network."
)
UNREACHED = "PortalNotReached"
REMEDY_OF_UNREACHED = (
    "The task keeps trying for ten minutes. Ask an administrator to check that this address is reachable from the "
    "task's machine: "
    "YARDMASTER_TASK_URL, where the portal listens (YARDMASTER_HOST), YARDMASTER_ALLOWED_HOSTS, and the network."
)


def stale_since(fact: TaskFact, now: datetime) -> datetime | None:
    """The time of the last heartbeat, where that is too long ago for one that runs."""
    reported_at = fact.reported_at
    is_late = reported_at is not None and now - reported_at >= STALE_AFTER
    return reported_at if fact.phase == TaskPhase.RUNNING.value and is_late else None


def unreached_since(fact: TaskFact, now: datetime) -> datetime | None:
    """Since when the task runs, where it should have asked the portal for its order by now and never has."""
    begun = fact.started_at
    is_due = begun is not None and now - begun >= STALE_AFTER
    return begun if fact.phase == TaskPhase.RUNNING.value and fact.reported_at is None and is_due else None


def unreached(facts: Iterable[TaskFact], address: str, now: datetime) -> str:
    """Which of the running tasks have never reached the portal, and the address that they try, as a sentence; empty
    where none is."""
    since = {f"{one.role}-{one.index}": begun for one in facts if (begun := unreached_since(one, now))}
    if not since:
        return ""
    have = "has" if len(since) == 1 else "have"
    longest = duration(now - min(since.values()))
    return f"{some_of(list(since))} {have} not connected to the portal yet, after {longest}, at {address}."


def stale_tasks(facts: Iterable[TaskFact], now: datetime) -> str:
    """Which of the running tasks are stale, and for how long at most, as a sentence; empty where none is."""
    running = [one for one in facts if one.phase == TaskPhase.RUNNING.value]
    since = {f"{one.role}-{one.index}": reported_at for one in running if (reported_at := stale_since(one, now))}
    if not since:
        return ""
    longest = duration(now - min(since.values()))
    if len(since) == 1:
        return f"{next(iter(since))} has sent no heartbeat for {longest}."
    names = some_of(list(since))
    return f"{len(since)} of {len(running)} running tasks have sent no heartbeat for up to {longest}: {names}."

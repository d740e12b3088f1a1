"""Jobs that run and stand still: none of the tasks that train makes progress, prints anything, or uses its processor.

The runners see it, each of its own script (`yardmaster_runner.stalls`). A job is said to stand still only where all of
them do: one task may well wait for another. Reads nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from apps.api.display import duration
from apps.jobs.models import TaskFact
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import TaskPhase
from yardmaster.quantity import some_of

REASON = "TasksStalled"
NAMED = 5
_TRAIN = (Role.CHIEF.value, Role.WORKER.value, Role.DRIVER.value)
_PEER = re.compile(r"/job:(\w+)/replica:\d+/task:(\d+)")


@dataclass(frozen=True)
class Stalled:
    """`message` says which tasks stand still and for how long, `remedy` where to look."""

    message: str
    remedy: str


def stalled_since(fact: TaskFact) -> datetime | None:
    """Since when a running task stands still; None where it does not."""
    since = (fact.reported.get("stalled") or {}).get("since")
    is_running = fact.phase == TaskPhase.RUNNING.value and fact.state == "running"
    return datetime.fromtimestamp(since, UTC) if is_running and since else None


def waits_for(fact: TaskFact) -> str:
    """The task that this one says it waits for, as the portal calls it; empty where it says none."""
    peer = (fact.reported.get("stalled") or {}).get("peer", "")
    found = _PEER.match(peer)
    return f"{found[1]}-{found[2]}" if found else peer


def stalled_tasks(facts: Iterable[TaskFact], now: datetime) -> Stalled | None:
    """What to say of a running job; None while any task that trains moves."""
    training = [one for one in facts if one.role in _TRAIN and one.phase == TaskPhase.RUNNING.value]
    since = {f"{one.role}-{one.index}": at for one in training if (at := stalled_since(one)) is not None}
    led = any(one.role == Role.CHIEF.value and stalled_since(one) is not None for one in training)
    if not since or (len(since) < len(training) and not led):
        return None
    names = some_of(list(since))
    long = duration(now - max(since.values()))
    peers = sorted({waits_for(one) for one in training} - {""})
    if peers:
        verb = "waits" if len(since) == 1 else "wait"
        return Stalled(
            f"{names} {verb} for {', '.join(peers[:NAMED])}, and nothing has moved for {long}.",
            f"See the log of {peers[0]}: if it failed or starts no server, correct that and relaunch. Check that the "
            "job has this task, and that the script takes its addresses from TF_CONFIG or its flags.",
        )
    have = "has" if len(since) == 1 else "have"
    return Stalled(
        f"{names} {have} made no progress, printed nothing and used next to no processor time for {long}.",
        "The end of each task's log says where its threads stand. A collective that waits for a worker, a queue that "
        "is never filled, or a connection that does not answer are usual causes.",
    )

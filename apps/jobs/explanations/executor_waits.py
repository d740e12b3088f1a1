"""Jobs whose Spark driver runs, and waits for executors of a registered cluster: other applications have them.

The runner sees it (`yardmaster_runner.spark.granted`). Reads nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from apps.api.display import duration
from apps.jobs.models import TaskFact
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import TaskPhase

REASON = "WaitingForExecutors"


@dataclass(frozen=True)
class ExecutorWait:
    """`message` says how many executors lack and since when, `remedy` what helps."""

    message: str
    remedy: str


def executor_wait(spec: Mapping[str, Any], facts: Iterable[TaskFact], now: datetime) -> ExecutorWait | None:
    """What to say of a running job with this specification; None where its driver lacks no executors."""
    named = spec.get("spark") or {}
    for fact in facts if named else ():
        said = fact.reported.get("executors")
        if said and fact.role == Role.DRIVER.value and fact.phase == TaskPhase.RUNNING.value:
            long = duration(now - datetime.fromtimestamp(said["since"], UTC))
            return ExecutorWait(
                f"For {long} the Spark cluster {named['cluster']} has given {said['given']} of {said['wanted']} "
                "executors: other applications have the rest of it, or no worker there is that large.",
                "Wait until others have ended there, or stop the job and ask for fewer or smaller executors.",
            )
    return None

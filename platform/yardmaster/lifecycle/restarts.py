"""What to do when a task has ended: nothing, restart it, or restart the whole cluster. Pure; a supervisor asks.

A job's restarts are one budget (`retries`), spent by all its tasks together; a restart of the whole cluster costs one.

A task that has ended well is never started again, alone or with the cluster. Where the others could not continue
without it (the collectives of `multi_worker_mirrored` need every member), starting them would only make them wait for
ever, so that the loss is the job's failure at once: the checkpoint is there, and a new attempt continues from it.

Not here: what the exit means for the job (`success`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from yardmaster.backoff import delay
from yardmaster.job.spec import Role, Strategy, TrainingSpec
from yardmaster.job.strategy import ROLES, Scope
from yardmaster.lifecycle.failures import REASONS, reason_of_exit

Task = tuple[Role, int]
SAME_FAILURE = "SameFailure"
_LONGEST_SIGNATURE = 64
LONGEST_DELAY = timedelta(seconds=60)


class Restart(StrEnum):
    """The outcome of a task's end."""

    NONE_SUCCEEDED = "none_succeeded"
    """It ended well."""
    NONE_FAILED = "none_failed"
    """It failed for good: no restart can help, or none is left."""
    TASK = "task"
    """Restart this task alone, after `restart_delay`."""
    CLUSTER = "cluster"
    """Stop what still runs of the cluster, then restart `tasks_to_restart` together, after `restart_delay`."""


@dataclass(frozen=True)
class Trace:
    """What tells one failure of a script from another. `signature` is the same for the same traceback, and empty where
    there is none, or the next start may well do better; `reached` is how far the task came (its largest step)."""

    signature: str = ""
    reached: int = 0

    @classmethod
    def in_note(cls, note: Mapping[str, Any]) -> Trace:
        """As the runner's note has it; anything else is no trace."""
        signature, reached = note.get("signature"), note.get("reached", 0)
        if not isinstance(signature, str) or not isinstance(reached, int) or len(signature) > _LONGEST_SIGNATURE:
            return cls()
        return cls(signature, reached)

    def reason_after(self, earlier: Trace, reason: str) -> str:
        """The reason of a failure whose task had failed before as `earlier` says: the same way again, without a step
        of progress, is what no restart can mend."""
        is_same = bool(self.signature) and self.signature == earlier.signature and self.reached <= earlier.reached
        return SAME_FAILURE if is_same and not (reason in REASONS and REASONS[reason].permanent) else reason


NO_TRACE = Trace()


def has_restart_left(retries: int, spent: int) -> bool:
    """Whether one more task of the attempt may be restarted, after `spent` restarts of all its tasks together."""
    return spent < retries


def after_exit(
    spec: TrainingSpec,
    role: Role,
    index: int,
    exit_code: int | None,
    reason: str,
    restarts_spent: int,
    succeeded: Collection[Task] = (),
) -> Restart:
    """What follows the end of one task. `exit_code` None: it vanished; `reason` is a word of `failures`, or "".

    The reason is believed before the exit code: a script may itself end with a number that the runner uses.
    `succeeded` are the tasks that have ended well so far.
    """
    if exit_code == 0:
        return Restart.NONE_SUCCEEDED
    word = reason if reason in REASONS else reason_of_exit(exit_code)
    if REASONS[word].permanent or not has_restart_left(spec.retries, restarts_spent):
        return Restart.NONE_FAILED
    if ROLES[spec.strategy][role].on_loss is Scope.TASK:
        return Restart.TASK
    if spec.strategy is Strategy.MULTI_WORKER_MIRRORED and any(one in succeeded for one in _cluster(spec)):
        return Restart.NONE_FAILED
    return Restart.CLUSTER


def tasks_to_restart(
    spec: TrainingSpec, restart: Restart, role: Role, index: int, succeeded: Collection[Task] = ()
) -> list[Task]:
    """The tasks that `restart` restarts. Never one that has ended well; never the evaluator with the cluster."""
    if restart is Restart.TASK:
        return [(role, index)]
    if restart is Restart.CLUSTER:
        return [task for task in _cluster(spec) if task not in succeeded]
    return []


def _cluster(spec: TrainingSpec) -> list[Task]:
    return [(role, index) for role, index in spec.tasks() if ROLES[spec.strategy][role].has_server]


def restart_delay(restarts: int) -> timedelta:
    """How long to wait before the next restart, after `restarts` of them: 1 s, 2 s, 4 s, … never more than a minute."""
    return delay(restarts, timedelta(seconds=1), LONGEST_DELAY)

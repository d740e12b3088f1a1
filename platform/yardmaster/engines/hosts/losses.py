"""What follows the loss of machines: which tasks start again, and whether with all others. Pure.

The rules are those of a task that vanished (`lifecycle.restarts`). Tasks find each other by address, so that those of a
job with servers start again all together, which costs one restart; where there are none, only what was lost does.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from yardmaster.engines.supervision.facts import Facts, Task, fresh
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.strategy import server_roles
from yardmaster.lifecycle.phases import TaskPhase
from yardmaster.lifecycle.restarts import Restart, after_exit

LOST = "Lost"


@dataclass(frozen=True)
class Aftermath:
    """`facts`: of all tasks, after the loss. `starts_again`: those that have to be placed once more."""

    facts: Mapping[Task, Facts]
    starts_again: frozenset[Task]


def aftermath(
    spec: TrainingSpec, facts: Mapping[Task, Facts], lost: Collection[Task], messages: Mapping[Task, str]
) -> Aftermath:
    """`lost` are tasks that had not ended and are on lost machines; `messages` says of each why."""
    after = {task: facts.get(task) or fresh(*task) for task in spec.tasks()}
    again: set[Task] = set()
    is_gang = bool(server_roles(spec))
    for task in spec.tasks():
        if task not in lost or task in again:
            continue
        if _restart(spec, after, task) is Restart.NONE_FAILED:
            after[task] = _ended(after[task], messages[task])
        elif is_gang:
            # With their addresses changed, none of those that run finds the others any more.
            again = {one for one in spec.tasks() if not after[one].state.phase.is_ended}
            generation = 1 + max(one.generation for one in after.values())
            after |= {one: _again(after[one], messages.get(one, ""), generation) for one in again}
        else:
            again.add(task)
            after[task] = replace(_again(after[task], messages[task], 0), spent=after[task].spent + 1)
    return Aftermath(after, frozenset(again))


def spent_of(facts: Collection[Facts]) -> int:
    """How many of the job's restarts were used: of single tasks, and of all together."""
    return sum(one.spent for one in facts) + max((one.generation for one in facts), default=0)


def _restart(spec: TrainingSpec, facts: Mapping[Task, Facts], task: Task) -> Restart:
    succeeded = [one for one, known in facts.items() if known.state.phase is TaskPhase.SUCCEEDED]
    return after_exit(spec, *task, None, LOST, spent_of(list(facts.values())), succeeded)


def _ended(facts: Facts, message: str) -> Facts:
    ended = facts.with_state(phase=TaskPhase.FAILED, reason=LOST, message=message, exit_code=None)
    return replace(ended, leader=None, recalled=False)


def _again(facts: Facts, message: str, generation: int) -> Facts:
    state = facts.state
    started = state.phase is TaskPhase.RUNNING
    again = facts.with_state(
        phase=TaskPhase.PENDING,
        reason=LOST if message else state.reason,
        message=message or state.message,
        exit_code=None,
        restarts=state.restarts + (1 if started else 0),
    )
    return replace(again, leader=None, recalled=False, start_at=0.0, generation=generation)

"""What the machines of a run say, put together: what has become of its tasks, and what each machine has to hear of the
others. Pure, of (placement, reports, now).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from yardmaster.engines.hosts.records import Placement
from yardmaster.engines.supervision.facts import Facts, Others, Task, fresh, task_name, task_of
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import Observation, TaskPhase, TaskState

_NEVER = 1 << 30


@dataclass(frozen=True)
class Report:
    """What one machine says of its part of a run, or said last. `tasks` None: it has nothing of it.

    `away_since`: it does not answer now (seconds since 1970), `why` not. `offset`: seconds that its clock is ahead.
    """

    tasks: Mapping[Task, Facts] | None
    message: str = ""
    offset: float = 0.0
    away_since: float | None = None
    why: str = ""


def report_in(data: Mapping[str, Any] | None, offset: float = 0.0) -> Report:
    """As an agent sent it. A task that it describes in no known way reads as never started."""
    if data is None:
        return Report(None)
    tasks = {}
    for name, one in data["tasks"].items():
        role, index = task_of(name)
        try:
            tasks[role, index] = Facts.from_json(role, index, one)
        except (KeyError, TypeError, ValueError, AttributeError):
            tasks[role, index] = fresh(role, index)
    return Report(tasks, str(data.get("message", "")), offset)


def observation(placement: Placement, reports: Mapping[str, Report], now: float, lost_after: timedelta) -> Observation:
    """The run as it is. A part that its machine does not have makes it incomplete: a repeated submission makes that
    part. The tasks of a machine that has been away for longer than `lost_after` are lost."""
    states: dict[Task, TaskState] = {}
    messages: list[str] = []
    missing = [machine for machine in placement.shares if reports[machine].tasks is None]
    for machine, share in placement.shares.items():
        report = reports[machine]
        lost = report.away_since is not None and now - report.away_since > lost_after.total_seconds()
        for name in share.tasks if report.tasks is not None else ():
            task = task_of(name)
            facts = report.tasks.get(task) if report.tasks else None
            state = (facts or fresh(*task)).state
            if lost and not state.phase.is_ended:
                state = replace(state, phase=TaskPhase.FAILED, reason="Lost", message=_lost(machine, report))
            states[task] = _on(state, machine, report.offset)
        if report.away_since is not None:
            messages.append(_away(machine, report))
        elif report.message:
            messages.append(f"{machine}: {report.message}")
    messages += [f"The machine {machine} has nothing of this job." for machine in missing]
    return Observation(not missing, tuple(states[task] for task in in_order(states)), " ".join(messages))


def others_of(placement: Placement, reports: Mapping[str, Report]) -> dict[str, Others]:
    """What each machine of a run on several has to hear of the others, by machine. Nothing while one of them has not
    said anything yet."""
    known = {machine: reports[machine].tasks for machine in placement.shares}
    if len(known) < 2 or any(tasks is None for tasks in known.values()):
        return {}
    every = [
        (machine, task_name(*one), facts) for machine, tasks in known.items() for one, facts in (tasks or {}).items()
    ]
    generation = max((facts.generation for _, _, facts in every), default=0)
    with_server = {task for share in placement.shares.values() for task in share.ports}
    found = {}
    for machine in known:
        others = [(task, facts) for name, task, facts in every if name != machine]
        found[machine] = Others(
            spent=sum(facts.spent for _, facts in others),
            succeeded=frozenset(task for task, facts in others if facts.state.phase is TaskPhase.SUCCEEDED),
            generation=generation,
            cleared=min([generation, *(_cleared(facts) for task, facts in others if task in with_server)]),
        )
    return found


def in_order(tasks: Iterable[Task]) -> list[Task]:
    """As specifications list them: by role, then by index."""
    roles = list(Role)
    return sorted(tasks, key=lambda task: (roles.index(task[0]), task[1]))


def _cleared(facts: Facts) -> int:
    """Nothing of a generation before this one runs of the task."""
    if facts.state.phase.is_ended:
        return _NEVER
    return facts.generation - 1 if facts.recalled else facts.generation


def _on(state: TaskState, machine: str, offset: float) -> TaskState:
    """With its machine, and its times by the portal's clock where the machine's is wrong by more than it may be."""
    if abs(offset) < _TOLERATED:
        return replace(state, node=machine)
    back = timedelta(seconds=-offset)
    return replace(
        state,
        node=machine,
        started_at=state.started_at and state.started_at + back,
        finished_at=state.finished_at and state.finished_at + back,
    )


_TOLERATED = 2.0


def _away(machine: str, report: Report) -> str:
    return f"The machine {machine} has not answered since {_time(report)}: {report.why}"


def _lost(machine: str, report: Report) -> str:
    return f"The machine {machine}, on which it ran, has not answered since {_time(report)}."


def _time(report: Report) -> str:
    return f"{datetime.fromtimestamp(report.away_since or 0, UTC):%Y-%m-%d %H:%M:%S} UTC"

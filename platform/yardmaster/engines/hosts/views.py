"""What the machines of a run say, put together: what has become of its tasks, and what each machine has to hear of the
others. Pure, of (placement, reports, now).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from yardmaster.engines.hosts.losses import aftermath
from yardmaster.engines.hosts.records import Placement
from yardmaster.engines.supervision.facts import NO_FACTS, Facts, Others, Task, fresh, task_name, task_of
from yardmaster.errors import Unavailable
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import Observation, TaskPhase, TaskState

_NEVER = 1 << 30
_LONGEST_MESSAGE = 2000


@dataclass(frozen=True)
class Report:
    """What one machine says of its part of a run, or said last. `tasks` None: it has nothing of it.

    `away_since`: it does not answer now (seconds since 1970), `why` not; None for a machine that answers, with
    `message` where it said what is wrong. `offset`: seconds that its clock is ahead. `received`: what it was told of
    the others.
    """

    tasks: Mapping[Task, Facts] | None
    message: str = ""
    offset: float = 0.0
    away_since: float | None = None
    why: str = ""
    received: Others = field(default_factory=Others)


def report_in(data: Mapping[str, Any] | None, offset: float = 0.0) -> Report:
    """As an agent sent it. A task that it describes in no known way reads as never started. Raises one of
    `NO_FACTS` where it is no report at all."""
    if data is None:
        return Report(None)
    tasks = {}
    for name, one in data["tasks"].items():
        role, index = task_of(name)
        try:
            tasks[role, index] = Facts.from_json(role, index, one)
        except NO_FACTS:
            tasks[role, index] = fresh(role, index)
    received = Others.from_json(data["others"]) if "others" in data else Others()
    return Report(tasks, str(data.get("message", ""))[:_LONGEST_MESSAGE], offset, received=received)


def lines_in(answer: Any, most: int) -> list[str]:
    """The last lines of a task's output, as an agent sent them. Raises `Unavailable` where they are none."""
    if not isinstance(answer, list) or not all(isinstance(one, str) for one in answer):
        raise Unavailable("A machine sent an invalid answer.", remedy="Check whether its agent was changed.")
    return answer[-most:] if most > 0 else []


def lost_tasks(
    placement: Placement, reports: Mapping[str, Report], now: float, lost_after: timedelta
) -> dict[Task, str]:
    """The tasks that have not ended, of machines that have been away for longer than `lost_after`: why, by task."""
    found = {}
    for machine, share in placement.shares.items():
        report = reports[machine]
        if report.away_since is None or now - report.away_since <= lost_after.total_seconds():
            continue
        for task in map(task_of, share.tasks):
            facts = (report.tasks or {}).get(task)
            if facts is None or not facts.state.phase.is_ended:
                found[task] = _lost(machine, report)
    return found


def facts_of(placement: Placement, reports: Mapping[str, Report]) -> dict[Task, Facts]:
    """What is known of every task: of those that no machine has, what was known when theirs was lost."""
    found = dict(placement.facts)
    for machine, share in placement.shares.items():
        known = reports[machine].tasks or {}
        for task in map(task_of, share.tasks):
            found[task] = known.get(task) or found.get(task) or fresh(*task)
    return found


def observation(placement: Placement, reports: Mapping[str, Report], now: float, lost_after: timedelta) -> Observation:
    """The run as it is. A part that its machine does not have makes it incomplete: a repeated submission makes that
    part, or `restart` where it was to start again. Tasks of lost machines have failed, or wait to be started elsewhere
    (`losses`)."""
    missing = [machine for machine in placement.shares if _has_nothing(placement, machine, reports[machine])]
    facts = facts_of(placement, reports)
    lost = lost_tasks(placement, reports, now, lost_after)
    after = aftermath(placement.spec, facts, lost, lost)
    machine_of = placement.tasks()
    states = {}
    for task, one in facts.items():
        machine = machine_of.get(task_name(*task), "")
        # Those that run elsewhere do so until all are started again.
        state = after.facts[task].state if task in lost else one.state
        if not machine or machine not in missing or placement.was_moved:
            states[task] = _on(state, machine, reports[machine]) if machine else state
    messages = [_away(name, one) for name, one in reports.items() if one.away_since is not None]
    messages += [f"{name}: {one.message}" for name, one in reports.items() if one.message and one.away_since is None]
    messages += [f"The machine {machine} has nothing of this job." for machine in missing]
    is_to_make = placement.was_moved and set(missing) <= set(placement.unmade)
    if waiting := len(placement.unplaced()):
        messages.append(f"{waiting} tasks wait for a machine to start on again.")
    ordered = tuple(states[task] for task in in_order(states))
    to_restart = bool(after.starts_again or placement.unplaced() or (missing and is_to_make))
    gangs = max((one.generation for one in facts.values()), default=0)
    return Observation(not missing or is_to_make, ordered, " ".join(messages), to_restart, gang_restarts=gangs)


def _has_nothing(placement: Placement, machine: str, report: Report) -> bool:
    """Whether it says so, or has never said anything else and may never have been asked to make its part."""
    return report.tasks is None or (machine in placement.unmade and report.away_since is not None and not report.tasks)


def others_of(placement: Placement, reports: Mapping[str, Report]) -> dict[str, Others]:
    """What machines of a run on several have to hear of the others and have not received yet, by machine. Nothing while
    one of them has not said anything yet."""
    if any(not reports[machine].tasks for machine in placement.shares):
        return {}
    facts, machine_of = facts_of(placement, reports), placement.tasks()
    generation = max((one.generation for one in facts.values()), default=0)
    with_server = {task_of(task) for share in placement.shares.values() for task in share.ports}
    found = {}
    for machine in placement.shares:
        others = {task: one for task, one in facts.items() if machine_of.get(task_name(*task)) != machine}
        if others and reports[machine].away_since is None:
            news = Others(
                spent=sum(one.spent for one in others.values()),
                succeeded=frozenset(
                    task_name(*task) for task, one in others.items() if one.state.phase is TaskPhase.SUCCEEDED
                ),
                generation=generation,
                cleared=min([generation, *(_cleared(one) for task, one in others.items() if task in with_server)]),
            )
            if reports[machine].received.with_news(news) != reports[machine].received:
                found[machine] = news
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


def _on(state: TaskState, machine: str, report: Report) -> TaskState:
    """With its machine, and its times by the portal's clock where the machine's is wrong by more than it may be."""
    if report.away_since is not None and not state.phase.is_ended and not state.message:
        state = replace(state, message=f"Its machine has not answered since {_time(report)}.")
    if abs(report.offset) < _TOLERATED:
        return replace(state, node=machine)
    back = timedelta(seconds=-report.offset)
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

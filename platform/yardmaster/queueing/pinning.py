"""Jobs that run on certain machines alone, such as a notebook on the one that has its files: what such a job is told
while it waits. Pure.

It waits for those machines and for nothing else. So it keeps nothing of the engine from later jobs (`pools.kept_for`),
counts for no share of it (`order`) and takes no places (`takings`): none of that would bring it closer to its start.
What of the quota it lacks it keeps as any job does, unless its machines have no space for it.

A job that any of several machines takes, such as one of Spark on those that have it (`Only.keeps`), does all that as
other jobs do: else small jobs on these machines could hold up a large one for ever. But not while it would have no
place on those of its machines that take tasks now, whatever ends there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from yardmaster.quantity import some_of
from yardmaster.queueing.decision import MOST_SHOWN, Decision, Fit
from yardmaster.queueing.ledger import Candidate, Code, EngineCapacity, Holder, Ledger
from yardmaster.queueing.placement import Node, Only
from yardmaster.queueing.pools import MACHINE, NODES, TASKS, Shortage, exceeding
from yardmaster.queueing.resources import units_of
from yardmaster.queueing.wording import closed_nodes, listed


def never_pinned(candidate: Candidate, capacity: EngineCapacity) -> Decision | None:
    """Why a job can never start on its machines as these are now; None where it can, or may run on any."""
    only = candidate.only
    if only is None:
        return None
    nodes = _nodes(only, capacity)
    if not nodes:
        return _never(*_missing(only))
    over = _too_large(candidate, nodes)
    if over:
        return _never(f"{_where(only)} A task does not fit there: {listed(over)}.", "Request less.", over)
    if all(any(one.in_all.values()) for one in nodes) and not capacity.idle.fits(candidate.tasks):
        asked, most = sum(one.count for one in candidate.tasks), capacity.idle.most(candidate.tasks)
        message = f"{_where(only)} Even with nothing else running, only {most} of its {asked} tasks fit there at once."
        return _never(message, "Request fewer or smaller tasks.", (Shortage(NODES, TASKS, asked, most, most),))
    return None


def with_machines(decision: Decision, candidate: Candidate, ledger: Ledger) -> Decision:
    """The words of a job that waits for the engine: which machines it waits for, and what they lack. Of other jobs,
    which machines take no tasks now."""
    if decision.code is not Code.WAITING_FOR_CAPACITY:
        return decision
    only = candidate.only
    if only is None:
        words = closed_nodes(ledger.capacity.nodes)
        return replace(decision, message=f"{decision.message} {words}") if words else decision
    nodes = _nodes(only, ledger.capacity)
    lacks = [one for one in decision.numbers if one.pool == MACHINE]
    is_open = any(not one.closed for one in nodes)
    words = f" Not enough is free there: {listed(lacks)}." if is_open and lacks else ""
    if only.keeps and is_open:
        words = words or _not_all(decision.numbers) or f" {decision.message}"
        return replace(decision, message=f"{_where(only)}{words} {closed_nodes(nodes)}".strip())
    return replace(
        decision,
        message=f"{_where(only)}{words} {closed_nodes(nodes)}".strip(),
        remedy="" if is_open else "It starts when the machine takes tasks again.",
        ahead=(),
        ahead_count=0,
        holders=_holders_on(nodes, ledger.holders),
    )


def _nodes(only: Only, capacity: EngineCapacity) -> list[Node]:
    return [one for one in capacity.nodes if one.name in only.names]


def _where(only: Only) -> str:
    names = sorted(only.names)
    if len(names) == 1:
        return f"It runs only on the machine {names[0]}, which has {only.why}."
    return f"It runs only on machines that have {only.why}: {some_of(names)}."


def _not_all(numbers: Iterable[Shortage]) -> str:
    return "".join(
        f" Only {one.unused:.0f} of its {one.needs:.0f} tasks fit there now, and all tasks of a job start together."
        for one in numbers
        if one.pool == NODES
    )


def _missing(only: Only) -> tuple[str, str]:
    names = sorted(only.names)
    if not names:
        return f"No machine has {only.why}.", "Ask an administrator to install it."
    gone = "That machine is not in the list any more." if len(names) == 1 else "None of them is in the list any more."
    return f"{_where(only)} {gone}", "Ask an administrator to list it again, or to give up what is there."


def _too_large(candidate: Candidate, nodes: Sequence[Node]) -> tuple[Shortage, ...]:
    """What a task asks for beyond the machine that comes closest; nothing where one takes it, or has never answered."""
    for task in candidate.tasks:
        asked = units_of(task.size)
        found = [exceeding(MACHINE, asked, units_of(node.total)) for node in nodes if any(node.in_all.values())]
        if found and all(found):
            return min(found, key=lambda over: sum(each.short_by / each.needs for each in over))
    return ()


def _holders_on(nodes: Iterable[Node], holders: Iterable[Holder]) -> tuple[Holder, ...]:
    there = {one.job_id for node in nodes for one in node.bound}
    return tuple([one for one in holders if one.on_engine and one.job_id in there][:MOST_SHOWN])


def _never(message: str, remedy: str, over: tuple[Shortage, ...] = ()) -> Decision:
    return Decision(Fit.NEVER_FITS, Code.NO_MATCHING_FLAVOR, message, remedy, over)

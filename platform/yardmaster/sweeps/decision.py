"""What happens next in a sweep: which trials are launched, which are stopped, whether it pauses or is over.

Pure: asked again with the same state it says the same, so that a look that was interrupted is repeated without harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from yardmaster.sweeps.plan import Metric, Plan
from yardmaster.sweeps.stopping import Curve, hopeless


class TrialState(StrEnum):
    WAITING = "waiting"
    ACTIVE = "active"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    """By a person, or with the sweep."""
    STOPPED_EARLY = "stopped_early"


ENDED = frozenset({TrialState.SUCCEEDED, TrialState.FAILED, TrialState.STOPPED, TrialState.STOPPED_EARLY})


class SweepState(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    """What runs continues; nothing more is launched."""
    STOPPING = "stopping"
    """It is over once the trials that run have ended."""
    ENDED = "ended"


@dataclass(frozen=True)
class Trial:
    """As far as it has come. `curve`: of the metric."""

    number: int
    state: TrialState
    curve: Curve = ()
    is_stopping: bool = False
    """It was asked to stop already."""


@dataclass(frozen=True)
class Decision:
    launch: tuple[int, ...] = ()
    stop: tuple[tuple[int, str], ...] = ()
    """Trials that are stopped early, each with why."""
    pause: str = ""
    """Why it pauses; empty: it does not."""
    finish: str = ""
    """Why nothing more is launched and what runs is stopped; empty: it continues."""
    is_over: bool = False
    """No trial is left that waits or runs."""


def decide(plan: Plan, state: SweepState, trials: Sequence[Trial], failures: int) -> Decision:
    """`failures`: how many of the trials that ended last have failed, in a row, since it was last resumed."""
    active = [one for one in trials if one.state is TrialState.ACTIVE]
    if state is SweepState.ENDED:
        return Decision()
    if state is SweepState.STOPPING:
        return Decision(is_over=not active)
    if reached := _target_reached(plan.metric, trials):
        return Decision(finish=reached, is_over=not active)
    stop = _hopeless(plan, trials)
    waiting = sorted(one.number for one in trials if one.state is TrialState.WAITING)
    if not waiting and not active:
        return Decision(is_over=True)
    if state is SweepState.PAUSED:
        return Decision(stop=stop)
    if plan.stop_after_failures and failures >= plan.stop_after_failures and waiting:
        return Decision(stop=stop, pause=f"{failures} trials in a row have failed.")
    free = max(0, plan.parallel - len(active))
    return Decision(launch=tuple(waiting[:free]), stop=stop)


def _hopeless(plan: Plan, trials: Sequence[Trial]) -> tuple[tuple[int, str], ...]:
    if plan.metric is None:
        return ()
    running = [one.number for one in trials if one.state is TrialState.ACTIVE and not one.is_stopping]
    curves = {one.number: one.curve for one in trials if one.curve}
    return tuple(sorted(hopeless(curves, running, plan.metric, plan.early_stop).items()))


def _target_reached(metric: Metric | None, trials: Sequence[Trial]) -> str:
    if metric is None or metric.target is None:
        return ""
    for one in trials:
        values = [value for _, value in one.curve if value is not None]
        if values and metric.reaches(best := metric.best(values)):
            return f"Trial {one.number} has reached {metric.tag} {best:.5g}."
    return ""

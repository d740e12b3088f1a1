"""Which trials are not worth continuing, by their curves of the metric. Pure, and the same at every look.

A curve has points by step, ascending; a value that is not finite is None. A trial whose newest value is none has
diverged. Not here: whether it still runs, and stopping it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, median

from yardmaster.sweeps.plan import EarlyStop, Goal, Metric, Rule

Curve = Sequence[tuple[int, float | None]]
LEAST_OTHERS = 3
"""Of so many trials at least the median is taken."""


def hopeless(curves: Mapping[int, Curve], running: Sequence[int], metric: Metric, early: EarlyStop) -> dict[int, str]:
    """Which of the running trials are to be stopped, each with why. `curves`: of all trials that have any."""
    found: dict[int, str] = {}
    if early.rule is Rule.NONE:
        return found
    judge = _by_median if early.rule is Rule.MEDIAN else _by_halving
    at_step: dict[int, dict[int, float]] = {}
    for number in running:
        curve = curves.get(number, ())
        if not curve or curve[-1][0] < early.min_steps:
            continue
        if curve[-1][1] is None:
            found[number] = f"{metric.tag} is no finite number at step {curve[-1][0]}."
        elif reason := judge(number, curves, metric, early, at_step):
            found[number] = reason
    return found


def _up_to(curve: Curve, step: int) -> list[float]:
    return [value for at, value in curve if at <= step and value is not None]


def _figures(curves: Mapping[int, Curve], step: int, figure: Callable[[list[float]], float]) -> dict[int, float]:
    """A figure of the values up to the step, of each trial that came so far."""
    return {
        number: figure(values)
        for number, curve in curves.items()
        if curve and curve[-1][0] >= step and (values := _up_to(curve, step))
    }


def _by_median(
    number: int, curves: Mapping[int, Curve], metric: Metric, early: EarlyStop, at_step: dict[int, dict[int, float]]
) -> str:
    """`at_step`: the means that were taken already, by step."""
    step = curves[number][-1][0]
    best = metric.best(_up_to(curves[number], step))
    if step not in at_step:
        at_step[step] = _figures(curves, step, fmean)
    others = [mean for other, mean in at_step[step].items() if other != number]
    if len(others) < LEAST_OTHERS:
        return ""
    middle = median(others)
    if not metric.is_better(middle, best):
        return ""
    return f"At step {step} its best {metric.tag} {best:.5g} is worse than the median {middle:.5g} of the others."


def _by_halving(
    number: int, curves: Mapping[int, Curve], metric: Metric, early: EarlyStop, at_step: dict[int, dict[int, float]]
) -> str:
    """`at_step`: the best values that were found already, by rung."""
    rung = rung_of(curves[number][-1][0], early)
    if rung not in at_step:
        at_step[rung] = _figures(curves, rung, metric.best)
    at_rung = at_step[rung]
    if number not in at_rung or len(at_rung) < early.factor:
        return ""
    sign = 1 if metric.goal is Goal.MINIMIZE else -1
    order = sorted(at_rung, key=lambda one: (sign * at_rung[one], one))
    kept = len(order) // early.factor
    place = order.index(number) + 1
    if place <= kept:
        return ""
    return f"At step {rung} it was number {place} of {len(order)} by {metric.tag}, and {kept} continue."


def rung_of(step: int, early: EarlyStop) -> int:
    """The farthest rung that this step has reached."""
    rung = early.min_steps
    while rung * early.factor <= step:
        rung *= early.factor
    return rung

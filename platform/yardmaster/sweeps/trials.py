"""Which values each trial gets: all combinations of a grid, or as many as asked for at random.

The same seed gives the same trials, on every Python: of the library's generator only `random()` is used, whose sequence
is promised to stay. Not here: how many trials a portal allows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from random import Random

from yardmaster.errors import Problem
from yardmaster.sweeps.space import Choice, Parameter, Range, Scale, SpaceRejected, Value

Values = dict[str, Value]
MOST_SEED = 2**31 - 1
_DRAWS = 20
"""For one trial, until values are found that no other has."""


def grid(space: Sequence[Parameter], most: int) -> list[Values]:
    """Every combination, the last parameter changing fastest. Raises `SpaceRejected` where there are more than `most`,
    or a range has no step."""
    axes = [_axis(one) for one in space]
    count = math.prod(len(axis) for axis in axes)
    if count > most:
        message = f"The grid has {count} combinations, and {most} are allowed."
        remedy = "Remove values, or use the method random."
        raise SpaceRejected([Problem("parameters", "too_many_trials", message, remedy, str(count))])
    names = [one.name for one in space]
    return [dict(zip(names, values, strict=True)) for values in product(*axes)]


def _axis(one: Parameter) -> list[Value]:
    if isinstance(one, Choice):
        return list(one.values)
    steps = one.steps
    if steps is None or one.scale is Scale.LOG:
        message = "A grid needs values, or a range on a linear scale with a step."
        remedy = "Add a step or list the values, or use the method random."
        raise SpaceRejected([Problem(f"parameters.{one.name}", "needs_step", message, remedy)])
    if steps >= 1_000:
        message = f"This range alone has {steps + 1} values."
        raise SpaceRejected([Problem(f"parameters.{one.name}", "too_many_trials", message, "Write a longer step.")])
    return [one.at(number) for number in range(steps + 1)]


def random(space: Sequence[Parameter], count: int, seed: int) -> list[Values]:
    """So many trials, no two alike; fewer where the space has no more."""
    source = Random(seed)
    found: dict[tuple[str, ...], Values] = {}
    for _ in range(count * _DRAWS):
        values = {one.name: _drawn(one, source) for one in space}
        found.setdefault(tuple(repr(one) for one in values.values()), values)
        if len(found) == count:
            break
    return list(found.values())


def _drawn(one: Parameter, source: Random) -> Value:
    share = source.random()
    if isinstance(one, Choice):
        return one.values[int(share * len(one.values))]
    if one.scale is Scale.LOG:
        low, high = math.log(one.low), math.log(one.high)
        return _on_step(one, math.exp(low + share * (high - low)))
    steps = one.steps
    return one.value(one.low + share * (one.high - one.low)) if steps is None else one.at(int(share * (steps + 1)))


def _on_step(one: Range, number: float) -> Value:
    steps = one.steps
    return one.value(number) if steps is None else one.at(min(steps, round((number - one.low) / (one.step or 1))))

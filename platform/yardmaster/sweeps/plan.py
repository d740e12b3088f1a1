"""What a sweep is asked to do beside its space: method, metric, early stop, how many at once, and when it is over.

Read from JSON with every problem named. Not here: the parameters (`space`), what is decided of it (`decision`).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from yardmaster.errors import Problem
from yardmaster.sweeps.space import Parameter, SpaceRejected, space_from_json, space_to_json
from yardmaster.sweeps.trials import MOST_SEED, Values, grid, random

LONGEST_TAG = 200
MOST_STEPS = 10**12
_KEYS = ("parameters", "method", "trials", "seed", "metric", "parallel", "early_stop", "stop_after_failures")
_METRIC = ("tag", "run", "goal", "target")
_EARLY = ("rule", "min_steps", "factor")
Word = TypeVar("Word", bound=StrEnum)


class Method(StrEnum):
    GRID = "grid"
    RANDOM = "random"


class Goal(StrEnum):
    MINIMIZE = "minimize"
    MAXIMIZE = "maximize"


class Rule(StrEnum):
    """Which trials are stopped early. `MEDIAN`: whose best value is worse than the median of the others' means up to
    the same step. `HALVING`: who is not among the best of those that came as far (asynchronous successive halving)."""

    NONE = "none"
    MEDIAN = "median"
    HALVING = "halving"


@dataclass(frozen=True)
class Metric:
    """A scalar that the script writes, and which way it is better."""

    tag: str
    goal: Goal = Goal.MINIMIZE
    run: str | None = None
    """The folder of its event files; None: the first that has the tag."""
    target: float | None = None
    """Once a trial is as good as this, the sweep is over."""

    def is_better(self, one: float, other: float) -> bool:
        return one < other if self.goal is Goal.MINIMIZE else one > other

    def reaches(self, value: float) -> bool:
        return self.target is not None and not self.is_better(self.target, value)

    def best(self, values: list[float]) -> float:
        return min(values) if self.goal is Goal.MINIMIZE else max(values)


@dataclass(frozen=True)
class EarlyStop:
    rule: Rule = Rule.NONE
    min_steps: int = 1
    """No trial is stopped before it has come this far."""
    factor: int = 3
    """Of `HALVING`: one of so many continues, and each rung is so many times as far as the last."""


@dataclass(frozen=True)
class Plan:
    """All that was asked for."""

    space: tuple[Parameter, ...]
    method: Method = Method.GRID
    trials: int = 0
    """Of `RANDOM`."""
    seed: int = 0
    metric: Metric | None = None
    """None: nothing is compared, all trials run to their end."""
    parallel: int = 1
    early_stop: EarlyStop = field(default_factory=EarlyStop)
    stop_after_failures: int = 3
    """So many failed trials in a row pause it; 0: none do."""

    def values(self, most: int) -> list[Values]:
        """Those of every trial. Raises `SpaceRejected` where there are more than `most`."""
        if self.method is Method.RANDOM:
            return random(self.space, self.trials, self.seed)
        return grid(self.space, most)


def plan_from_json(data: object, *, most_trials: int, most_parallel: int) -> Plan:
    """Raises `SpaceRejected` with every problem."""
    reading = _Reading()
    top = reading.keys("", data, _KEYS)
    space: tuple[Parameter, ...] = ()
    try:
        space = space_from_json(top.get("parameters"))
    except SpaceRejected as wrong:
        reading.problems += wrong.problems
    method = reading.word("method", top.get("method", "grid"), Method, Method.GRID)
    is_random = method is Method.RANDOM
    early = reading.keys("early_stop", top.get("early_stop") or {}, _EARLY)
    plan = Plan(
        space=space,
        method=method,
        trials=reading.whole("trials", top.get("trials", 10), 1, most_trials) if is_random else 0,
        seed=reading.whole("seed", top.get("seed", 0), 0, MOST_SEED),
        metric=reading.metric(top.get("metric")),
        parallel=reading.whole("parallel", top.get("parallel", 2), 1, most_parallel),
        early_stop=EarlyStop(
            rule=reading.word("early_stop.rule", early.get("rule", "none"), Rule, Rule.NONE),
            min_steps=reading.whole("early_stop.min_steps", early.get("min_steps", 1), 1, MOST_STEPS),
            factor=reading.whole("early_stop.factor", early.get("factor", 3), 2, 10),
        ),
        stop_after_failures=reading.whole("stop_after_failures", top.get("stop_after_failures", 3), 0, 1_000),
    )
    if plan.early_stop.rule is not Rule.NONE and plan.metric is None:
        reading.refuse("metric", "required", "Stopping early needs a metric.", "Name the tag of a scalar.")
    if reading.problems:
        raise SpaceRejected(reading.problems)
    return plan


def plan_to_json(plan: Plan) -> dict[str, Any]:
    """What `plan_from_json` reads."""
    said: dict[str, Any] = {
        "parameters": space_to_json(plan.space),
        "method": plan.method.value,
        "seed": plan.seed,
        "parallel": plan.parallel,
        "stop_after_failures": plan.stop_after_failures,
        "early_stop": {
            "rule": plan.early_stop.rule.value,
            "min_steps": plan.early_stop.min_steps,
            "factor": plan.early_stop.factor,
        },
    }
    if plan.method is Method.RANDOM:
        said["trials"] = plan.trials
    if plan.metric is not None:
        said["metric"] = {"tag": plan.metric.tag, "goal": plan.metric.goal.value}
        said["metric"] |= {} if plan.metric.run is None else {"run": plan.metric.run}
        said["metric"] |= {} if plan.metric.target is None else {"target": plan.metric.target}
    return said


class _Reading:
    """Reads values that may be anything, and keeps what is wrong with them."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def refuse(self, name: str, code: str, message: str, remedy: str, value: object = "") -> None:
        self.problems.append(Problem(name, code, message, remedy, str(value)[:80]))

    def keys(self, name: str, data: object, known: tuple[str, ...]) -> Mapping[str, Any]:
        if not isinstance(data, Mapping):
            self.refuse(name, "wrong_type", "Expected an object.", f"Its keys are {', '.join(known)}.", data)
            return {}
        for key in data:
            if key not in known:
                path = f"{name}.{key}"[:80].lstrip(".")
                self.refuse(path, "unknown_key", "There is no such key.", f"Known are {', '.join(known)}.", key)
        return {key: data[key] for key in known if key in data}

    def whole(self, name: str, value: object, least: int, most: int) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
            return value
        self.refuse(name, "out_of_range", f"This must be a whole number from {least} to {most}.", "Correct it.", value)
        return least

    def word(self, name: str, value: object, words: type[Word], stand_in: Word) -> Word:
        known = {one.value: one for one in words}
        if isinstance(value, str) and value in known:
            return known[value]
        self.refuse(name, "unknown_word", f"This must be one of {', '.join(known)}.", "Choose one of them.", value)
        return stand_in

    def metric(self, data: object) -> Metric | None:
        if data is None:
            return None
        said = self.keys("metric", data, _METRIC)
        tag, run, target = (said.get(key) for key in ("tag", "run", "target"))
        if not isinstance(tag, str) or not 1 <= len(tag) <= LONGEST_TAG or "\0" in tag:
            message = f"This must be the tag of a scalar, up to {LONGEST_TAG} characters."
            self.refuse("metric.tag", "bad_value", message, "Write it as the script does, such as loss.", tag)
        if run is not None and (not isinstance(run, str) or len(run) > LONGEST_TAG or "\0" in run):
            message = f"This must be the folder of the event files, up to {LONGEST_TAG} characters."
            self.refuse("metric.run", "bad_value", message, "Leave it out, or write it such as validation.", run)
        is_number = isinstance(target, (int, float)) and not isinstance(target, bool)
        if target is not None and not (is_number and abs(target) <= sys.float_info.max):
            self.refuse("metric.target", "bad_value", "This must be a number.", "Correct it, or leave it out.", target)
            target = None
        goal = self.word("metric.goal", said.get("goal", "minimize"), Goal, Goal.MINIMIZE)
        return Metric(str(tag), goal, run, None if target is None else float(target))

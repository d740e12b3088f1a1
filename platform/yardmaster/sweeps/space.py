"""What a sweep may try: parameters by name, each with values to choose from or with a range.

A range may be written as text, the same on every page, in the API and on the command line: `0.1, 0.01`, `1..8`,
`16..256 step 16`, `0.0001..0.1 log`. Not here: which of these values a trial gets (`trials`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from yardmaster.errors import Problem

Value = str | int | float | bool

MOST_PARAMETERS = 20
MOST_VALUES = 100
LONGEST_NAME = 64
LONGEST_VALUE = 200
LONGEST_TEXT = 2_000
LONGEST_RANGE = 200
"""Of a text that is a range."""
HUGE = 1e15
MOST_STEPS = 2 * HUGE
"""Of a range: as many as whole numbers are allowed."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")
_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?"
"""It splits digits in one way alone, so that no text takes long to be told from it."""
_RANGE = re.compile(rf"\s*({_NUMBER})\s*\.\.\s*({_NUMBER})((?:\s+(?:log|step\s+{_NUMBER})){{0,4}})\s*\Z")
_STEP = re.compile(rf"step\s+({_NUMBER})")
_KEYS = frozenset({"type", "values", "low", "high", "step", "scale"})


class Scale(StrEnum):
    """How the values of a range lie: evenly, or evenly by their logarithm."""

    LINEAR = "linear"
    LOG = "log"


@dataclass(frozen=True)
class Choice:
    """One of these values."""

    name: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Range:
    """A number from `low` to `high`, both included; with a `step` only those that lie so many steps above `low`."""

    name: str
    low: float
    high: float
    is_whole: bool = False
    scale: Scale = Scale.LINEAR
    step: float | None = None

    def __post_init__(self) -> None:
        if self.is_whole and self.step is None and self.scale is Scale.LINEAR:
            object.__setattr__(self, "step", 1)

    @property
    def steps(self) -> int | None:
        """How many steps lie between its ends; None where every number between them is meant."""
        return None if not self.step else math.floor((self.high - self.low) / self.step + 1e-9)

    def at(self, number: int) -> Value:
        """The value so many steps above the lowest."""
        return self.value(self.low + number * (self.step or 0))

    def value(self, number: float) -> Value:
        """The number as a trial gets it: the same on every machine, whose logarithms may differ in the last digit."""
        kept = min(max(number, self.low), self.high)
        return round(kept) if self.is_whole else float(f"{kept:.8g}")


Parameter = Choice | Range


class SpaceRejected(ValueError):
    """What a user wrote is no space. Carries every problem."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(one.message for one in problems))
        self.problems = problems


def space_from_json(data: object) -> tuple[Parameter, ...]:
    """Read parameters by name, in their order. Raises `SpaceRejected`."""
    if not isinstance(data, Mapping) or not data:
        raise SpaceRejected([_problem("", "required", "A sweep needs at least one parameter.", "Add one.")])
    if len(data) > MOST_PARAMETERS:
        message = f"A sweep has {MOST_PARAMETERS} parameters at most, and {len(data)} are given."
        raise SpaceRejected([_problem("", "too_many", message, "Remove some.", str(len(data)))])
    problems: list[Problem] = []
    found: list[Parameter] = []
    for name, said in data.items():
        try:
            found.append(_parameter(name, said))
        except SpaceRejected as wrong:
            problems += wrong.problems
    if problems:
        raise SpaceRejected(problems)
    return tuple(found)


def space_to_json(space: tuple[Parameter, ...]) -> dict[str, dict[str, object]]:
    """What `space_from_json` reads."""
    return {one.name: _to_json(one) for one in space}


def _to_json(one: Parameter) -> dict[str, object]:
    if isinstance(one, Choice):
        return {"values": list(one.values)}
    kind = "integer" if one.is_whole else "number"
    said: dict[str, object] = {"type": kind, "low": one.low, "high": one.high, "scale": one.scale.value}
    return said if one.step is None else {**said, "step": one.step}


def words_of(one: Parameter) -> str:
    """A parameter as text. Of values that hold a comma it is for reading alone."""
    if isinstance(one, Choice):
        return ", ".join(text_of(value) for value in one.values)
    said = f"{one.low:g}..{one.high:g}"
    said += f" step {one.step:g}" if one.step and not (one.is_whole and one.step == 1) else ""
    return f"{said} log" if one.scale is Scale.LOG else said


def text_of(value: Value) -> str:
    """A value as it stands in an argument or a variable."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _parameter(name: object, said: object) -> Parameter:
    if not isinstance(name, str) or not _NAME.match(name) or len(name) > LONGEST_NAME:
        message = f"A name has up to {LONGEST_NAME} letters, digits, dots, dashes and underscores."
        raise SpaceRejected([_problem("", "bad_name", message, "Use the name of a flag, such as lr.", str(name))])
    if isinstance(said, str):
        return _of_text(name, said)
    if isinstance(said, (list, tuple)):
        return _choice(name, said)
    if not isinstance(said, Mapping):
        message = "Expected values, a range, or a text such as 0.1, 0.01."
        raise SpaceRejected([_problem(name, "wrong_type", message, "Use one of these forms.", str(said))])
    if unknown := sorted(str(key) for key in said if key not in _KEYS):
        remedy = f"Known are {', '.join(sorted(_KEYS))}."
        raise SpaceRejected([_problem(name, "unknown_key", "There is no such key.", remedy, unknown[0])])
    return _choice(name, said["values"]) if "values" in said else _of_keys(name, said)


def _of_text(name: str, text: str) -> Parameter:
    if len(text) > LONGEST_TEXT:
        message = f"A text of values has {LONGEST_TEXT} characters at most."
        raise SpaceRejected([_problem(name, "too_long", message, "Write fewer values.", text)])
    if len(text) <= LONGEST_RANGE and (found := _RANGE.match(text)):
        low, high, rest = found.groups()
        step = _STEP.search(rest)
        said = (low, high, *((step[1],) if step else ()))
        kind = "integer" if all(re.fullmatch(r"[+-]?\d+", one) for one in said) else "number"
        keys: dict[object, object] = {"type": kind, "low": float(low), "high": float(high)}
        keys |= {"step": float(step[1])} if step else {}
        return _of_keys(name, keys | ({"scale": "log"} if "log" in rest else {}))
    return _choice(name, [_typed(one.strip()) for one in text.split(",") if one.strip()])


def _typed(text: str) -> Value:
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"[+-]?\d{1,15}", text):
        return int(text)
    return float(text) if re.fullmatch(_NUMBER, text) else text


def _choice(name: str, values: object) -> Choice:
    if not isinstance(values, (list, tuple)) or not values:
        message = "There is no value to choose from."
        raise SpaceRejected([_problem(name, "required", message, "Enter some, such as 0.1, 0.01.")])
    if len(values) > MOST_VALUES:
        message = f"A parameter has {MOST_VALUES} values at most, and {len(values)} are given."
        raise SpaceRejected([_problem(name, "too_many", message, "Use a range.", str(len(values)))])
    if problems := list(_bad_values(name, values)):
        raise SpaceRejected(problems)
    return Choice(name, tuple({text_of(one): one for one in values}.values()))


def _bad_values(name: str, values: list[object] | tuple[object, ...]) -> Iterator[Problem]:
    for one in values:
        is_number = isinstance(one, (int, float)) and (isinstance(one, bool) or _is_usual(one))
        is_text = isinstance(one, str) and one.isprintable() and 1 <= len(one) <= LONGEST_VALUE
        if not is_number and not is_text:
            message = f"A value is a number, true, false, or a text of up to {LONGEST_VALUE} printable characters."
            yield _problem(name, "bad_value", message, "Correct the value.", str(one))


def _of_keys(name: str, said: Mapping[object, object]) -> Range:
    kind, scale = said.get("type", "number"), said.get("scale", "linear")
    if kind not in ("integer", "number") or scale not in ("linear", "log"):
        message = "A range has the type integer or number, and the scale linear or log."
        raise SpaceRejected([_problem(name, "bad_range", message, "Correct type and scale.", f"{kind}, {scale}")])
    numbers = {key: said.get(key) for key in ("low", "high", "step")}
    for key, one in numbers.items():
        if not _is_usual(one) and not (key == "step" and one is None):
            message = f"{key} is a number below {HUGE:g}."
            raise SpaceRejected([_problem(name, "bad_range", message, "Write low and high.", str(one))])
        if kind == "integer" and one is not None and not float(one).is_integer():  # type: ignore[arg-type]
            message = f"{key} of an integer is a whole number."
            raise SpaceRejected([_problem(name, "bad_range", message, "Use the type number.", str(one))])
    low, high, step = numbers["low"], numbers["high"], numbers["step"]
    assert isinstance(low, (int, float))
    assert isinstance(high, (int, float))
    wrong = _wrong_range(low, high, step, scale == "log")  # type: ignore[arg-type]
    if wrong:
        raise SpaceRejected([_problem(name, "bad_range", wrong, "Correct its ends or its step.", f"{low:g}..{high:g}")])
    return Range(name, float(low), float(high), kind == "integer", Scale(scale), None if step is None else float(step))  # type: ignore[arg-type]


def _wrong_range(low: float, high: float, step: float | None, is_log: bool) -> str:
    if low >= high:
        return "The low end of a range must be below its high end."
    if is_log and low <= 0:
        return "A range on a log scale must be above zero."
    if step is not None and not 0 < step <= high - low:
        return "A step must be above zero and not larger than the range."
    if step is not None and (high - low) / step > MOST_STEPS:
        return "A range has too many steps."
    return ""


def _is_usual(one: object) -> bool:
    is_number = isinstance(one, (int, float)) and not isinstance(one, bool)
    return is_number and -HUGE < one < HUGE  # type: ignore[operator]


def _problem(name: str, code: str, message: str, remedy: str, value: str = "") -> Problem:
    return Problem(f"parameters.{name}" if name else "parameters", code, message, remedy, value[:80])

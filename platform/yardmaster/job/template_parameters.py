"""Parameters of job templates: how they are declared, and whether the values of a launch are valid.

Values come as JSON or as texts of a form or a command line; both read the same. Everything is bounded. Not here: where
values go (`template_filling`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from yardmaster.errors import Problem, SpecRejected
from yardmaster.job.spec_limits import shorten

MOST, LONGEST_TEXT, LONGEST_HELP, MOST_CHOICES, LONGEST_NAME = 20, 1_000, 200, 50, 63
INTEGER, NUMBER, TEXT, CHOICE, BOOLEAN = "integer", "number", "text", "choice", "boolean"
KINDS = {INTEGER: "Whole number", NUMBER: "Number", TEXT: "Text", CHOICE: "Choice", BOOLEAN: "Yes or no"}
_KEYS = ("name", "kind", "default", "minimum", "maximum", "choices", "help")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?([0-9]{1,18}(\.[0-9]{0,18})?|\.[0-9]{1,18})([eE][+-]?[0-9]{1,3})?")
_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_LARGEST = 10**18

Value = int | float | str | bool


@dataclass(frozen=True)
class Parameter:
    """One parameter. `default` None: a launch must give a value. `minimum` and `maximum` bound a number, or the length
    of a text in characters."""

    name: str
    kind: str
    default: Value | None = None
    minimum: int | float | None = None
    maximum: int | float | None = None
    choices: tuple[str, ...] = ()
    help: str = ""


def parameters_from_json(data: object) -> tuple[Parameter, ...]:
    """The declared parameters. Accepts any value; raises `SpecRejected` with every problem."""
    if not isinstance(data, list):
        raise SpecRejected([Problem("parameters", "wrong_type", "Parameters are a list.", "Send a list of objects.")])
    if len(data) > MOST:
        message = f"A template has at most {MOST} parameters."
        raise SpecRejected([Problem("parameters", "too_many", message, "Declare fewer.", str(len(data)))])
    problems: list[Problem] = []
    found = [_declared(f"parameters.{index}", one, problems) for index, one in enumerate(data)]
    names: set[str] = set()
    for index, one in enumerate(found):
        if one is not None and one.name in names:
            message = "Two parameters have this name."
            problems.append(Problem(f"parameters.{index}.name", "duplicate", message, "Rename one.", one.name))
        names |= set() if one is None else {one.name}
    if problems:
        raise SpecRejected(problems)
    return tuple(one for one in found if one is not None)


def parameters_to_json(parameters: Iterable[Parameter]) -> list[dict[str, Any]]:
    """The form that `parameters_from_json` reads."""
    return [{key: list(one.choices) if key == "choices" else getattr(one, key) for key in _KEYS} for one in parameters]


def values_of(parameters: Sequence[Parameter], given: Mapping[str, Any]) -> dict[str, Value]:
    """The value of every parameter: the given one, else its default. Raises `SpecRejected` for what is missing, not
    declared, or not valid, with the fields `parameters.<name>`."""
    known = {one.name: one for one in parameters}
    problems = [
        Problem(
            f"parameters.{shorten(str(name), LONGEST_NAME)}", "unknown_parameter",
            "The template has no parameter of this name.", f"Its parameters are: {', '.join(known) or 'none'}.",
        )
        for name in list(given)[: 2 * MOST] if name not in known
    ]  # fmt: skip
    values: dict[str, Value] = {}
    for one in parameters:
        field = f"parameters.{one.name}"
        if given.get(one.name) is None:
            if one.default is None:
                problems.append(Problem(field, "required", f"{one.name} has no default.", "Give a value."))
            else:
                values[one.name] = one.default
            continue
        value = _read(one, given[one.name], field, problems)
        if value is not None:
            values[one.name] = value
    if problems:
        raise SpecRejected(problems)
    return values


def sample_values(parameters: Iterable[Parameter]) -> dict[str, Value]:
    """A valid value of each, for checking a template before anyone has given values."""
    return {one.name: one.default if one.default is not None else _sample(one) for one in parameters}


def written(value: Value) -> str:
    """The value as it stands in an argument or a variable."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _sample(one: Parameter) -> Value:
    if one.kind == CHOICE:
        return one.choices[0]
    if one.kind == TEXT:
        return "x" * int(max(one.minimum or 0, 1))
    if one.kind == BOOLEAN:
        return False
    low, high = one.minimum, one.maximum
    return low if low is not None else high if high is not None else 1


def _declared(field: str, data: object, problems: list[Problem]) -> Parameter | None:
    """The parameter, or None where what was found is among the problems."""
    before = len(problems)
    if not isinstance(data, Mapping):
        problems.append(Problem(field, "wrong_type", "A parameter is an object.", f"Its keys are {', '.join(_KEYS)}."))
        return None
    for key in data:
        if key not in _KEYS:
            remedy = f"Its keys are {', '.join(_KEYS)}."
            problems.append(Problem(field, "unknown_key", "A parameter has no such key.", remedy, shorten(str(key))))
    name, kind = data.get("name"), data.get("kind", TEXT)
    if not (isinstance(name, str) and _NAME.fullmatch(name)):
        message = f"A name has letters, digits and underscores, at most {LONGEST_NAME}, and begins with no digit."
        problems.append(Problem(f"{field}.name", "bad_name", message, "Use a name such as lr.", shorten(str(name))))
    if not (isinstance(kind, str) and kind in KINDS):
        message, remedy = "There is no such kind of parameter.", f"Use one of {', '.join(KINDS)}."
        problems.append(Problem(f"{field}.kind", "bad_kind", message, remedy, shorten(str(kind))))
    if len(problems) > before:
        return None
    assert isinstance(name, str)
    made = Parameter(
        name, str(kind), None, *_bounds(field, str(kind), data, problems), _choices(field, str(kind), data, problems),
        _help(field, data, problems),
    )  # fmt: skip
    if len(problems) > before:
        return None
    default = data.get("default")
    if default is None or (default == "" and made.kind != TEXT):
        return made
    value = _read(made, default, f"{field}.default", problems)
    return None if value is None else Parameter(**{**made.__dict__, "default": value})


def _bounds(
    field: str, kind: str, data: Mapping[Any, Any], problems: list[Problem]
) -> tuple[int | float | None, int | float | None]:
    found: list[int | float | None] = []
    for key in ("minimum", "maximum"):
        said = data.get(key)
        if said is None or said == "":
            found.append(None)
            continue
        number = None if kind in (CHOICE, BOOLEAN) else _number(said, whole=kind in (INTEGER, TEXT))
        if number is None or (kind == TEXT and not 0 <= number <= LONGEST_TEXT):
            message = {
                CHOICE: "A choice has no bounds.", BOOLEAN: "Yes or no has no bounds.",
                TEXT: f"The length of a text is from 0 to {LONGEST_TEXT}.",
            }.get(kind, "This is no number that can be a bound.")  # fmt: skip
            problems.append(Problem(f"{field}.{key}", "bad_bound", message, "Correct or remove it.", _shown(said)))
        found.append(number)
    low, high = found
    if low is not None and high is not None and low > high:
        message = "The smallest value is above the largest one."
        problems.append(Problem(f"{field}.minimum", "bad_bound", message, "Exchange them.", str(low)))
    return low, high


def _choices(field: str, kind: str, data: Mapping[Any, Any], problems: list[Problem]) -> tuple[str, ...]:
    said = data.get("choices") or []
    is_fine = isinstance(said, list) and len(said) <= MOST_CHOICES
    is_fine = is_fine and all(isinstance(one, str) and 0 < len(one) <= LONGEST_HELP for one in said)
    if not is_fine or len(set(said)) != len(said):
        message = f"Choices are at most {MOST_CHOICES} different texts of 1 to {LONGEST_HELP} characters."
        problems.append(Problem(f"{field}.choices", "bad_choices", message, "Correct them."))
        return ()
    if kind == CHOICE and not said:
        message = "A choice has at least one text to choose."
        problems.append(Problem(f"{field}.choices", "required", message, "Name the texts, such as adam and sgd."))
    if kind != CHOICE and said:
        message = "Only a parameter of the kind choice has choices."
        problems.append(Problem(f"{field}.choices", "bad_choices", message, "Remove them, or change the kind."))
    return tuple(said)


def _help(field: str, data: Mapping[Any, Any], problems: list[Problem]) -> str:
    said = data.get("help") or ""
    if isinstance(said, str) and len(said) <= LONGEST_HELP:
        return said
    message = f"The help is a text of at most {LONGEST_HELP} characters."
    problems.append(Problem(f"{field}.help", "too_long", message, "Shorten it."))
    return ""


def _read(one: Parameter, said: object, field: str, problems: list[Problem]) -> Value | None:
    value = _READERS[one.kind](said)
    if value is None:
        message = f"{one.name} is {_EXPECTED[one.kind]}."
        problems.append(Problem(field, "wrong_type", message, "Correct the value.", _shown(said)))
        return None
    if one.kind == CHOICE and value not in one.choices:
        message, remedy = f"{one.name} cannot be this.", f"Choose one of {shorten(', '.join(one.choices), 300)}."
        problems.append(Problem(field, "not_a_choice", message, remedy, _shown(said)))
        return None
    measure = len(value) if isinstance(value, str) else value
    if one.kind != CHOICE and _is_outside(one, measure):
        what = "The length of " if one.kind == TEXT else ""
        message = f"{what}{one.name} is {_range(one)}."
        problems.append(Problem(field, "out_of_range", message, "Correct the value.", _shown(said)))
        return None
    return value


def _is_outside(one: Parameter, measure: int | float) -> bool:
    below = one.minimum is not None and measure < one.minimum
    return below or (one.maximum is not None and measure > one.maximum)


def _range(one: Parameter) -> str:
    if one.minimum is None:
        return f"at most {one.maximum}"
    return f"at least {one.minimum}" if one.maximum is None else f"from {one.minimum} to {one.maximum}"


def _number(said: object, *, whole: bool) -> int | float | None:
    if isinstance(said, bool):
        return None
    if isinstance(said, int):
        return said if -_LARGEST < said < _LARGEST else None
    if isinstance(said, float):
        if not math.isfinite(said):
            return None
        return (int(said) if said.is_integer() and abs(said) < 2**53 else None) if whole else said
    if not isinstance(said, str) or len(said) > 60:
        return None
    text = said.strip()
    if _INTEGER.fullmatch(text):
        return int(text)
    if whole or not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def _text(said: object) -> str | None:
    if isinstance(said, (int, float)) and not isinstance(said, bool):
        said = str(said) if abs(said) < _LARGEST else ""
    is_fine = (
        isinstance(said, str) and len(said) <= LONGEST_TEXT and "\0" not in said and said.isascii() | _is_whole(said)
    )
    return said if is_fine and isinstance(said, str) else None


def _is_whole(text: str) -> bool:
    """Whether it can be stored: a half of a surrogate pair cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _boolean(said: object) -> bool | None:
    if isinstance(said, bool):
        return said
    text = said.strip().lower() if isinstance(said, str) and len(said) < 20 else ""
    return True if text in _YES else False if text in _NO else None


def _shown(said: object) -> str:
    return shorten(said) if isinstance(said, str) else shorten(repr(said)) if not isinstance(said, int) else ""


_READERS: Mapping[str, Callable[[object], Value | None]] = {
    INTEGER: lambda said: _number(said, whole=True),
    NUMBER: lambda said: _number(said, whole=False),
    TEXT: _text,
    CHOICE: _text,
    BOOLEAN: _boolean,
}
_EXPECTED = {
    INTEGER: "a whole number",
    NUMBER: "a number, such as 0.1 or 1e-3",
    TEXT: f"a text of at most {LONGEST_TEXT} characters",
    CHOICE: "one of its choices",
    BOOLEAN: "yes or no",
}

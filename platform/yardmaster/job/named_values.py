"""The values that a job was given by name: `--lr=0.1`, `--lr 0.1` and a notebook's parameters. For lists. Pure.

Not here: what an argument may be (`spec_entry`), and flags that the code declares (`code.flags`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from yardmaster.job.spec import TrainingSpec

MOST_VALUES = 50
LONGEST_VALUE = 200
LONGEST_NAME = 100
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
Value = float | str


def named_values(spec: TrainingSpec) -> dict[str, Value]:
    """By name without its dashes, numbers as numbers; the first `MOST_VALUES`. Of a name that is given twice the last
    value counts. Names and values that are longer than a list can show are left out."""
    found: dict[str, Value] = {}
    said = [*_arguments(spec.arguments), *((name, str(value)) for name, value in spec.parameters.items())]
    for name, text in said:
        is_shown = is_name(name) and len(text) <= LONGEST_VALUE
        if is_shown and (name in found or len(found) < MOST_VALUES):
            found[name] = _value(text)
    return found


def is_name(text: str) -> bool:
    """Whether a value can have this name."""
    return len(text) <= LONGEST_NAME and _NAME.fullmatch(text) is not None


def _arguments(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    flag = ""
    for argument in arguments:
        if argument.startswith("-") and _number(argument) is None:
            if flag:
                yield flag, "true"
            name, equals, value = argument.lstrip("-").partition("=")
            flag = "" if equals else name
            if equals:
                yield name, value
        elif flag:
            yield flag, argument
            flag = ""
    if flag:
        yield flag, "true"


def _value(text: str) -> Value:
    found = _number(text)
    return text if found is None else found


def _number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None

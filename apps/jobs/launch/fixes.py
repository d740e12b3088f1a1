"""The form after a button of a finding was pressed: with the one field changed that takes the cause away.

A button sends the change as `Fix.assignment` has it (`paths.log_flag=--logdir`, `arguments+=--x`), so that the form
needs no memory of what was found. What is none, or of a field that the form does not have, changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from apps.jobs.launch.argument_lines import arguments_of, as_argument_line
from apps.jobs.launch.entry_fields import kind_of
from apps.jobs.launch.forms import STRATEGIES, with_strategy
from apps.jobs.launch.parts import NO_PACKAGES, Values, as_line
from yardmaster.job.spec import Paths
from yardmaster.quantity import NotAQuantity


def with_fix(values: Values, assignment: str) -> Values:
    """The form's values with this change."""
    key, equals, text = assignment.partition("=")
    field, adds = key.removesuffix("+"), key.endswith("+")
    head, _, rest = field.partition(".")
    change = _CHANGES.get((head, adds)) if equals else None
    return values if change is None else change(values, rest, text)


def _with_path(values: Values, name: str, text: str) -> Values:
    if name not in Paths.__dataclass_fields__:
        return values
    return values | {"paths": {**values["paths"], name: text}}


def _with_strategy(values: Values, _: str, text: str) -> Values:
    return with_strategy(values, text) if text in STRATEGIES else values


def _with_entry_point(values: Values, _: str, text: str) -> Values:
    return values | {"entry_point": text, "runs": kind_of(text)}


def _with_argument(values: Values, _: str, text: str) -> Values:
    return values | {"arguments": _with_line(values["arguments"], as_argument_line(text))}


def _with_other_argument(values: Values, index: str, text: str) -> Values:
    """With another text in the place of one argument; a line of several becomes as many lines."""
    try:
        arguments = arguments_of(values["arguments"])
    except NotAQuantity:
        return values
    if not (index.isdecimal() and len(index) < 6 and int(index) < len(arguments)):
        return values
    arguments[int(index)] = text
    return values | {"arguments": "\n".join(map(as_argument_line, arguments))}


def _with_variable(values: Values, name: str, text: str) -> Values:
    rows = [row for row in values["environment"] if row["name"] != name]
    return values | {"environment": [*rows, {"name": name, "value": as_line(text)}]}


def _with_requirement(values: Values, _: str, text: str) -> Values:
    before = values["requirements"]
    return values | {"requirements": _with_line("" if before.strip().lower() == NO_PACKAGES else before, text)}


def _with_line(lines: str, line: str) -> str:
    """One more line at the end; none twice."""
    kept = [one for one in lines.replace("\r\n", "\n").split("\n") if one.strip()]
    return "\n".join(kept if line in kept else [*kept, line])


def _with_tf1(values: Values, _: str, text: str) -> Values:
    return values | {"tf1": text} if text == "true" else values


_CHANGES: Mapping[tuple[str, bool], Callable[[Values, str, str], Values]] = {
    ("paths", False): _with_path,
    ("strategy", False): _with_strategy,
    ("entry_point", False): _with_entry_point,
    ("arguments", True): _with_argument,
    ("arguments", False): _with_other_argument,
    ("environment", False): _with_variable,
    ("requirements", True): _with_requirement,
    ("tf1", False): _with_tf1,
}

"""Where a trial's values go in a job's specification, which is changed as JSON, before any rule is applied to it.

`{{lr}}` in an argument, a variable or a parameter of a notebook is replaced. A value that is named nowhere becomes the
argument `--lr=…`, in the place of one that is there, or a parameter of a notebook. It is always one argument: no shell
reads it, so that a shell command has no placeholders.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from yardmaster.errors import Problem
from yardmaster.sweeps.space import SpaceRejected, Value, text_of

_PLACE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_.-]*)\s*\}\}")


def assigned(base: Mapping[str, Any], values: Mapping[str, Value], name: str) -> dict[str, Any]:
    """The specification of a trial of this name. The base is unchanged."""
    spec = {**base, "name": name}
    used = _named_in(base)
    for key in ("arguments", "environment"):
        if key in base:
            spec[key] = _put_in(base[key], values)
    if isinstance(cells := base.get("parameters"), Mapping):
        spec["parameters"] = {key: _typed(one, values) for key, one in cells.items()}
    for parameter, value in values.items():
        if parameter not in used:
            _add(spec, parameter, value)
    return spec


def faults(base: Mapping[str, Any], names: list[str]) -> list[Problem]:
    """What keeps these parameters from being assigned."""
    problems = []
    for name in sorted(_named_in(base) - set(names)):
        message = f"The job names {{{{{name}}}}}, and the sweep has no parameter of this name."
        problems.append(Problem("parameters", "unknown_placeholder", message, "Add it, or correct the name.", name))
    command = base.get("command")
    if command and isinstance(command, str):
        missing = [name for name in names if name not in _named_in(base)]
        if missing or _PLACE.search(command):
            message = "The job runs a shell command, into which no values are written."
            remedy = "Write {{name}} as the value of a variable, and read that variable in the command."
            problems.append(Problem("parameters", "not_in_command", message, remedy, (missing or [""])[0]))
    return problems


def require_assignable(base: Mapping[str, Any], names: list[str]) -> None:
    """Raises `SpaceRejected` with all `faults`."""
    if found := faults(base, names):
        raise SpaceRejected(found)


def _named_in(base: Mapping[str, Any]) -> set[str]:
    arguments, variables, parameters = (base.get(key) for key in ("arguments", "environment", "parameters"))
    texts = list(arguments) if isinstance(arguments, list) else []
    for one in (variables, parameters):
        texts += list(one.values()) if isinstance(one, Mapping) else []
    return {name for text in texts if isinstance(text, str) for name in _PLACE.findall(text)}


def _put_in(said: Any, values: Mapping[str, Value]) -> Any:
    if isinstance(said, list):
        return [_put_in(one, values) for one in said]
    if isinstance(said, Mapping):
        return {key: _put_in(one, values) for key, one in said.items()}
    if not isinstance(said, str):
        return said
    return _PLACE.sub(lambda found: text_of(values[found[1]]) if found[1] in values else found[0], said)


def _typed(said: Any, values: Mapping[str, Value]) -> Any:
    """A parameter of a notebook that is one placeholder and nothing else gets the value with its type."""
    found = _PLACE.fullmatch(said) if isinstance(said, str) else None
    return values.get(found[1], said) if found else _put_in(said, values)


def _add(spec: dict[str, Any], name: str, value: Value) -> None:
    if str(spec.get("entry_point", "")).endswith(".ipynb"):
        cells = spec.get("parameters", {})
        spec["parameters"] = {**cells, name: value} if isinstance(cells, Mapping) else cells
        return
    flag, said = f"--{name}=", spec.get("arguments", [])
    if not isinstance(said, list):
        return  # the rules of specifications say what is wrong with it
    arguments = list(said)
    places = [at for at, one in enumerate(arguments) if isinstance(one, str) and one.startswith(flag)]
    if places:
        arguments[places[-1]] = flag + text_of(value)
    else:
        arguments.append(flag + text_of(value))
    spec["arguments"] = arguments

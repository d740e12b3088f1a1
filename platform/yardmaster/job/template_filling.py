"""Where the parameters of a template go: `{{name}}` in arguments, variables and a notebook's parameters.

No shell reads what is filled in: an argument stays exactly one argument, whatever the value has in it. What was filled
in is not read again, so a value that looks like a place stays a text. A template without parameters is taken as it is
written. Not here: which values are valid (`template_parameters`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from yardmaster.errors import Problem
from yardmaster.job.spec_limits import shorten
from yardmaster.job.template_parameters import Value, written

MOST_PLACES = 200
PLACE = re.compile(r"\{\{[ \t]*([A-Za-z_][A-Za-z0-9_]{0,62})[ \t]*\}\}")


def filled(spec: Mapping[str, Any], values: Mapping[str, Value]) -> dict[str, Any]:
    """The specification, as JSON, with values in the place of `{{name}}`. A notebook's parameter that is one place and
    nothing else gets the value with its type; everything else gets it as text."""
    found = dict(spec)
    if not values:
        return found
    if isinstance(arguments := found.get("arguments"), list):
        found["arguments"] = [_in_text(one, values) for one in arguments]
    for key in ("environment", "parameters"):
        if isinstance(pairs := found.get(key), Mapping):
            typed = key == "parameters"
            found[key] = {name: _in_value(one, values, typed=typed) for name, one in pairs.items()}
    return found


def place_problems(spec: Mapping[str, Any], names: Collection[str]) -> list[Problem]:
    """What is wrong with the places of a specification, given the names of the template's parameters."""
    if not names:
        return []
    problems: list[Problem] = []
    used: set[str] = set()
    count = 0
    for field, text in _texts(spec):
        for match in PLACE.finditer(text):
            count += 1
            used.add(match[1])
            if match[1] not in names and len(problems) < 20:
                remedy = "Declare it, or correct the name. To pass such a text on, make it the default of a parameter."
                message = "The template has no parameter of this name."
                problems.append(Problem(field, "unknown_parameter", message, remedy, shorten(match[1])))
    if count > MOST_PLACES:
        message = f"At most {MOST_PLACES} places can be filled in."
        problems.append(Problem("arguments", "too_many", message, "Use fewer.", str(count)))
    for index, name in enumerate(names):
        if name not in used:
            message = f"{name} is used nowhere."
            remedy = f"Write {{{{{name}}}}} into an argument or the value of a variable, or remove the parameter."
            problems.append(Problem(f"parameters.{index}.name", "unused_parameter", message, remedy, name))
    return problems


def _texts(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    arguments = spec.get("arguments")
    for index, one in enumerate(arguments if isinstance(arguments, list) else ()):
        if isinstance(one, str):
            yield f"arguments.{index}", one
    for key in ("environment", "parameters"):
        pairs = spec.get(key)
        for name, one in pairs.items() if isinstance(pairs, Mapping) else ():
            if isinstance(one, str):
                yield f"{key}.{name}", one


def _in_value(one: Any, values: Mapping[str, Value], *, typed: bool) -> Any:
    if typed and isinstance(one, str) and (whole := PLACE.fullmatch(one)) and whole[1] in values:
        return values[whole[1]]
    return _in_text(one, values)


def _in_text(text: Any, values: Mapping[str, Value]) -> Any:
    if not isinstance(text, str):
        return text
    return PLACE.sub(lambda match: written(values[match[1]]) if match[1] in values else match[0], text)

"""What stands in the launch form, and the specification that it says: one into the other and back. Pure.

The form is a flat mapping of texts, named as the fields of the specification are (`roles.worker.replicas`), so that a
problem finds its field by its own name. What cannot be read is passed on as it is, for `yardmaster.spec_json` to name.

Not here: which choices there are (`launch_choices`), how the fields look (`launch_shown`), the YAML (`launch_yaml`).
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from yardmaster.errors import Problem
from yardmaster.quantity import format_cpu
from yardmaster.spec import Paths, Role, RoleSpec, Strategy, TrainingSpec
from yardmaster.spec_rules import DEFAULT_LIMITS
from yardmaster.strategy import ROLES, only_serves

Values = dict[str, str]

PATHS = tuple(Paths.__dataclass_fields__)
DURATIONS = ("max_runtime", "grace_period", "reclaim_delay")
WHOLES = ("retries", "priority")
RESOURCES = ("cpu", "memory", "gpus", "extended")
PLACE = ("namespace", "engine")
"""Where the job goes: beside the specification."""
PLAIN = ("name", "strategy", "code", "entry_point", "arguments", "environment", *WHOLES, *DURATIONS)
NAMES = frozenset(
    [
        *PLACE, *PLAIN, "success.rule", "success.percent", *(f"paths.{one}" for one in PATHS),
        *(f"roles.{role.value}.{one}" for role in Role for one in ("replicas", *RESOURCES)),
    ]
)  # fmt: skip
"""Every field but those of inputs."""
_INPUT = re.compile(r"inputs\.([0-9]{1,3})\.(dataset_version|name)", re.ASCII)

_SHAPES: Mapping[Strategy, Mapping[Role, int]] = {
    Strategy.SINGLE: {Role.WORKER: 1},
    Strategy.BETWEEN_GRAPH: {Role.WORKER: 2, Role.PS: 1},
    Strategy.PARAMETER_SERVER: {Role.CHIEF: 1, Role.WORKER: 2, Role.PS: 1},
    Strategy.MULTI_WORKER_MIRRORED: {Role.WORKER: 2},
    Strategy.IN_GRAPH: {Role.WORKER: 2, Role.PS: 1},
}
"""What each preset begins with. Together 2 cores at most: a first job shall fit a small machine."""
_WITHOUT_SCRIPT = [one.value for one in Strategy if only_serves(one)]
_NO_CODE = uuid.UUID(int=0)
_CPU, _MEMORY = "0.5", "1.5Gi"
_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_PIECE = re.compile(r"([0-9]{1,9}) *([dhms]?)", re.ASCII)
_BINARY = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


@dataclass(frozen=True)
class Reading:
    """What the form says as JSON, and what of it could not be read even as that."""

    spec: dict[str, Any]
    problems: tuple[Problem, ...] = ()


def new_values(strategy: Strategy) -> Values:
    """The form as it is at first."""
    stand_in = TrainingSpec("", strategy, {}, _NO_CODE, "")
    return with_strategy(_limits(stand_in) | {"strategy": strategy.value}, strategy.value)


def values_of_post(data: Mapping[str, str]) -> Values:
    """What was typed. Unknown fields are left out, and rows of inputs that are empty."""
    values = {name: _lines(data[name]) for name in NAMES if name in data}
    rows: dict[int, dict[str, str]] = {}
    for name in data:
        if found := _INPUT.fullmatch(name):
            rows.setdefault(int(found[1]), {})[found[2]] = data[name].strip()
    kept = [row for _, row in sorted(rows.items()) if any(row.values())][: DEFAULT_LIMITS.inputs + 1]
    return values | _inputs(kept)


def values_of_spec(spec: TrainingSpec) -> Values:
    """The form that says this specification."""
    roles: Values = {}
    for role, one in spec.roles.items():
        roles |= _role(role, one)
    inputs = [{"dataset_version": str(one.dataset_version), "name": one.name} for one in spec.inputs]
    return {
        "name": spec.name,
        "strategy": spec.strategy.value,
        "code": "" if spec.code_version is None else str(spec.code_version),
        "entry_point": spec.entry_point,
        "arguments": "\n".join(_as_line(one) for one in spec.arguments),
        "environment": "\n".join(f"{name}={_as_line(value)}" for name, value in spec.environment.items()),
        **roles,
        **_inputs(inputs),
        **_limits(spec),
    }


def with_strategy(values: Values, strategy: str) -> Values:
    """The same form for another strategy: what both have stays as it was typed, what is new gets the preset's."""
    changed = values | {"strategy": strategy}
    if not any(name.startswith("roles.") and not name.startswith("roles.worker.") for name in values):
        changed.pop("roles.worker.replicas", None)  # of a single task: nobody chose that there is one
    for role, rule in ROLES[Strategy(strategy)].items():
        count = f"roles.{role.value}.replicas"
        preset = str(_SHAPES[Strategy(strategy)].get(role, 0))
        typed = changed.get(count, "")
        if not typed or (typed == "0" and rule.least) or rule.most == 1:
            changed[count] = preset if rule.least else typed or "0"
        changed.setdefault(f"roles.{role.value}.cpu", "1" if strategy == Strategy.SINGLE.value else _CPU)
        changed.setdefault(f"roles.{role.value}.memory", _MEMORY)
    return changed


def runs_script(values: Values) -> bool:
    """Whether a script of the user runs in the tasks, rather than servers alone."""
    return values.get("strategy", "") not in _WITHOUT_SCRIPT


def with_shape(values: Values, shape: Mapping[str, int]) -> Values:
    """The same form with other counts."""
    counts = {f"roles.{role}.replicas": str(count) for role, count in shape.items()}
    return values | {name: count for name, count in counts.items() if name in NAMES}


def read(values: Values) -> Reading:
    """The JSON that the form says. Fields left empty are left out, so that their defaults hold."""
    problems: list[Problem] = []
    spec: dict[str, Any] = {
        "name": values.get("name", ""),
        "strategy": values.get("strategy", ""),
        "roles": {role.value: _read_role(role, values, problems) for role in _roles(values)},
        "code": values.get("code", ""),
        "entry_point": values.get("entry_point", "").strip(),
        "arguments": [_from_line(line) for line in values.get("arguments", "").split("\n") if line.strip()],
        "environment": _read_pairs("environment", values.get("environment", "").split("\n"), problems),
        "inputs": _read_inputs(values),
        "paths": {one: values[f"paths.{one}"].strip() for one in PATHS if f"paths.{one}" in values},
        "success": _read_success(values),
    }
    for name, as_number in (*((one, _whole) for one in WHOLES), *((one, _seconds) for one in DURATIONS)):
        if text := values.get(name, "").strip():
            spec[name] = as_number(text)
    # What only a script needs stays in the form, should another strategy be chosen, and is not meant meanwhile.
    unmeant = () if runs_script(values) else ("code", "entry_point", "arguments", "success")
    kept = {name: value for name, value in spec.items() if value not in ({}, []) and name not in unmeant}
    return Reading(kept, tuple(problems))


def counts_of(values: Values) -> dict[str, int]:
    """How many tasks of each role the form asks for, as far as it can be read."""
    found = {role.value: _whole(values.get(f"roles.{role.value}.replicas", "")) for role in _roles(values)}
    return {role: count for role, count in found.items() if isinstance(count, int) and count > 0}


def problems_by_field(problems: Iterable[Problem], names: Iterable[str]) -> dict[str, list[Problem]]:
    """Each problem at the field that it is about, at the nearest one that contains it, or under the empty name."""
    known = set(names)
    found: dict[str, list[Problem]] = {}
    for problem in problems:
        place = problem.field
        while place and place not in known:
            place = place.rpartition(".")[0]
        found.setdefault(place, []).append(_in_words_of_the_form(problem, place))
    return found


def duration_text(seconds: int) -> str:
    """`1h 30m`, `45s`: what `read` reads."""
    pieces = []
    for unit, length in _UNITS.items():
        if count := seconds // length:
            pieces.append(f"{count}{unit}")
        seconds %= length
    return " ".join(pieces) or "0s"


def memory_text(amount: int) -> str:
    """`1.5Gi` where that is exact, else bytes."""
    for unit, size in _BINARY:
        if amount >= size and amount * 100 % size == 0:
            return f"{amount / size:.2f}".rstrip("0").rstrip(".") + unit
    return str(amount)


def _roles(values: Values) -> list[Role]:
    """The roles that the form speaks of: those of its strategy, without the optional ones that it asks for none of."""
    try:
        rules = ROLES[Strategy(values.get("strategy", ""))]
    except ValueError:
        return []
    none = ("", "0")
    return [
        role
        for role in Role
        if role in rules and (rules[role].least or values.get(f"roles.{role.value}.replicas", "").strip() not in none)
    ]


def _role(role: Role, one: RoleSpec) -> Values:
    asked, field = one.resources, f"roles.{role.value}"
    return {
        f"{field}.replicas": str(one.replicas),
        f"{field}.cpu": format_cpu(asked.cpu),
        f"{field}.memory": memory_text(asked.memory),
        f"{field}.gpus": str(asked.gpus) if asked.gpus else "",
        f"{field}.extended": ", ".join(f"{name}={amount}" for name, amount in asked.extended.items()),
    }


def _limits(spec: TrainingSpec) -> Values:
    return {
        **{f"paths.{one}": getattr(spec.paths, one) for one in PATHS},
        **{one: str(getattr(spec, one)) for one in WHOLES},
        **{one: _duration_of(getattr(spec, one)) for one in DURATIONS},
        "success.rule": spec.success_rule.value,
        "success.percent": str(spec.success_percent),
    }


def _duration_of(duration: Any) -> str:
    return "" if duration is None else duration_text(int(duration.total_seconds()))


def _inputs(rows: Iterable[Mapping[str, str]]) -> Values:
    return {f"inputs.{number}.{key}": text for number, row in enumerate(rows) for key, text in row.items()}


def _read_role(role: Role, values: Values, problems: list[Problem]) -> dict[str, Any]:
    field = f"roles.{role.value}"
    texts = {one: values.get(f"{field}.{one}", "").strip() for one in ("replicas", *RESOURCES)}
    found: dict[str, Any] = {"replicas": _whole(texts["replicas"])}
    if texts["cpu"]:
        found["cpu"] = _number(texts["cpu"])
    if texts["memory"]:
        found["memory"] = _whole(texts["memory"])
    if texts["gpus"] not in ("", "0"):
        found["gpus"] = _whole(texts["gpus"])
    if texts["extended"]:
        pairs = _read_pairs(f"{field}.extended", texts["extended"].split(","), problems)
        found["extended"] = {name: _whole(amount) for name, amount in pairs.items()}
    return found


def _read_inputs(values: Values) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = []
    while f"inputs.{len(rows)}.dataset_version" in values or f"inputs.{len(rows)}.name" in values:
        field = f"inputs.{len(rows)}"
        row = {"dataset_version": values.get(f"{field}.dataset_version", "")}
        if name := values.get(f"{field}.name", ""):
            row["name"] = name
        rows.append(row)
    return rows


def _read_success(values: Values) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if rule := values.get("success.rule", ""):
        found["rule"] = rule
    # The chief's rule has no percentage, so that one left in a hidden field is not meant.
    if (percent := values.get("success.percent", "").strip()) and rule != "chief":
        found["percent"] = _whole(percent)
    return found


def _read_pairs(field: str, lines: Iterable[str], problems: list[Problem]) -> dict[str, str]:
    """`NAME=value` pairs."""
    found: dict[str, str] = {}
    for line in lines:
        if not line.strip():
            continue
        name, equals, value = line.partition("=")
        name = name.strip()
        if not equals:
            problems.append(Problem(field, "bad_value", f"{name[:60]} has no value.", "Write NAME=value."))
        elif name in found:
            problems.append(Problem(field, "duplicate", f"{name[:60]} stands here twice.", "Remove one of them."))
        else:
            found[name] = _from_line(value)
    return found


def _as_line(text: str) -> str:
    """A text on a line of its own; in JSON's quotes where it would not survive as it is."""
    quoted = text.startswith('"') or text != text.strip() or not text or any(sign in text for sign in "\r\n")
    return json.dumps(text, ensure_ascii=False) if quoted else text


def _from_line(line: str) -> str:
    line = line.strip()
    if len(line) > 1 and line.startswith('"') and line.endswith('"'):
        try:
            text = json.loads(line)
        except ValueError:
            return line
        return text if isinstance(text, str) else line
    return line


def _lines(text: str) -> str:
    """Browsers end the lines of a form with CR LF."""
    return text.replace("\r\n", "\n")


def _whole(text: str) -> int | str:
    text = text.strip()
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text, re.ASCII) else text


def _number(text: str) -> int | float | str:
    if re.fullmatch(r"[0-9]{1,9}\.[0-9]{1,9}", text, re.ASCII):
        return float(text)
    return _whole(text)


def _seconds(text: str) -> int | str:
    """`90`, `90s`, `1h 30m` in seconds; anything else as it is."""
    pieces = _PIECE.findall(text)
    if not pieces or _PIECE.sub("", text).strip():
        return text
    if len(pieces) > 1 and not all(unit for _, unit in pieces):
        return text
    return sum(int(count) * _UNITS[unit or "s"] for count, unit in pieces)


def _in_words_of_the_form(problem: Problem, place: str) -> Problem:
    """The same problem without the words of JSON, which the reader of a form has not written."""
    if problem.code != "wrong_type":
        return problem
    if place in DURATIONS:
        return Problem(place, problem.code, "This is no length of time.", "Write 90s, 30m, 2h or 1d.", problem.value)
    if "Expected a whole number" in problem.message:
        return Problem(place, problem.code, "This is no whole number.", "Write digits only.", problem.value)
    return problem

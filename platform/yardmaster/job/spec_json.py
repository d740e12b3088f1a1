"""The JSON form of a job specification, version 1: read with every problem named, and written.

`spec_from_json` accepts any value at all and either returns a valid `TrainingSpec` or raises `SpecRejected` with all
that is wrong. A key that is not known where it stands is refused by name, never passed over: a limit at the wrong
level that silently does nothing is worse than an error.

Not here: what makes a spec valid (`spec_rules`, which is asked at the end), and YAML (the command line's).
"""

from __future__ import annotations

import difflib
import json
import re
import uuid
from collections.abc import Callable, Mapping, Sequence, Sized
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeVar

from yardmaster.errors import Problem, SpecRejected
from yardmaster.job.spec import (
    VERSION,
    DatasetInput,
    InputMode,
    InputShare,
    Paths,
    Resources,
    Role,
    RoleSpec,
    Strategy,
    SuccessRule,
    TrainingSpec,
)
from yardmaster.job.spec_rules import DEFAULT_LIMITS, DEPENDS_ON_STRATEGY, SpecLimits, check_spec, shorten
from yardmaster.job.strategy import only_serves
from yardmaster.quantity import NotAQuantity, format_bytes, parse_cpu, parse_memory

MOST_PROBLEMS = 100
"""More are counted, not listed: an absurd input must not make an absurd answer."""
_HUGE = 10**15

_TOP = (
    "version", "name", "strategy", "roles", "code", "entry_point", "arguments", "environment", "inputs", "paths",
    "model", "retries", "max_runtime", "grace_period", "reclaim_delay", "priority", "success",
)  # fmt: skip
_ROLE = ("replicas", "cpu", "memory", "gpus", "extended")
_INPUT = ("dataset_version", "name", "mode", "share")
_PATHS = tuple(Paths.__dataclass_fields__)
_MODEL = ("name",)
_SUCCESS = ("rule", "percent")
_LEVELS = {
    "the top level": _TOP,
    "roles.<role>": _ROLE,
    "inputs.<n>": _INPUT,
    "paths": _PATHS,
    "model": _MODEL,
    "success": _SUCCESS,
}
_ID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NO_ID = uuid.UUID(int=0)
_STAND_IN = TrainingSpec("job", Strategy.SINGLE, {Role.WORKER: RoleSpec()}, _NO_ID, "train.py")
_ABSENT = object()
_WITHOUT_SCRIPT = tuple(one.value for one in Strategy if only_serves(one))

Word = TypeVar("Word", bound=StrEnum)
Amount = TypeVar("Amount", int, float)


def spec_from_json(data: object, limits: SpecLimits = DEFAULT_LIMITS) -> TrainingSpec:
    """The spec that `data` (parsed JSON) says. Raises `SpecRejected` with every problem, and nothing else.

    For what people send. What was stored before is decoded by `spec_stored`, which applies no rule.
    """
    reading = _Reading(limits)
    spec = reading.spec(data)
    problems = reading.problems + [found for found in check_spec(spec, limits) if reading.is_real(found)]
    problems += _too_large(spec, limits.size)
    if not problems:
        return spec
    hidden = len(problems) - MOST_PROBLEMS
    if hidden > 0:
        more = Problem("", "too_many", f"{hidden} more problems are not listed.", "Correct these first.")
        problems = [*problems[:MOST_PROBLEMS], more]
    raise SpecRejected(problems)


def spec_to_json(spec: TrainingSpec) -> dict[str, Any]:
    """The JSON form with every key written out. `spec_from_json` of it gives the same spec."""
    return {
        "version": VERSION,
        "name": spec.name,
        "strategy": spec.strategy.value,
        "roles": {role.value: _role_to_json(one) for role, one in spec.roles.items()},
        "code": None if spec.code_version is None else str(spec.code_version),
        "entry_point": spec.entry_point,
        "arguments": list(spec.arguments),
        "environment": dict(spec.environment),
        "inputs": [_input_to_json(one) for one in spec.inputs],
        "paths": {key: getattr(spec.paths, key) for key in _PATHS},
        "model": {"name": spec.model_name},
        "retries": spec.retries,
        "max_runtime": None if spec.max_runtime is None else _seconds(spec.max_runtime),
        "grace_period": _seconds(spec.grace_period),
        "reclaim_delay": _seconds(spec.reclaim_delay),
        "priority": spec.priority,
        "success": {"rule": spec.success_rule.value, "percent": spec.success_percent},
    }


def stored_size(value: object) -> int:
    """How many bytes a value takes in the JSON form as it is stored."""
    return len(json.dumps(value))


def _too_large(spec: TrainingSpec, most: int) -> list[Problem]:
    form = spec_to_json(spec)
    if (size := stored_size(form)) <= most:
        return []
    return [too_large(size, most, {key: stored_size(value) for key, value in form.items()})]


def too_large(size: int, most: int, sizes: Mapping[str, int]) -> Problem:
    """The problem of a specification of `size` bytes where `most` are allowed; `sizes` are those of its fields."""
    largest = max(sizes, key=lambda key: sizes[key], default="")
    message = f"The specification has {_bytes(size)}; the most is {_bytes(most)}."
    if not largest:
        return Problem("", "too_large", message, "Put long values into a file in the code version, or into a dataset.")
    message = f"{message} Its largest field is {largest}."
    remedy = f"Put what makes {largest} long into a file in the code version, or into a dataset."
    return Problem(largest, "too_large", message, remedy, _bytes(sizes[largest]))


def _bytes(size: int) -> str:
    """Exact enough that a size just over its limit does not look like the limit."""
    return f"{size:,} bytes ({format_bytes(size)})"


def _role_to_json(one: RoleSpec) -> dict[str, Any]:
    asked = one.resources
    cpu = int(asked.cpu) if asked.cpu == int(asked.cpu) else asked.cpu
    return {
        "replicas": one.replicas,
        "cpu": cpu,
        "memory": asked.memory,
        "gpus": asked.gpus,
        "extended": dict(asked.extended),
    }


def _input_to_json(one: DatasetInput) -> dict[str, str]:
    version = str(one.dataset_version)
    return {"dataset_version": version, "name": one.name, "mode": one.mode.value, "share": one.share.value}


def _seconds(duration: timedelta) -> int:
    return int(duration.total_seconds())


def _required_of(data: object) -> tuple[str, ...]:
    always = ("name", "strategy", "roles")
    runs_script = not isinstance(data, Mapping) or data.get("strategy") not in _WITHOUT_SCRIPT
    return (*always, "code", "entry_point") if runs_script else always


def show(value: object) -> str:
    """Any value, shortened for a message. Never walks into it, so that its depth and size do not matter."""
    if isinstance(value, str):
        return shorten(value)
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int):
        return str(value) if abs(value) < _HUGE else "a huge number"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, Mapping):
        return f"an object with {len(value)} keys"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    return f"a {type(value).__name__}"


class _Reading:
    """One reading: collects problems, and puts something harmless in the place of what could not be read, so that the
    rest can be judged too."""

    def __init__(self, limits: SpecLimits) -> None:
        self.problems: list[Problem] = []
        self._limits = limits
        self._unread: list[str] = []

    def is_real(self, found: Problem) -> bool:
        """Whether a rule's problem is about what was written, not about what stands in for something unreadable."""
        if found.code in DEPENDS_ON_STRATEGY and "strategy" in self._unread:
            return False
        return not any(_is_within(found.field, field) or _is_within(field, found.field) for field in self._unread)

    def spec(self, data: object) -> TrainingSpec:
        """The spec, with stand-ins for what is in `problems`."""
        if isinstance(data, Mapping) and not self._version_is_known(data.get("version", VERSION)):
            return _STAND_IN
        top = self.keys("", data, _TOP, required=_required_of(data))
        is_served = top.get("strategy") in _WITHOUT_SCRIPT
        success = self.keys("success", top.get("success", {}), _SUCCESS)
        return TrainingSpec(
            name=self.text("name", top.get("name", _STAND_IN.name)),
            strategy=self.word("strategy", top.get("strategy", _STAND_IN.strategy.value), Strategy, _STAND_IN.strategy),
            roles=self.roles(top.get("roles", {})),
            code_version=None
            if is_served and top.get("code") is None
            else self.id("code", top.get("code", str(_NO_ID))),
            entry_point=self.text("entry_point", top.get("entry_point", "" if is_served else _STAND_IN.entry_point)),
            arguments=tuple(self.texts("arguments", top.get("arguments", []), self._limits.arguments)),
            environment=self.environment(top.get("environment", {})),
            inputs=tuple(self.inputs(top.get("inputs", []))),
            paths=self.paths(top.get("paths", {})),
            model_name=self.text("model.name", self.keys("model", top.get("model", {}), _MODEL).get("name", "")),
            retries=self.whole("retries", top.get("retries", _STAND_IN.retries)),
            max_runtime=None if top.get("max_runtime") is None else self.duration("max_runtime", top["max_runtime"]),
            grace_period=self.duration("grace_period", top.get("grace_period", _seconds(_STAND_IN.grace_period))),
            reclaim_delay=self.duration("reclaim_delay", top.get("reclaim_delay", _seconds(_STAND_IN.reclaim_delay))),
            priority=self.whole("priority", top.get("priority", _STAND_IN.priority)),
            success_rule=self.word("success.rule", success.get("rule", "workers"), SuccessRule, SuccessRule.WORKERS),
            success_percent=self.whole("success.percent", success.get("percent", 100), stand_in=100),
        )

    # Parts.

    def _version_is_known(self, value: object) -> bool:
        if value == VERSION and isinstance(value, int) and not isinstance(value, bool):
            return True
        message = f"Unknown specification version. This portal supports version {VERSION}."
        self._refuse("version", "unsupported_version", message, f"Write {VERSION}, or leave it out.", value)
        self._unread.append("")
        return False

    def roles(self, value: object) -> dict[Role, RoleSpec]:
        names = tuple(role.value for role in Role)
        return {Role(name): self.role(f"roles.{name}", one) for name, one in self.keys("roles", value, names).items()}

    def role(self, field: str, value: object) -> RoleSpec:
        found = self.keys(field, value, _ROLE)
        extended = self.mapping(f"{field}.extended", found.get("extended", {}), self._limits.extended)
        resources = Resources(
            cpu=self.quantity(f"{field}.cpu", found.get("cpu", 1), parse_cpu, 1.0),
            memory=self.quantity(f"{field}.memory", found.get("memory", 1 << 30), parse_memory, 1 << 30),
            gpus=self.whole(f"{field}.gpus", found.get("gpus", 0)),
            extended={key: self.whole(f"{field}.extended.{shorten(key)}", one) for key, one in extended.items()},
        )
        return RoleSpec(self.whole(f"{field}.replicas", found.get("replicas", 1), stand_in=1), resources)

    def inputs(self, value: object) -> list[DatasetInput]:
        found = []
        for index, one in enumerate(self.items("inputs", value, self._limits.inputs)):
            field = f"inputs.{index}"
            keys = self.keys(field, one, _INPUT, required=("dataset_version",))
            version = self.id(f"{field}.dataset_version", keys.get("dataset_version", str(_NO_ID)))
            name = self.text(f"{field}.name", keys.get("name", ""))
            mode = self.word(f"{field}.mode", keys.get("mode", "folder"), InputMode, InputMode.FOLDER)
            share = self.word(f"{field}.share", keys.get("share", "all"), InputShare, InputShare.ALL)
            found.append(DatasetInput(version, name, mode, share))
        return found

    def paths(self, value: object) -> Paths:
        found = self.keys("paths", value, _PATHS)
        return Paths(**{str(key): self.text(f"paths.{key}", one) for key, one in found.items()})

    def environment(self, value: object) -> dict[str, str]:
        found = self.mapping("environment", value, self._limits.variables)
        # A variable may be a secret: its value is not repeated in the problem.
        return {name: self.text(f"environment.{shorten(name)}", one, secret=True) for name, one in found.items()}

    # Values. Each returns a stand-in after it has noted the problem.

    def keys(
        self, field: str, value: object, known: tuple[str, ...], required: tuple[str, ...] = ()
    ) -> dict[str, object]:
        """The known keys of an object."""
        if not isinstance(value, Mapping):
            self._unreadable(
                field, "wrong_type", "Expected an object.", f"Write an object with {_any_of(known)}.", value
            )
            return {}
        prefix = f"{field}." if field else ""
        unknown = [key for key in value if not isinstance(key, str) or key not in known]
        for key in unknown[:MOST_PROBLEMS]:
            message = f"{show(key)} is not a known field."
            self._refuse(f"{prefix}{show(key)}", "unknown_key", message, _hint(key, known), value[key], secret=True)
        for key in required:
            if key not in value:
                self._unreadable(f"{prefix}{key}", "missing", f"{key} is required.", f"Add {key}.")
        return {key: value[key] for key in known if key in value}

    def mapping(self, field: str, value: object, most: int) -> dict[str, object]:
        """An object whose keys are free."""
        if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
            self._unreadable(field, "wrong_type", "Expected an object with text keys.", 'Write {"name": …}.', value)
            return {}
        return dict(value) if self._is_short(field, value, most) else {}

    def items(self, field: str, value: object, most: int) -> Sequence[object]:
        if not isinstance(value, (list, tuple)):
            self._unreadable(field, "wrong_type", "Expected a list.", "Write a list: […].", value)
            return ()
        return value if self._is_short(field, value, most) else ()

    def _is_short(self, field: str, value: Sized, most: int) -> bool:
        if len(value) > most:
            self._unreadable(field, "too_long", f"{field} has at most {most} entries.", "Use fewer.", value)
        return len(value) <= most

    def texts(self, field: str, value: object, most: int) -> list[str]:
        return [self.text(f"{field}.{index}", one) for index, one in enumerate(self.items(field, value, most))]

    def text(self, field: str, value: object, *, secret: bool = False) -> str:
        if isinstance(value, str):
            return value
        remedy = f'Put it in quotes: "{show(value)}".' if isinstance(value, (int, float)) and not secret else ""
        self._unreadable(
            field, "wrong_type", "Expected a text.", remedy or "Write a text in quotes.", value, secret=secret
        )
        return ""

    def whole(self, field: str, value: object, stand_in: int = 0) -> int:
        if isinstance(value, int) and not isinstance(value, bool):
            if abs(value) < _HUGE:
                return value
            self._unreadable(field, "out_of_range", "The number is too large.", "Write a smaller one.", value)
        else:
            self._unreadable(field, "wrong_type", "Expected a whole number.", "Write digits without quotes.", value)
        return stand_in

    def duration(self, field: str, value: object) -> timedelta:
        # Clamped so that timedelta can hold it; where the bounds are is the rules' matter.
        seconds = self.whole(field, value)
        return timedelta(seconds=max(-(10**9), min(seconds, 10**9)))

    def quantity(self, field: str, value: object, parse: Callable[[object], Amount], stand_in: Amount) -> Amount:
        try:
            return parse(value)
        except NotAQuantity as error:
            self._unreadable(field, "wrong_type", str(error), "Correct the amount.", value)
            return stand_in

    def word(self, field: str, value: object, words: type[Word], stand_in: Word) -> Word:
        known = tuple(one.value for one in words)
        if isinstance(value, str) and value in known:
            return words(value)
        self._unreadable(
            field, "bad_value", f"Expected {_any_of(known)}.", _nearest(value, known) or "Choose one.", value
        )
        return stand_in

    def id(self, field: str, value: object) -> uuid.UUID:
        if isinstance(value, str) and _ID.fullmatch(value):
            return uuid.UUID(value)
        message = "Expected an ID such as 0193e5a4-7c1b-7abc-8def-0123456789ab."
        self._unreadable(field, "bad_value", message, "Choose a version, or copy its ID from its page.", value)
        return _NO_ID

    def _unreadable(
        self, field: str, code: str, message: str, remedy: str, value: object = _ABSENT, *, secret: bool = False
    ) -> None:
        self._unread.append(field)
        self._refuse(field, code, message, remedy, value, secret=secret)

    def _refuse(
        self, field: str, code: str, message: str, remedy: str, value: object = _ABSENT, *, secret: bool = False
    ) -> None:
        shown = "" if value is _ABSENT or (secret and isinstance(value, str)) else show(value)
        self.problems.append(Problem(field, code, message, remedy, shown))


def _is_within(field: str, outer: str) -> bool:
    return not outer or field == outer or field.startswith(f"{outer}.")


def _any_of(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _nearest(value: object, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(value.lower(), known, 1) if isinstance(value, str) and len(value) <= 64 else []
    return f"Did you mean {near[0]}?" if near else ""


def _hint(key: object, known: tuple[str, ...]) -> str:
    """What to do about an unknown key: the level where it belongs, else the near miss, else what is known here."""
    level = next((level for level, names in _LEVELS.items() if key in names), None)
    return f"It belongs to {level}." if level else _nearest(key, known) or f"Known here: {', '.join(known)}."

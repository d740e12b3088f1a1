"""A specification that was stored before: decoded, and never checked again.

What runs keeps what it was launched with. A release that tightens a rule must not touch it, so nothing here asks
`spec_rules`: an unknown key (of an older release) is passed over, a missing one (of a newer release) has its default,
and an amount may be any. Only what cannot be a specification at all is an error.

Not here: what people send (`spec_json`), and what becomes of a job whose specification is unreadable (`apps.jobs`).
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeVar

from yardmaster.errors import SpecUnreadable
from yardmaster.job.spec import (
    USUAL_PATHS,
    VERSION,
    CheckpointStore,
    ConnectionInput,
    DatasetInput,
    InputMode,
    InputShare,
    InputSource,
    LogDir,
    Option,
    Paths,
    Publishes,
    Resources,
    Role,
    RoleSpec,
    SecretInput,
    SparkInput,
    Strategy,
    SuccessRule,
    TrainingSpec,
)
from yardmaster.job.spec_images import PinnedImage
from yardmaster.job.spec_json import spec_to_json
from yardmaster.quantity import NotAQuantity, parse_cpu, parse_memory

MOST_TASKS = 100_000
"""No rule, but what can be counted through: more of them were never launched by any release."""
_LONGEST = 10**9
_DEFAULTS = TrainingSpec("job", Strategy.SINGLE, {}, None, "", paths=USUAL_PATHS)
_NO_PACKAGES: tuple[str, ...] | None = ()
"""Of an older release: what was launched without them runs without them."""

PINNED = "pinned_images"
"""The key of what only the portal writes."""

Word = TypeVar("Word", bound=StrEnum)
Value = TypeVar("Value")


def stored_spec(data: object) -> TrainingSpec:
    """The specification that was stored as `data` (parsed JSON). Raises `SpecUnreadable` where it is none."""
    top = _Object("", data)
    if top.value("version", _whole, VERSION) != VERSION:
        raise _unreadable("version", "is of another release")
    success = top.inner("success")
    return TrainingSpec(
        name=top.value("name", _text, _DEFAULTS.name),
        strategy=top.required("strategy", _word(Strategy)),
        roles=_roles(top),
        code_version=top.value("code", _or_none(_id), None),
        entry_point=top.value("entry_point", _text, _DEFAULTS.entry_point),
        arguments=top.value("arguments", _list_of(_text), ()),
        environment=top.value("environment", _table_of(_text), {}),
        inputs=top.value("inputs", _list_of(_input), ()),
        secrets=top.value("secrets", _list_of(_secret), ()),
        connection=top.value("connection", _or_none(_connection), None),
        spark=top.value("spark", _or_none(_spark), None),
        paths=_paths(top),
        model_name=top.inner("model").value("name", _text, _DEFAULTS.model_name),
        retries=top.value("retries", _whole, _DEFAULTS.retries),
        max_runtime=top.value("max_runtime", _or_none(_duration), None),
        grace_period=top.value("grace_period", _duration, _DEFAULTS.grace_period),
        reclaim_delay=top.value("reclaim_delay", _duration, _DEFAULTS.reclaim_delay),
        hold_failed=top.value("hold_failed", _duration, _DEFAULTS.hold_failed),
        priority=top.value("priority", _whole, _DEFAULTS.priority),
        priority_class=top.value("priority_class", _text, ""),
        success_rule=success.value("rule", _word(SuccessRule), _DEFAULTS.success_rule),
        success_percent=success.value("percent", _whole, _DEFAULTS.success_percent),
        program=top.value("program", _text, ""),
        options=top.value("options", _table_of(_option), {}),
        publishes=top.value("publishes", _or_none(_publishes), None),
        requirements=top.value("requirements", _or_none(_list_of(_text)), _NO_PACKAGES),
        log_dir=top.value("log_dir", _word(LogDir), LogDir.DISK),
        checkpoint_store=top.value("checkpoint_store", _word(CheckpointStore), CheckpointStore.PORTAL),
        command=top.value("command", _text, ""),
        parameters=top.value("parameters", _table_of(_option), {}),
        tf1=top.value("tf1", _truth, False),
        image=top.value("image", _text, ""),
        pinned_images=top.value(PINNED, _list_of(_pinned), ()),
    )


def stored_form(spec: TrainingSpec) -> dict[str, Any]:
    """The form in which a launched specification is kept: what people send, and what the portal decided at the launch.
    `stored_spec` of it gives the same spec."""
    form = spec_to_json(spec)
    if spec.pinned_images:
        form[PINNED] = [asdict(one) for one in spec.pinned_images]
    return form


def sent_form(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Of a form that was stored, what people may send again."""
    return {key: value for key, value in stored.items() if key != PINNED}


def remains_of(data: object, strategy: Strategy, tasks: Mapping[Role, int]) -> TrainingSpec:
    """What can still be said of a specification that is unreadable, so that its job can be ended and shown. `strategy`
    and `tasks` are what is known of it from elsewhere. Never raises."""

    def kept(key: str, read: Callable[[object], Value], default: Value) -> Value:
        try:
            return _Object("", data).value(key, read, default)
        except SpecUnreadable:
            return default

    return TrainingSpec(
        name=kept("name", _text, _DEFAULTS.name),
        strategy=strategy,
        roles={role: RoleSpec(count) for role, count in tasks.items()},
        code_version=None,
        entry_point="",
        grace_period=kept("grace_period", _duration, _DEFAULTS.grace_period),
        reclaim_delay=kept("reclaim_delay", _duration, _DEFAULTS.reclaim_delay),
    )


class _Object:
    """A JSON object. Keys that are not asked for do not matter."""

    def __init__(self, field: str, data: object) -> None:
        if not isinstance(data, Mapping):
            raise _unreadable(field, "is no object")
        self._field, self._data = field, data

    def value(self, key: str, read: Callable[[object], Value], default: Value) -> Value:
        """What stands there, or `default` where nothing does."""
        return self.required(key, read) if key in self._data else default

    def required(self, key: str, read: Callable[[object], Value]) -> Value:
        """What stands there."""
        field = f"{self._field}.{key}" if self._field else key
        if key not in self._data:
            raise _unreadable(field, "is missing")
        try:
            return read(self._data[key])
        except SpecUnreadable as error:
            inside = "" if error.message.startswith(("is ", "has ")) else "."
            raise SpecUnreadable(f"{field}{inside or ' '}{error.message}") from error

    def inner(self, key: str) -> _Object:
        """The object under this key; an empty one where there is none."""
        return _Object(key, self._data.get(key, {}))


def _unreadable(field: str, what: str) -> SpecUnreadable:
    return SpecUnreadable(f"{field} {what}".strip())


def _roles(top: _Object) -> dict[Role, RoleSpec]:
    found = top.required("roles", _table_of(_role))
    roles = {_word(Role)(name): one for name, one in found.items()}
    if sum(one.replicas for one in roles.values()) > MOST_TASKS:
        raise _unreadable("roles", "has more tasks than can be counted")
    return roles


def _role(value: object) -> RoleSpec:
    one = _Object("", value)
    resources = Resources(
        cpu=one.value("cpu", _amount(parse_cpu), 1.0),
        memory=one.value("memory", _amount(parse_memory), 1 << 30),
        gpus=one.value("gpus", _count, 0),
        extended=one.value("extended", _table_of(_count), {}),
    )
    return RoleSpec(one.value("replicas", _count, 1), resources, one.value("image", _text, ""))


def _pinned(value: object) -> PinnedImage:
    one = _Object("", value)
    return PinnedImage(
        one.required("name", _text), one.required("reference", _text), one.value("pull_secret", _text, "")
    )


def _input(value: object) -> DatasetInput:
    one = _Object("", value)
    model = one.value("model_version", _or_none(_id), None)
    return DatasetInput(
        None if model else one.required("dataset_version", _id),
        one.value("name", _text, ""),
        one.value("mode", _word(InputMode), InputMode.FOLDER),
        one.value("share", _word(InputShare), InputShare.ALL),
        model,
        one.value("stands_for", _text, ""),
        one.value("source", _word(InputSource), InputSource.STORE),
    )


def _publishes(value: object) -> Publishes:
    one = _Object("", value)
    return Publishes(one.required("dataset", _text), one.value("note", _text, ""))


def _option(value: object) -> Option:
    if not isinstance(value, (str, int, float)):
        raise _unreadable("", "is no option")
    return value


def _secret(value: object) -> SecretInput:
    one = _Object("", value)
    return SecretInput(one.required("name", _text), one.value("env", _text, ""), one.value("file", _text, ""))


def _connection(value: object) -> ConnectionInput:
    one = _Object("", value)
    return ConnectionInput(one.required("name", _text), one.value("cache", _text, ""))


def _spark(value: object) -> SparkInput:
    one = _Object("", value)
    plain = SparkInput(one.required("cluster", _text))
    return SparkInput(
        plain.cluster,
        one.value("executors", _count, plain.executors),
        one.value("cores", _count, plain.cores),
        one.value("memory", _amount(parse_memory), plain.memory),
    )


def _paths(top: _Object) -> Paths:
    paths = top.inner("paths")
    return Paths(**{key: paths.value(key, _text, getattr(_DEFAULTS.paths, key)) for key in Paths.__dataclass_fields__})


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _unreadable("", "is no text")
    return value


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _unreadable("", "is no whole number")
    return value


def _truth(value: object) -> bool:
    if not isinstance(value, bool):
        raise _unreadable("", "is neither true nor false")
    return value


def _count(value: object) -> int:
    if _whole(value) < 0:
        raise _unreadable("", "is less than nothing")
    return _whole(value)


def _duration(value: object) -> timedelta:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _unreadable("", "is no duration")
    if isinstance(value, float) and not math.isfinite(value):  # an integer may be too large to ask that of
        raise _unreadable("", "is no duration")
    if not 0 <= value <= _LONGEST:
        raise _unreadable("", "is no possible duration")
    return timedelta(seconds=value)


def _id(value: object) -> uuid.UUID:
    try:
        return uuid.UUID(_text(value))
    except ValueError as error:
        raise _unreadable("", "is no id") from error


def _amount(parse: Callable[[object], Value]) -> Callable[[object], Value]:
    def read(value: object) -> Value:
        try:
            amount = parse(value)
        except (NotAQuantity, ValueError, ArithmeticError) as error:
            raise _unreadable("", "is no amount") from error
        if amount < 0:  # type: ignore[operator]  # both parsers give numbers
            raise _unreadable("", "is less than nothing")
        return amount

    return read


def _word(words: type[Word]) -> Callable[[object], Word]:
    def read(value: object) -> Word:
        try:
            return words(_text(value))
        except ValueError as error:
            raise _unreadable("", "is not known to this release") from error

    return read


def _or_none(read: Callable[[object], Value]) -> Callable[[object], Value | None]:
    def read_one(value: object) -> Value | None:
        return None if value is None else read(value)

    return read_one


def _list_of(read: Callable[[object], Value]) -> Callable[[object], tuple[Value, ...]]:
    def read_all(value: object) -> tuple[Value, ...]:
        if not isinstance(value, (list, tuple)):
            raise _unreadable("", "is no list")
        return tuple(read(one) for one in value)

    return read_all


def _table_of(read: Callable[[object], Value]) -> Callable[[object], dict[str, Value]]:
    def read_all(value: object) -> dict[str, Value]:
        if not isinstance(value, Mapping):
            raise _unreadable("", "is no object")
        return {_text(name): read(one) for name, one in value.items()}

    return read_all

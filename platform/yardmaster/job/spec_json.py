"""The JSON form of a job specification, version 1: read with every problem named, and written.

`spec_from_json` accepts any value at all and either returns a valid `TrainingSpec` or raises `SpecRejected` with all
that is wrong. A key that is not known where it stands is refused by name, never passed over: a limit at the wrong
level that silently does nothing is worse than an error.

Not here: what makes a spec valid (`spec_rules`, which is asked at the end), and YAML (the command line's).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from yardmaster.errors import Problem, SpecRejected
from yardmaster.job.programs import MOST_OPTIONS
from yardmaster.job.spec import (
    DEFAULT_MEMORY,
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
from yardmaster.job.spec_limits import DEFAULT_LIMITS, SpecLimits, shorten
from yardmaster.job.spec_reading import HUGE, MOST_PROBLEMS, NO_ID, Reading
from yardmaster.job.spec_rules import DEPENDS_ON_STRATEGY, check_spec
from yardmaster.job.strategy import only_serves
from yardmaster.quantity import format_bytes, parse_cpu, parse_memory

_TOP = (
    "version", "name", "strategy", "roles", "code", "entry_point", "arguments", "environment", "inputs", "secrets",
    "paths", "model", "retries", "max_runtime", "grace_period", "reclaim_delay", "hold_failed", "priority",
    "priority_class", "success", "program", "options", "publishes", "requirements", "log_dir",
    "checkpoint_store", "command", "parameters", "tf1", "image", "connection", "spark",
)  # fmt: skip
_ROLE = ("replicas", "cpu", "memory", "gpus", "extended", "image")
_INPUT = ("dataset_version", "model_version", "name", "mode", "share", "stands_for", "source")
_SECRET = ("name", "env", "file")
_CONNECTION = ("name", "cache")
_SPARK = ("cluster", "executors", "cores", "memory")
_PATHS = tuple(Paths.__dataclass_fields__)
_MODEL = ("name",)
_SUCCESS = ("rule", "percent")
_PUBLISHES = ("dataset", "note")
_LEVELS = {
    "the top level": _TOP,
    "roles.<role>": _ROLE,
    "inputs.<n>": _INPUT,
    "secrets.<n>": _SECRET,
    "connection": _CONNECTION,
    "spark": _SPARK,
    "paths": _PATHS,
    "model": _MODEL,
    "success": _SUCCESS,
    "publishes": _PUBLISHES,
}
_STAND_IN = TrainingSpec("job", Strategy.SINGLE, {Role.WORKER: RoleSpec()}, NO_ID, "train.py")
_WITHOUT_SCRIPT = tuple(one.value for one in Strategy if only_serves(one))


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
    """The JSON form with every key written out. `spec_from_json` of it gives the same spec, without what the portal
    wrote down at the launch (`spec_stored.stored_form` has that, too)."""
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
        "secrets": [_secret_to_json(one) for one in spec.secrets],
        "paths": {key: getattr(spec.paths, key) for key in _PATHS},
        "model": {"name": spec.model_name},
        "retries": spec.retries,
        "max_runtime": None if spec.max_runtime is None else _seconds(spec.max_runtime),
        "grace_period": _seconds(spec.grace_period),
        "reclaim_delay": _seconds(spec.reclaim_delay),
        "hold_failed": _seconds(spec.hold_failed),
        "priority": spec.priority,
        "priority_class": spec.priority_class,
        "success": {"rule": spec.success_rule.value, "percent": spec.success_percent},
        "program": spec.program,
        "options": dict(spec.options),
        "publishes": spec.publishes and {"dataset": spec.publishes.dataset, "note": spec.publishes.note},
        "requirements": None if spec.requirements is None else list(spec.requirements),
        "log_dir": spec.log_dir.value,
        "checkpoint_store": spec.checkpoint_store.value,
        "command": spec.command,
        "parameters": dict(spec.parameters),
        "tf1": spec.tf1,
        "image": spec.image,
        "connection": spec.connection and {"name": spec.connection.name, "cache": spec.connection.cache},
        "spark": spec.spark and {key: getattr(spec.spark, key) for key in _SPARK},
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
        "image": one.image,
    }


def _input_to_json(one: DatasetInput) -> dict[str, str]:
    kind = "dataset_version" if one.model_version is None else "model_version"
    return {
        kind: str(one.version),
        "name": one.name,
        "mode": one.mode.value,
        "share": one.share.value,
        "stands_for": one.stands_for,
        "source": one.source.value,
    }


def _secret_to_json(one: SecretInput) -> dict[str, str]:
    """Without what is not set: most have one of the two."""
    return {key: value for key in _SECRET if (value := getattr(one, key))}


def _seconds(duration: timedelta) -> int:
    return int(duration.total_seconds())


def _required_of(data: object) -> tuple[str, ...]:
    always = ("name", "strategy", "roles")
    if isinstance(data, Mapping) and _is_without_script(data):
        return always
    has_command = isinstance(data, Mapping) and bool(data.get("command"))
    return (*always, "code") if has_command else (*always, "code", "entry_point")


def _is_without_script(data: Mapping[Any, Any]) -> bool:
    return data.get("strategy") in _WITHOUT_SCRIPT or bool(data.get("program"))


class _Reading(Reading):
    """One reading of a specification."""

    def __init__(self, limits: SpecLimits) -> None:
        super().__init__(_LEVELS)
        self._limits = limits

    def is_real(self, found: Problem) -> bool:
        """Whether a rule's problem is about what was written, not about what stands in for something unreadable."""
        if found.code in DEPENDS_ON_STRATEGY and "strategy" in self.unread:
            return False
        return self.is_read(found.field)

    def spec(self, data: object) -> TrainingSpec:
        """The spec, with stand-ins for what is in `problems`."""
        if isinstance(data, Mapping) and not self._version_is_known(data.get("version", VERSION)):
            return _STAND_IN
        top = self.keys("", data, _TOP, required=_required_of(data))
        has_no_script = _is_without_script(top)
        has_no_file = has_no_script or bool(top.get("command"))
        success = self.keys("success", top.get("success", {}), _SUCCESS)
        return TrainingSpec(
            name=self.text("name", top.get("name", _STAND_IN.name)),
            strategy=self.word("strategy", top.get("strategy", _STAND_IN.strategy.value), Strategy, _STAND_IN.strategy),
            roles=self.roles(top.get("roles", {})),
            code_version=None
            if has_no_script and top.get("code") is None
            else self.id("code", top.get("code", str(NO_ID))),
            entry_point=self.text("entry_point", top.get("entry_point", "" if has_no_file else "train.py")),
            arguments=tuple(self.texts("arguments", top.get("arguments", []), self._limits.arguments)),
            environment=self.environment(top.get("environment", {})),
            inputs=tuple(self.inputs(top.get("inputs", []))),
            secrets=tuple(self.secrets(top.get("secrets", []))),
            connection=None if top.get("connection") is None else self.connection(top["connection"]),
            spark=None if top.get("spark") is None else self.spark(top["spark"]),
            paths=self.paths(top.get("paths", {})),
            model_name=self.text("model.name", self.keys("model", top.get("model", {}), _MODEL).get("name", "")),
            retries=self.whole("retries", top.get("retries", _STAND_IN.retries)),
            max_runtime=None if top.get("max_runtime") is None else self.duration("max_runtime", top["max_runtime"]),
            grace_period=self.duration("grace_period", top.get("grace_period", _seconds(_STAND_IN.grace_period))),
            reclaim_delay=self.duration("reclaim_delay", top.get("reclaim_delay", _seconds(_STAND_IN.reclaim_delay))),
            hold_failed=self.duration("hold_failed", top.get("hold_failed", _seconds(_STAND_IN.hold_failed))),
            priority=self.whole("priority", top.get("priority", _STAND_IN.priority)),
            priority_class=self.text("priority_class", top.get("priority_class", "")),
            success_rule=self.word("success.rule", success.get("rule", "workers"), SuccessRule, SuccessRule.WORKERS),
            success_percent=self.whole("success.percent", success.get("percent", 100), stand_in=100),
            program=self.text("program", top.get("program", "")),
            options=self.options("options", top.get("options", {}), MOST_OPTIONS),
            publishes=None if top.get("publishes") is None else self.publishes(top["publishes"]),
            requirements=None if top.get("requirements") is None else self.requirements(top["requirements"]),
            log_dir=self.word("log_dir", top.get("log_dir", "disk"), LogDir, LogDir.DISK),
            checkpoint_store=self.word(
                "checkpoint_store", top.get("checkpoint_store", "portal"), CheckpointStore, CheckpointStore.PORTAL
            ),
            command=self.text("command", top.get("command", "")),
            parameters=self.options("parameters", top.get("parameters", {}), self._limits.parameters),
            tf1=self.truth("tf1", top.get("tf1", False)),
            image=self.text("image", top.get("image", "")),
        )

    # Parts.

    def _version_is_known(self, value: object) -> bool:
        if value == VERSION and isinstance(value, int) and not isinstance(value, bool):
            return True
        message = f"Unknown specification version. This portal supports version {VERSION}."
        self.refuse("version", "unsupported_version", message, f"Write {VERSION}, or leave it out.", value)
        self.unread.append("")
        return False

    def roles(self, value: object) -> dict[Role, RoleSpec]:
        names = tuple(role.value for role in Role)
        return {Role(name): self.role(f"roles.{name}", one) for name, one in self.keys("roles", value, names).items()}

    def role(self, field: str, value: object) -> RoleSpec:
        found = self.keys(field, value, _ROLE)
        extended = self.mapping(f"{field}.extended", found.get("extended", {}), self._limits.extended)
        resources = Resources(
            cpu=self.quantity(f"{field}.cpu", found.get("cpu", 1), parse_cpu, 1.0),
            memory=self.quantity(f"{field}.memory", found.get("memory", DEFAULT_MEMORY), parse_memory, DEFAULT_MEMORY),
            gpus=self.whole(f"{field}.gpus", found.get("gpus", 0)),
            extended={key: self.whole(f"{field}.extended.{shorten(key)}", one) for key, one in extended.items()},
        )
        replicas = self.whole(f"{field}.replicas", found.get("replicas", 1), stand_in=1)
        return RoleSpec(replicas, resources, self.text(f"{field}.image", found.get("image", "")))

    def inputs(self, value: object) -> list[DatasetInput]:
        found = []
        for index, one in enumerate(self.items("inputs", value, self._limits.inputs)):
            field = f"inputs.{index}"
            is_model = isinstance(one, Mapping) and one.get("model_version") is not None
            kind = "model_version" if is_model else "dataset_version"
            keys = self.keys(field, one, _INPUT, required=(kind,))
            if is_model and keys.get("dataset_version") is not None:
                message = "An input is a version of a dataset or of a model, not both."
                self.unreadable(field, "conflict", message, "Write two inputs.", one)
            version = self.id(f"{field}.{kind}", keys.get(kind, str(NO_ID)))
            name = self.text(f"{field}.name", keys.get("name", ""))
            mode = self.word(f"{field}.mode", keys.get("mode", "folder"), InputMode, InputMode.FOLDER)
            share = self.word(f"{field}.share", keys.get("share", "all"), InputShare, InputShare.ALL)
            stands_for = self.text(f"{field}.stands_for", keys.get("stands_for", ""))
            source = self.word(f"{field}.source", keys.get("source", "store"), InputSource, InputSource.STORE)
            dataset, model = (None, version) if is_model else (version, None)
            found.append(DatasetInput(dataset, name, mode, share, model, stands_for, source))
        return found

    def secrets(self, value: object) -> list[SecretInput]:
        found = []
        for index, one in enumerate(self.items("secrets", value, self._limits.secrets)):
            field = f"secrets.{index}"
            keys = self.keys(field, one, _SECRET, required=("name",))
            texts = {key: self.text(f"{field}.{key}", keys.get(key, "")) for key in _SECRET}
            found.append(SecretInput(**texts))
        return found

    def connection(self, value: object) -> ConnectionInput:
        found = self.keys("connection", value, _CONNECTION, required=("name",))
        return ConnectionInput(**{key: self.text(f"connection.{key}", found.get(key, "")) for key in _CONNECTION})

    def spark(self, value: object) -> SparkInput:
        found = self.keys("spark", value, _SPARK, required=("cluster",))
        plain = SparkInput(self.text("spark.cluster", found.get("cluster", "spark")))
        return SparkInput(
            plain.cluster,
            self.whole("spark.executors", found.get("executors", plain.executors), stand_in=plain.executors),
            self.whole("spark.cores", found.get("cores", plain.cores), stand_in=plain.cores),
            self.quantity("spark.memory", found.get("memory", plain.memory), parse_memory, plain.memory),
        )

    def paths(self, value: object) -> Paths:
        found = self.keys("paths", value, _PATHS)
        return Paths(**{str(key): self.text(f"paths.{key}", one) for key, one in found.items()})

    def options(self, field: str, value: object, most: int) -> dict[str, Option]:
        found: dict[str, Option] = {}
        for name, one in self.mapping(field, value, most).items():
            if isinstance(one, (str, bool)) or (isinstance(one, (int, float)) and abs(one) < HUGE):
                found[name] = one
            else:
                remedy = "Write a text, a number, true or false."
                message = "Expected a text, a number, true or false."
                self.unreadable(f"{field}.{shorten(name)}", "wrong_type", message, remedy, one)
        return found

    def publishes(self, value: object) -> Publishes:
        found = self.keys("publishes", value, _PUBLISHES, required=("dataset",))
        dataset = self.text("publishes.dataset", found.get("dataset", "dataset"))
        return Publishes(dataset, self.text("publishes.note", found.get("note", "")))

    def requirements(self, value: object) -> tuple[str, ...]:
        return tuple(self.texts("requirements", value, self._limits.requirements))

    def environment(self, value: object) -> dict[str, str]:
        found = self.mapping("environment", value, self._limits.variables)
        # A variable may be a secret: its value is not repeated in the problem.
        return {name: self.text(f"environment.{shorten(name)}", one, secret=True) for name, one in found.items()}

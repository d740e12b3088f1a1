"""Failures whose remedy is a known change of the specification: which change, and the specification with it.

Only what the platform can do by itself is here: more memory, more time, more restarts, a flag not passed, a variable,
a requirement, a script that is run as a module.
Not here: why a job failed (`failures`), and remedies that are a person's work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from yardmaster.job.spec import Role, TrainingSpec
from yardmaster.job.spec_limits import DEFAULT_LIMITS
from yardmaster.job.spec_requirements import requirements_problems
from yardmaster.lifecycle.failures import Verdict, signal_of
from yardmaster.lifecycle.tracebacks import Explanation
from yardmaster.quantity import format_bytes
from yardmaster_runner.entry_point import module_of
from yardmaster_runner.requirement_files import name_of

_MEMORY_STEP = 256 << 20
_HEADROOM = 1.5
_NEARLY_ALL = 0.8
"""Of its memory: a task killed by SIGKILL with more than this in use was most likely killed for it."""
PKG_RESOURCES_GONE = "pkg_resources_gone"
OLDER_SETUPTOOLS = "setuptools<81"
_MORE_RESTARTS = 3
_MOST_RESTARTS = 100
_ROLE_WORDS = {
    Role.CHIEF: "the chief",
    Role.WORKER: "each worker",
    Role.PS: "each parameter server",
    Role.DRIVER: "the driver",
    Role.EXECUTOR: "each executor",
}


@dataclass(frozen=True)
class Change:
    """`label` says what the next attempt does differently, fit to follow "Retry with". `is_sure`: it takes away the
    cause, where more restarts merely try the same again."""

    label: str
    spec: TrainingSpec
    is_sure: bool = True


def known_change(
    spec: TrainingSpec,
    verdict: Verdict,
    explanation: Explanation | None,
    peak_memory: int | None,
    required: Sequence[str] | None = None,
) -> Change | None:
    """The change that the failure asks for, or None where it takes a person. `peak_memory` is the failed task's;
    `required`: what the code asks to be installed, None: that is not known."""
    if _lacked_memory(spec, verdict, explanation, peak_memory):
        return _more_memory(spec, verdict.role, peak_memory)
    match verdict.reason:
        case "DeadlineExceeded":
            return _more_time(spec)
        case "RestartsSpent" if spec.retries < _MOST_RESTARTS and explanation is None:
            retries = min(_MOST_RESTARTS, spec.retries + _MORE_RESTARTS)
            words = f"{retries} restarts instead of {spec.retries}"
            return Change(words, replace(spec, retries=retries), is_sure=False)
    if explanation is None:
        return None
    return (
        _other_environment(spec, explanation)
        or _fewer_flags(spec, explanation)
        or _as_module(spec, explanation)
        or _older_setuptools(spec, explanation, required)
    )


def _lacked_memory(
    spec: TrainingSpec, verdict: Verdict, explanation: Explanation | None, peak_memory: int | None
) -> bool:
    if verdict.reason == "OutOfMemory":
        return True
    if explanation is not None and explanation.reason == "OutOfMemory" and "main memory" in explanation.message:
        return True
    if verdict.role is None or verdict.role not in spec.roles:
        return False
    if peak_memory is None or signal_of(verdict.exit_code) != 9:
        return False
    return peak_memory >= _NEARLY_ALL * spec.roles[verdict.role].resources.memory


def _more_memory(spec: TrainingSpec, role: Role | None, peak_memory: int | None) -> Change | None:
    if role is None or role not in spec.roles:
        return None
    one = spec.roles[role]
    asked = one.resources.memory
    wanted = max(2 * asked, int(_HEADROOM * (peak_memory or 0)))
    memory = -(-wanted // _MEMORY_STEP) * _MEMORY_STEP
    larger = replace(one, resources=replace(one.resources, memory=memory))
    words = f"{format_bytes(memory)} for {_ROLE_WORDS.get(role, f'the {role}')} instead of {format_bytes(asked)}"
    return Change(words, replace(spec, roles={**spec.roles, role: larger}))


def _more_time(spec: TrainingSpec) -> Change | None:
    if spec.max_runtime is None:
        return None
    longer = 2 * spec.max_runtime
    words = f"a maximum runtime of {_time_words(longer)} instead of {_time_words(spec.max_runtime)}"
    return Change(words, replace(spec, max_runtime=longer))


def _other_environment(spec: TrainingSpec, explanation: Explanation) -> Change | None:
    """The variables with which it would not have failed, where the job does not have them already."""
    missing = {name: value for name, value in explanation.environment.items() if spec.environment.get(name) != value}
    if not missing:
        return None
    words = " ".join(f"{name}={value}" for name, value in missing.items())
    return Change(words, replace(spec, environment={**spec.environment, **missing}))


def _fewer_flags(spec: TrainingSpec, explanation: Explanation) -> Change | None:
    """Pass none of the flags that the script's argument parser does not know; their variables say the same."""
    if "does not know" not in explanation.message:
        return None
    unknown = {word.partition("=")[0].lstrip("-") for word in explanation.message.rstrip(".").split()}
    names = ("data_flag", "log_flag", "model_flag")
    flags = {name: getattr(spec.paths, name) for name in names if getattr(spec.paths, name)}
    refused = {name: flag for name, flag in flags.items() if flag.lstrip("-") in unknown}
    if not refused:
        return None
    words = f"{' and '.join(refused.values())} left out (its directory is in the environment, too)"
    return Change(words, replace(spec, paths=replace(spec.paths, **dict.fromkeys(refused, ""))))


def _as_module(spec: TrainingSpec, explanation: Explanation) -> Change | None:
    """A script in a package is run as its module; one at the top of the code is in none."""
    if explanation.code != "relative_import" or "no known parent" not in explanation.message:
        return None
    entry_point = f"-m {spec.entry_point.removesuffix('.py').replace('/', '.')}"
    if "/" not in spec.entry_point or not spec.entry_point.endswith(".py") or module_of(entry_point) is None:
        return None
    return Change(f"{entry_point} in the place of {spec.entry_point}", replace(spec, entry_point=entry_point))


def _older_setuptools(spec: TrainingSpec, explanation: Explanation, required: Sequence[str] | None) -> Change | None:
    """Beside all that is asked for by now: the specification's requirements replace those of the code. Where these are
    nothing that a specification may ask for, there is no change."""
    lines = required if spec.requirements is None else spec.requirements
    if explanation.code != PKG_RESOURCES_GONE or lines is None:
        return None
    wanted = (*(line for line in lines if name_of(line) != "setuptools"), OLDER_SETUPTOOLS)
    changed = replace(spec, requirements=wanted)
    if wanted == spec.requirements or any(requirements_problems(changed, DEFAULT_LIMITS)):
        return None
    return Change(OLDER_SETUPTOOLS, changed)


def _time_words(time: timedelta) -> str:
    minutes, seconds = divmod(int(time.total_seconds()), 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{count} {unit}" for count, unit in ((hours, "h"), (minutes, "min"), (seconds, "s")) if count]
    return " ".join(parts) or "0 s"

"""Which specifications are valid, as one list of checks. Fields are named as in the JSON form.

Everything that can be said without looking anything up is said here, for the form, the command line and the API alike.
Not here: types and unknown keys (`spec_json`), whether the code and data exist (services), what the script does with
all this (`preflight`), and whether there is capacity (`admission`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta

from yardmaster.errors import Problem
from yardmaster.job.image_rules import image_problems
from yardmaster.job.program_rules import program_problems, publishing_problems
from yardmaster.job.spec import AUTO, CheckpointStore, Paths, Resources, Role, Strategy, SuccessRule, TrainingSpec
from yardmaster.job.spec_connection import connection_problems
from yardmaster.job.spec_entry import entry_problems
from yardmaster.job.spec_inputs import inputs_problems
from yardmaster.job.spec_limits import DEFAULT_LIMITS, SpecLimits, is_text, shorten
from yardmaster.job.spec_requirements import requirements_problems
from yardmaster.job.spec_secrets import secrets_problems
from yardmaster.job.spec_spark import is_without_role, of_spark_cluster, spark_memory_problems, spark_problems
from yardmaster.job.spec_texts import variable_problems
from yardmaster.job.strategy import ROLES, is_service, never_ending_roles, only_serves
from yardmaster.job.volumes import volume_problems
from yardmaster.quantity import format_bytes, format_cpu

CLASSIC_FLAGS = ("--ps_hosts", "--worker_hosts", "--job_name", "--task_index")
DEPENDS_ON_STRATEGY = frozenset({"role_not_allowed", "role_missing", "too_many_tasks", "conflict"})
"""Codes of problems that another strategy might not have."""

_FLAG = re.compile(r"--[A-Za-z][A-Za-z0-9_-]{0,60}", re.ASCII)
_EXTENDED = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


def check_spec(spec: TrainingSpec, limits: SpecLimits = DEFAULT_LIMITS) -> list[Problem]:
    """Every problem of the spec, in the order of its fields; empty when it is valid."""
    return [problem for check in _CHECKS for problem in check(spec, limits)]


def _name(spec: TrainingSpec, limits: SpecLimits) -> Iterator[Problem]:
    name = spec.name
    if not 1 <= len(name) <= limits.name or not name.isprintable() or not name.strip():
        yield Problem(
            "name",
            "bad_value",
            f"A name has 1 to {limits.name} printable characters, not only spaces.",
            "Give the job a short name.",
            shorten(name),
        )


def _roles(spec: TrainingSpec, limits: SpecLimits) -> Iterator[Problem]:
    rules, strategy = ROLES[spec.strategy], spec.strategy.value
    for role in Role:
        count, rule = spec.replicas(role), rules.get(role)
        field = f"roles.{role.value}"
        if is_without_role(spec, role):
            continue  # `spark_problems` says it where there is one
        if role in spec.roles and rule is None:
            allowed = ", ".join(one.value for one in rules)
            yield Problem(field, "role_not_allowed", f"{strategy} has no {role.value}.", f"Use only: {allowed}.")
        elif role not in spec.roles and rule is not None and rule.least > 0:
            yield Problem(field, "role_missing", f"{strategy} needs a {role.value}.", f"Add roles.{role.value}.")
        elif role in spec.roles and rule is not None:
            if count < 1:
                remedy = "Request at least one, or remove the role." if rule.least == 0 else "Request at least one."
                yield Problem(f"{field}.replicas", "out_of_range", "A role has at least 1 task.", remedy, str(count))
            elif rule.most is not None and count > rule.most:
                message = f"{strategy} has at most {rule.most} {role.value}."
                yield Problem(f"{field}.replicas", "too_many_tasks", message, f"Request {rule.most}.", str(count))
    total = sum(one.replicas for one in spec.roles.values())
    if total > limits.tasks:
        message = f"All roles together have {total} tasks; the maximum is {limits.tasks}."
        yield Problem("roles", "out_of_range", message, "Request fewer, larger tasks.", str(total))


def _resources(spec: TrainingSpec, limits: SpecLimits) -> Iterator[Problem]:
    for role, one in spec.roles.items():
        yield from _resources_of_one(f"roles.{role.value}", one.resources, limits)


def _resources_of_one(field: str, asked: Resources, limits: SpecLimits) -> Iterator[Problem]:
    if not 0.001 <= asked.cpu <= limits.cpu:
        message = f"A task has between 0.001 and {format_cpu(limits.cpu)} cores."
        yield Problem(f"{field}.cpu", "out_of_range", message, 'Write for instance 1 or "500m".', format_cpu(asked.cpu))
    if not limits.least_memory <= asked.memory <= limits.memory:
        message = f"A task has between {format_bytes(limits.least_memory)} and {format_bytes(limits.memory)} of memory."
        remedy = 'Write for instance "2Gi"; a plain number is in bytes.'
        yield Problem(f"{field}.memory", "out_of_range", message, remedy, str(asked.memory))
    if not 0 <= asked.gpus <= limits.devices:
        message = f"A task has between 0 and {limits.devices} GPUs."
        yield Problem(f"{field}.gpus", "out_of_range", message, "Omit it for none.", str(asked.gpus))
    for name, amount in asked.extended.items():
        if not is_extended_name(name) or of_spark_cluster(name):
            message = "Not a valid name of an extended resource."
            yield Problem(f"{field}.extended.{name}", "bad_value", message, "Write for instance rdma/hca.", name)
        elif not 1 <= amount <= limits.devices:
            message = f"An extended resource has an amount from 1 to {limits.devices}."
            yield Problem(f"{field}.extended.{name}", "out_of_range", message, "Omit it for none.", str(amount))


def is_extended_name(name: str) -> bool:
    """Whether a resource beside those with words of their own may be called so."""
    return bool(_EXTENDED.fullmatch(name)) and name not in ("cpu", "memory", "gpus", "storage", "running_jobs")


def _no_script(spec: TrainingSpec, _: SpecLimits) -> Iterator[Problem]:
    """What only a script could use is refused where none runs: it would silently do nothing."""
    if not only_serves(spec.strategy):
        return
    tasks = (
        "its task is a server of the portal" if is_service(spec.strategy) else "its tasks are plain TensorFlow servers"
    )
    why = f"{spec.strategy.value} runs no script: {tasks}"
    for field, value in (
        ("code", "" if spec.code_version is None else str(spec.code_version)),
        ("entry_point", spec.entry_point),
        ("arguments", " ".join(spec.arguments)),
    ):
        if value:
            yield Problem(field, "conflict", f"{why}.", f"Remove {field}.", shorten(value))
    if spec.success_rule is not SuccessRule.WORKERS:
        message = f"{why}, and only a stop ends it."
        yield Problem("success.rule", "conflict", message, "Remove success.", spec.success_rule.value)


def _arguments(spec: TrainingSpec, limits: SpecLimits) -> Iterator[Problem]:
    if len(spec.arguments) > limits.arguments:
        message = f"There are at most {limits.arguments} arguments."
        yield Problem(
            "arguments", "too_long", message, "Put them into a file in the code version.", str(len(spec.arguments))
        )
        return
    for index, argument in enumerate(spec.arguments):
        field, flag = f"arguments.{index}", argument.partition("=")[0]
        if len(argument) > limits.text:
            message = f"An argument has at most {limits.text} characters."
            yield Problem(field, "too_long", message, "Put it into a file in the code version.", shorten(argument))
        elif not is_text(argument):
            yield Problem(
                field, "bad_value", "An argument is Unicode text without NUL.", "Remove the invalid character."
            )
        elif spec.strategy is Strategy.BETWEEN_GRAPH and flag in CLASSIC_FLAGS:
            remedy = "Remove it: each task gets its own value."
            yield Problem(field, "reserved", f"{flag} is set by Yardmaster.", remedy, shorten(argument))


def _environment(spec: TrainingSpec, limits: SpecLimits) -> Iterator[Problem]:
    if len(spec.environment) > limits.variables:
        message = f"There are at most {limits.variables} variables."
        yield Problem("environment", "too_long", message, "Put them into a file in the code version.")
        return
    ours = {getattr(spec.paths, key): key for key in _path_keys(spec, "_env")}
    for name, value in spec.environment.items():
        field = f"environment.{shorten(name)}"
        yield from variable_problems(field, name)
        if name and name in ours:
            remedy = f"Remove it, or set paths.{ours[name]} to another name or to an empty text."
            yield Problem(field, "reserved", f"Yardmaster sets {name} itself (paths.{ours[name]}).", remedy, name)
        if len(value) > limits.text:
            message = f"A variable has at most {limits.text} characters."
            yield Problem(field, "too_long", message, "Put it into a file in the code version.")
        elif not is_text(value):
            yield Problem(
                field, "bad_value", "A variable is Unicode text without NUL.", "Remove the invalid character."
            )


def _paths(spec: TrainingSpec, _: SpecLimits) -> Iterator[Problem]:
    for ending, check in (("_flag", _flag), ("_env", variable_problems)):
        seen: set[str] = set()
        for key in _path_keys(spec, ending):
            field, value = f"paths.{key}", getattr(spec.paths, key)
            if not value or (value == AUTO and ending == "_flag" and key != "output_flag"):
                continue
            yield from check(field, value)
            is_one_dir = key == "model_flag" and value == spec.paths.log_flag != spec.paths.data_flag
            if value in seen and not is_one_dir:
                remedy = "Use different names, or leave one empty."
                yield Problem(field, "duplicate", "Two paths have the same name.", remedy, shorten(value))
            seen.add(value)


def _model(spec: TrainingSpec, limits: SpecLimits) -> Iterator[Problem]:
    name = spec.model_name
    if name and (len(name) > limits.name or not name.isprintable() or name != name.strip()):
        message = f"A model's name has at most {limits.name} printable characters and no space at its ends."
        yield Problem("model.name", "bad_value", message, "Leave it out for the job's name.", shorten(name))
    elif name and only_serves(spec.strategy):
        message = f"{spec.strategy.value} runs no script, so that nothing exports a model."
        yield Problem("model.name", "conflict", message, "Remove model.", shorten(name))


def _flag(field: str, flag: str) -> Iterator[Problem]:
    if not _FLAG.fullmatch(flag):
        message = "A flag begins with -- and has letters, digits, - and _."
        yield Problem(field, "bad_value", message, "Write for instance --data_dir, or leave it empty.", shorten(flag))
    elif flag in CLASSIC_FLAGS:
        yield Problem(field, "reserved", f"{flag} is reserved: it identifies the task.", "Choose another flag.", flag)


def _path_keys(spec: TrainingSpec, ending: str) -> tuple[str, ...]:
    """The paths that the tasks of this job have: an output directory only where it is published."""
    keys = (key for key in Paths.__dataclass_fields__ if key.endswith(ending))
    return tuple(key for key in keys if spec.publishes or not key.startswith("output_"))


def _limits(spec: TrainingSpec, limits: SpecLimits) -> Iterator[Problem]:
    if not 0 <= spec.retries <= limits.retries:
        yield _range("retries", 0, limits.retries, spec.retries)
    if not -1000 <= spec.priority <= 1000:
        yield _range("priority", -1000, 1000, spec.priority)
    second, none = timedelta(seconds=1), timedelta(0)
    for field, value, least, most in (
        ("max_runtime", spec.max_runtime, second, limits.runtime),
        ("grace_period", spec.grace_period, none, limits.grace),
        ("reclaim_delay", spec.reclaim_delay, none, limits.reclaim_delay),
        ("hold_failed", spec.hold_failed, none, limits.hold),
    ):
        if value is not None and (not least <= value <= most or value.microseconds):
            low, high, asked = (one.total_seconds() for one in (least, most, value))
            yield _range(field, int(low), int(high), asked, " whole seconds")
    if spec.hold_failed and (spec.program or only_serves(spec.strategy)):
        message = "Only a task that runs a script of yours is held open when that has failed."
        yield Problem(
            "hold_failed", "conflict", message, "Remove hold_failed.", str(int(spec.hold_failed.total_seconds()))
        )


def _range(field: str, least: int, most: int, value: float, unit: str = "") -> Problem:
    message = f"{field} is between {least} and {most}{unit}."
    return Problem(field, "out_of_range", message, f"Choose a number from {least} to {most}.", format_cpu(value))


def _success(spec: TrainingSpec, _: SpecLimits) -> Iterator[Problem]:
    percent = spec.success_percent
    if not 1 <= percent <= 100:
        yield _range("success.percent", 1, 100, percent)
    elif percent != 100 and spec.success_rule is SuccessRule.CHIEF:
        remedy = 'Remove percent, or use the rule "workers".'
        yield Problem(
            "success.percent", "conflict", 'A percentage belongs to the rule "workers".', remedy, str(percent)
        )
    elif spec.strategy is Strategy.BATCH and spec.success_rule is SuccessRule.CHIEF:
        message = "batch has no leading task: all workers must succeed."
        yield Problem("success.rule", "conflict", message, "Remove success.", spec.success_rule.value)
    elif percent != 100 and spec.strategy is Strategy.BATCH:
        message = "In batch each worker does a part of the work: all must succeed."
        yield Problem("success.percent", "conflict", message, "Remove percent.", str(percent))
    elif spec.strategy is Strategy.SPARK and (percent != 100 or spec.success_rule is SuccessRule.CHIEF):
        yield Problem("success.rule", "conflict", "The driver of spark decides alone.", "Remove success.")
    elif percent != 100 and Role.WORKER in never_ending_roles(spec.strategy):
        who = "no task decides" if only_serves(spec.strategy) else "only the chief decides"
        message = f"The workers of {spec.strategy.value} never end by themselves: {who}."
        yield Problem("success.percent", "conflict", message, "Remove percent.", str(percent))


def _checkpoint_store(spec: TrainingSpec, _: SpecLimits) -> Iterator[Problem]:
    if spec.checkpoint_store is not CheckpointStore.PORTAL and only_serves(spec.strategy):
        message = "The job runs no script that writes checkpoints or outputs."
        remedy = "Write portal, or remove checkpoint_store."
        yield Problem("checkpoint_store", "conflict", message, remedy, spec.checkpoint_store.value)


_CHECKS: tuple[Callable[[TrainingSpec, SpecLimits], Iterator[Problem]], ...] = (
    _name,
    _roles,
    _resources,
    spark_memory_problems,
    _no_script,
    program_problems,
    publishing_problems,
    entry_problems,
    _arguments,
    requirements_problems,
    image_problems,
    _environment,
    inputs_problems,
    volume_problems,
    secrets_problems,
    connection_problems,
    spark_problems,
    _paths,
    _model,
    _checkpoint_store,
    _limits,
    _success,
)

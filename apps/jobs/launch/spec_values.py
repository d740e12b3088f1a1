"""The launch form that says a specification: its fields as texts, as they are typed. Not here: the form (`forms`)."""

from __future__ import annotations

from typing import Any

from apps.jobs.launch.argument_lines import as_argument_line
from apps.jobs.launch.connection_fields import connection_values
from apps.jobs.launch.entry_fields import entry_values
from apps.jobs.launch.parts import MODEL, Values, as_line, requirements_text
from apps.jobs.launch.spark_fields import spark_values
from apps.jobs.launch.tensorflow_on_spark import from_arguments
from yardmaster.job.spec import (
    CheckpointStore,
    DatasetInput,
    InputMode,
    InputShare,
    InputSource,
    LogDir,
    Paths,
    RoleSpec,
    TrainingSpec,
)
from yardmaster.quantity import exact_bytes, format_cpu, format_duration

DURATIONS = ("max_runtime", "grace_period", "reclaim_delay", "hold_failed")


def values_of_spec(spec: TrainingSpec) -> Values:
    """The form that says this specification."""
    arguments, of_spark = from_arguments(spec.strategy, spec.arguments)
    return {
        "name": spec.name,
        "strategy": spec.strategy.value,
        "code": "" if spec.code_version is None else str(spec.code_version),
        **entry_values(spec),
        "arguments": "\n".join(map(as_argument_line, arguments)),
        **of_spark,
        "requirements": requirements_text(spec.requirements),
        "environment": [{"name": name, "value": as_line(text)} for name, text in spec.environment.items()],
        "roles": {role.value: _of_role(one) for role, one in spec.roles.items()},
        "inputs": [_of_input(one) for one in spec.inputs],
        "secrets": [{"name": one.name, "env": one.env, "file": one.file} for one in spec.secrets],
        "paths": {name: getattr(spec.paths, name) for name in Paths.__dataclass_fields__},
        **connection_values(spec),
        **spark_values(spec),
        "model": spec.model_name,
        "image": spec.image,
        "publishes": "" if spec.publishes is None else spec.publishes.dataset,
        "publishes_note": "" if spec.publishes is None else spec.publishes.note,
        "checkpoint_store": "" if spec.checkpoint_store is CheckpointStore.PORTAL else spec.checkpoint_store.value,
        "log_dir": "" if spec.log_dir is LogDir.DISK else spec.log_dir.value,
        "success": {"rule": spec.success_rule.value, "percent": str(spec.success_percent)},
        "retries": str(spec.retries),
        "priority": "0" if spec.priority_class else str(spec.priority),
        "priority_class": spec.priority_class,
        **{name: _of_duration(getattr(spec, name)) for name in DURATIONS},
    }


def _of_role(one: RoleSpec) -> Values:
    asked = one.resources
    return {
        "replicas": str(one.replicas),
        "cpu": format_cpu(asked.cpu),
        "memory": exact_bytes(asked.memory),
        "gpus": str(asked.gpus) if asked.gpus else "",
        "image": one.image,
        "extended": ", ".join(f"{name}={amount}" for name, amount in asked.extended.items()),
    }


def _of_input(one: DatasetInput) -> Values:
    mode = "" if one.mode is InputMode.FOLDER else one.mode.value
    share = "" if one.share is InputShare.ALL else one.share.value
    source = "" if one.source is InputSource.STORE else one.source.value
    version = str(one.dataset_version) if one.model_version is None else f"{MODEL}{one.model_version}"
    which = {"dataset_version": version, "name": one.name}
    return which | {"mode": mode, "share": share, "stands_for": one.stands_for, "source": source}


def _of_duration(duration: Any) -> str:
    return "" if duration is None else format_duration(int(duration.total_seconds()))

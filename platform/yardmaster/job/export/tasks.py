"""What a task of an exported job runs, and the variables that it has: the same as in the portal, said to Kubernetes.

The index of a task is known in its pod alone: Kubernetes puts it into the values that name it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from yardmaster.errors import Problem, SpecRejected
from yardmaster.job.spec import Resources, Role, Strategy, TrainingSpec
from yardmaster.job.spec_secrets import SECRETS_DIR
from yardmaster.job.strategy import TF_CONFIG, classic_flags, tf_config
from yardmaster_runner.cluster import distribution_environment
from yardmaster_runner.entry_point import module_of
from yardmaster_runner.exits import CannotRun
from yardmaster_runner.expansion import expanded_all, expanded_values

HOME, CODE, DATA, LOG, MODEL, PACKAGES, SECRETS = (
    "/job", "/job/code", "/job/data", "/job/log", "/job/model", "/job/packages", "/job/secrets"
)  # fmt: skip
INDEX = "YARDMASTER_INDEX"
_INDEX_PATH = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
_MARK = "\0%s\0"
"""Stands for a variable that Kubernetes puts in. No text of a specification has a NUL."""
_NUMBER = 10**9 + 7
"""Stands for the index where the words need a number."""

Made = TypeVar("Made")
Cluster = Mapping[str, list[str]]
Folders = Mapping[str, str]
"""`data`, `log` and `model`, as a pod has them."""


def command_of(spec: TrainingSpec, role: Role, cluster: Cluster, folders: Folders, python: str) -> list[str]:
    """The container's command, as Kubernetes reads it."""
    if spec.command:
        return ["/bin/sh", "-c", literal(spec.command)]
    module = module_of(spec.entry_point)
    started = ["-m", module] if module else [spec.entry_point]
    given = {getattr(spec.paths, f"{kind}_flag"): _folder(spec, kind, folders) for kind in ("data", "log", "model")}
    paths = [f"{flag}={folder}" for flag, folder in given.items() if flag]
    known = {**_user_variables(spec, role, folders), **_known(spec, role, folders)}
    arguments = _checked(lambda: expanded_all(spec.arguments, known))
    words = [literal(one) for one in [python, "-u", *started, *paths]]
    return _with_flags(spec, role, cluster, words, [literal(one) for one in arguments])


def _with_flags(spec: TrainingSpec, role: Role, cluster: Cluster, words: list[str], arguments: list[str]) -> list[str]:
    """With the classic flags. Behind a chief, which is worker 0 for them, only a shell can count."""
    flags = classic_flags(spec, cluster, role, 0)
    if not flags:
        return [*words, *arguments]
    offset = int(flags[-1].rpartition("=")[2])
    before = [literal(one) for one in flags[:-1]]
    if not offset:
        return [*words, *before, f"--task_index=$({INDEX})", *arguments]
    count = literal(f'exec "$@" --task_index=$(({INDEX} + {offset}))')
    return ["/bin/sh", "-c", count, "task", *words, *before, *arguments]


def environment_of(
    spec: TrainingSpec, role: Role, cluster: Cluster, folders: Folders, secret: str
) -> list[dict[str, Any]]:
    """The container's `env`. `secret`: the Secret of the cluster with the values that the job names."""
    found: list[dict[str, Any]] = [{"name": INDEX, "valueFrom": {"fieldRef": {"fieldPath": _INDEX_PATH}}}]
    values = {
        "HOME": HOME, "PYTHONPATH": CODE, "PYTHONUSERBASE": PACKAGES,
        **_threads(spec.roles[role].resources),
        **_user_variables(spec, role, folders),
        **_known(spec, role, folders),
        **distribution_environment(spec.strategy.value, spec.environment),
    }  # fmt: skip
    values.pop(INDEX)
    values |= _config(spec, role, cluster)
    found += [{"name": name, "value": literal(value)} for name, value in values.items()]
    for one in spec.secrets:
        if one.env and not one.file:
            found.append({"name": one.env, "valueFrom": {"secretKeyRef": {"name": secret, "key": one.name}}})
    return found


def literal(text: str) -> str:
    """A text as Kubernetes reads it: `$$` is a dollar, and what stands for one of its variables is that."""
    return text.replace("$", "$$").replace(_MARK % INDEX, f"$({INDEX})")


def _config(spec: TrainingSpec, role: Role, cluster: Cluster) -> dict[str, str]:
    config = tf_config(spec, cluster, role, _NUMBER)
    if config is None:
        return {}
    return {TF_CONFIG: json.dumps(config).replace(str(_NUMBER), _MARK % INDEX)}


def _threads(asked: Resources) -> dict[str, str]:
    threads = str(max(1, math.ceil(asked.cpu)))
    hidden = {} if asked.gpus or asked.extended else {"CUDA_VISIBLE_DEVICES": "-1"}
    return {"OMP_NUM_THREADS": threads, "TF_NUM_INTRAOP_THREADS": threads, **hidden}


def _folder(spec: TrainingSpec, kind: str, folders: Folders) -> str:
    """One flag for logs and the model is one directory: the log directory."""
    is_one = spec.paths.model_flag and spec.paths.model_flag == spec.paths.log_flag
    return folders["log" if kind == "model" and is_one else kind]


def _known(spec: TrainingSpec, role: Role, folders: Folders) -> dict[str, str]:
    """What is the portal's own in a task, and what arguments may name."""
    found = {
        name: _folder(spec, kind, folders)
        for kind in ("data", "log", "model")
        if (name := getattr(spec.paths, f"{kind}_env"))
    }
    files = [one for one in spec.secrets if one.file]
    if files:
        found[SECRETS_DIR] = SECRETS
    found |= {one.env: f"{SECRETS}/{one.file}" for one in files if one.env}
    tasks = str(len(spec.tasks()))
    return {**found, "YARDMASTER_ROLE": role.value, INDEX: _MARK % INDEX, "YARDMASTER_TASKS": tasks}


def _user_variables(spec: TrainingSpec, role: Role, folders: Folders) -> dict[str, str]:
    return _checked(lambda: expanded_values(spec.environment, _known(spec, role, folders)))


def _checked(make: Callable[[], Made]) -> Made:
    try:
        return make()
    except CannotRun as error:
        remedy = "Shorten the variables that arguments and environment name."
        raise SpecRejected([Problem("environment", "too_long", str(error), remedy)]) from error


def refusals(spec: TrainingSpec) -> list[Problem]:
    """Why the job can only run in the portal; empty where it can be exported."""
    reasons = (
        (spec.program, "program", f"The job runs {spec.program}, a program of the portal's own."),
        (
            spec.strategy in (Strategy.IN_GRAPH, Strategy.SERVICE),
            "strategy",
            "The job's tasks are servers of the portal.",
        ),
        (spec.strategy is Strategy.SPARK, "strategy", "The job's Spark cluster is started by programs of the portal."),
        (
            spec.entry_point.endswith(".ipynb"),
            "entry_point",
            "A notebook is executed by a program of the portal's own.",
        ),
        (spec.tf1, "tf1", "TensorFlow 1 mode is made by a program of the portal's own."),
    )
    remedies = {
        "entry_point": "Convert it first: jupyter nbconvert --to script, and launch the script.",
        "tf1": "Write import tensorflow.compat.v1 as tf, with tf.disable_v2_behavior(), and launch that.",
    }
    return [
        Problem(field, "not_exportable", message, remedies.get(field, "Only jobs that run a script are exported."))
        for is_so, field, message in reasons
        if is_so
    ]

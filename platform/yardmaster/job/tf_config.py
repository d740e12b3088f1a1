"""What a task of a job is told about its peers, as the core's types say it. The words themselves are the runner's own
module (`yardmaster_runner.cluster`), so that a preview shows what a task really gets.

Not here: addresses. The engine knows them; `cluster` maps each role with a server to its `host:port` list.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from yardmaster.job.spec import Role, TrainingSpec
from yardmaster_runner import cluster as words
from yardmaster_runner.cluster import distribution_environment

TF_CONFIG = "TF_CONFIG"


def tf_config(
    spec: TrainingSpec, cluster: Mapping[str, Sequence[str]], role: Role, index: int
) -> dict[str, Any] | None:
    """TF_CONFIG's value, or None where a task must not have one (jobs of one task)."""
    return words.tf_config(spec.strategy.value, cluster, role.value, index, len(spec.tasks()))


def classic_flags(spec: TrainingSpec, cluster: Mapping[str, Sequence[str]], role: Role, index: int) -> list[str]:
    """`--ps_hosts --worker_hosts --job_name --task_index` for `between_graph`; nothing for the others."""
    return words.classic_flags(spec.strategy.value, cluster, role.value, index)


def task_environment(
    spec: TrainingSpec, role: Role, index: int, cluster: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """What a task's environment gets beside the user's own variables, which are never overwritten."""
    config = tf_config(spec, cluster, role, index)
    found = distribution_environment(spec.strategy.value, spec.environment)
    if config is not None:
        found[TF_CONFIG] = json.dumps(config)
    return found

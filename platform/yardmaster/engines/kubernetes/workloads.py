"""Who makes and re-makes the pods of a role: an Indexed Job, or for parameter servers a StatefulSet.

Restarts. A failed pod is made again with its index, after a back-off. The spec's `retries` count the restarts of all
tasks of the job together, which no Job can: its limit for each index is the same number, which no task passes, and
whose failure is one too many is told from what shows of all (`budget`). A pod that the cluster itself took away
(eviction, preemption, a drained node: the condition `DisruptionTarget`) costs nothing. Exit codes of the runner that a
restart cannot mend fail the index at once. A failed index leaves the others alone: whether the job can do without it is
the portal's verdict.

Where the others cannot go on without the one that was lost, they are ended too and come back with it (`together`),
which costs one restart in all. Memory passed (137) cannot be told from another SIGKILL by these rules, nor one error
of a script from another: what no restart can mend is a failure as soon as it is seen (`rolefacts`).
"""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

from yardmaster.engines.base import TaskAccess
from yardmaster.engines.kubernetes import names
from yardmaster.engines.kubernetes.options import TaskOptions
from yardmaster.engines.kubernetes.pods import pod_template
from yardmaster.failures import EXIT_STAGE_IN_FAILED, EXIT_TOKEN_REFUSED
from yardmaster.ids import JobKey
from yardmaster.spec import Role, TrainingSpec

HOPELESS = (EXIT_STAGE_IN_FAILED, EXIT_TOKEN_REFUSED)
JOBS, SETS = "Job", "StatefulSet"


def workload_kind(role: Role) -> str:
    """What makes the pods of this role."""
    return SETS if role is Role.PS else JOBS


def workload(
    spec: TrainingSpec, key: JobKey, role: Role, access: TaskAccess, options: TaskOptions, owner_uid: str
) -> dict[str, Any]:
    """The manifest of the role's workload, without owner."""
    labels = {**names.labels(key), **names.labels_of_role(role, access.user), names.OWNER: owner_uid}
    template = pod_template(spec, key, role, options.portal_url or access.portal_url, options, labels)
    body = _set(spec, role, template) if role is Role.PS else _job(spec, role, template, options)
    kind = workload_kind(role)
    return {
        "apiVersion": "apps/v1" if kind == SETS else "batch/v1",
        "kind": kind,
        "metadata": {
            "name": names.workload_name(key, role),
            "namespace": names.namespace_name(key.namespace_id, options),
            "labels": dict(labels),
        },
        "spec": body,
    }


def _job(spec: TrainingSpec, role: Role, template: dict[str, Any], options: TaskOptions) -> dict[str, Any]:
    replicas = spec.replicas(role)
    return {
        "completionMode": "Indexed",
        "completions": replicas,
        "parallelism": replicas,
        **_deadline(spec, options),
        "backoffLimitPerIndex": spec.retries,
        # A pod is replaced when it has ended, not when it begins to: two of one index would share its DNS name.
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {
            "rules": [
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
                {
                    "action": "FailIndex",
                    "onExitCodes": {"containerName": names.CONTAINER, "operator": "In", "values": list(HOPELESS)},
                },
            ]
        },
        "template": template,
    }


def _deadline(spec: TrainingSpec, options: TaskOptions) -> dict[str, int]:
    """Behind `max_runtime`, for a portal that is away when that is over. The Job's time begins when it is made and goes
    on over restarts; the attempt's begins when all tasks run. A set takes no deadline: servers stay for the portal."""
    if spec.max_runtime is None:
        return {}
    longest = spec.max_runtime + spec.grace_period + timedelta(seconds=options.deadline_margin)
    return {"activeDeadlineSeconds": math.ceil(longest.total_seconds())}


def _set(spec: TrainingSpec, role: Role, template: dict[str, Any]) -> dict[str, Any]:
    # The owner in the selector: a set adopts every pod that fits it, also one that an earlier run left.
    selected = {name: template["metadata"]["labels"][name] for name in (names.RUN, names.ROLE, names.OWNER)}
    return {
        "serviceName": names.SERVICE,
        "replicas": spec.replicas(role),
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},
        "revisionHistoryLimit": 0,
        "selector": {"matchLabels": selected},
        "template": template,
    }

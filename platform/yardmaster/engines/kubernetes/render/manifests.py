"""All objects of a run, as plain dicts in the order in which they are applied. Pure.

Their number depends on the roles, never on the replicas: the owner, the token, one workload per role, and a policy
unless a task is alone. The owner has the policy, the token and the leading task's workload, the token has
the other workloads (`ownerReferences`): the owner's end is the end of all, and the token's that of all who are done
when the leading task is. The last one is there only if all are. Nothing but the home of a notebook outlives the run.

A role's pods are made by an Indexed Job, those of parameter servers by a StatefulSet.

Restarts. A failed pod is made again with its index, after a back-off. The spec's `retries` count the restarts of all
tasks of the job together, which no Job can: its limit for each index is the same number, which no task passes, and
whose failure is one too many is determined from what all show (`budget`). A pod that the cluster itself took away
(eviction, preemption, a drained node: the condition `DisruptionTarget`) costs nothing. Exit codes of the runner that a
restart cannot mend fail the index at once. A failed index leaves the others alone: whether the job can do without it is
the portal's verdict.

Where the others cannot continue without the one that was lost, all are restarted (`gang_restart`), which costs
one restart. Memory passed (137) cannot be distinguished from another SIGKILL by these rules, nor one
error of a script from another: what no restart can mend is a failure as soon as it is seen (`rolefacts`).

Not here: applying them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from yardmaster.engines.base import TaskAccess
from yardmaster.engines.kubernetes.render import names, notebooks
from yardmaster.engines.kubernetes.render.images import copied_pull_secrets
from yardmaster.engines.kubernetes.render.names import cluster_map, cluster_variable, too_many_peers
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.engines.kubernetes.render.pods import TOKEN_KEY, pod_template
from yardmaster.engines.kubernetes.render.policies import policies
from yardmaster.engines.kubernetes.render.record import RECORD, RunShape, in_order_of_application
from yardmaster.errors import Problem, SpecRejected
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role, TrainingSpec
from yardmaster.job.volumes import where_there_are_none
from yardmaster.lifecycle.failures import EXIT_STAGE_IN_FAILED, EXIT_TOKEN_REFUSED

Manifest = dict[str, Any]

TO_BE_KNOWN = "known-when-applied"
"""Stands for the owner's uid where the owner does not exist yet."""
TOKEN_TO_BE_KNOWN = "named-when-applied"
"""The same of the token."""


@dataclass(frozen=True)
class Run:
    """All objects of a run, rendered once. Where the uid of the owner or of the token belongs stands a placeholder."""

    homes: tuple[Manifest, ...]
    """The claim of a notebook's home, which belongs to no run."""
    owner: Manifest
    policies: tuple[Manifest, ...]
    token: Manifest
    workloads: tuple[Manifest, ...]
    """The leading task's is the last."""
    pull_secrets: Mapping[str, str]
    """What the run needs a copy of to pull its images, each with the name of the copy."""
    problems: tuple[Problem, ...] = ()
    """Why the cluster can never run it, as far as that is known without asking the server."""

    @classmethod
    def of(cls, spec: TrainingSpec, key: JobKey, access: TaskAccess, options: TaskOptions) -> Run:
        cluster = cluster_map(spec, key, options)
        problems = (*too_many_peers(spec, key, options, cluster), *refused_resources(spec, options))
        problems += () if options.volume_class else tuple(where_there_are_none(spec))
        text = cluster_variable(cluster)
        return cls(
            tuple(notebooks.claims(spec, key, options)),
            owner(spec, key, options),
            tuple(policies(spec, key, options, TO_BE_KNOWN, access.portal_url)),
            token(key, access, options, TO_BE_KNOWN),
            tuple(_owned_workloads(spec, key, access, options, text)),
            copied_pull_secrets(spec, key, options) if spec.pinned_images else {},
            problems,
        )

    def refuse_impossible(self) -> None:
        """Raises `SpecRejected` where there are `problems`."""
        if self.problems:
            raise SpecRejected(list(self.problems))

    def all(self) -> list[Manifest]:
        """In the order in which they are applied."""
        return [*self.homes, self.owner, *self.policies, self.token, *self.workloads]

    def workloads_alone(self) -> list[Manifest]:
        """Without owner: what the server is asked about before anything is made."""
        return [{**one, "metadata": {**one["metadata"], "ownerReferences": []}} for one in self.workloads]


def with_uids(manifest: Manifest, owner_uid: str, token_uid: str = TOKEN_TO_BE_KNOWN) -> Manifest:
    """The same with these uids in the place of the placeholders."""
    known = {TO_BE_KNOWN: owner_uid, TOKEN_TO_BE_KNOWN: token_uid}

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: filled(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [filled(inner) for inner in value]
        return known.get(value, value) if isinstance(value, str) else value

    made: Manifest = filled(manifest)
    return made


def owner(spec: TrainingSpec, key: JobKey, options: TaskOptions) -> dict[str, Any]:
    """The object that all others belong to, and the run's record."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": names.metadata(key.name, key, options),
        "data": {RECORD: RunShape.of(spec).to_json()},
    }


def token(key: JobKey, access: TaskAccess, options: TaskOptions, owner_uid: str) -> dict[str, Any]:
    """The job's token, of the owner with this uid."""
    metadata = names.metadata(names.token_name(key), key, options)
    metadata["labels"][names.OWNER] = owner_uid
    metadata["ownerReferences"] = [names.reference("ConfigMap", key.name, owner_uid)]
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "Opaque",
        "stringData": {TOKEN_KEY: access.token},
    }


def refused_resources(spec: TrainingSpec, options: TaskOptions) -> list[Problem]:
    """What the operator does not let jobs ask for."""
    problems = []
    for role, one in spec.roles.items():
        for name, amount in one.resources.extended.items():
            if not options.allows(name):
                field = f"roles.{role.value}.extended.{name}"
                remedy = "Ask for gpus." if name == options.gpu_resource else "Leave it out, or ask an administrator."
                message = f"Jobs on this cluster may not ask for {name} in this way."
                problems.append(Problem(field, "no_such_resource", message, remedy, str(amount)))
    return problems


def _owned_workloads(
    spec: TrainingSpec, key: JobKey, access: TaskAccess, options: TaskOptions, cluster: str
) -> list[Manifest]:
    """The leading one, which is the last, belongs to the owner, the others to the token."""
    ordered = in_order_of_application(spec.roles)
    made = [workload(spec, key, role, access, options, TO_BE_KNOWN, cluster) for role in ordered]
    for one in made:
        one["metadata"]["ownerReferences"] = [names.reference("Secret", names.token_name(key), TOKEN_TO_BE_KNOWN)]
    made[-1]["metadata"]["ownerReferences"] = [names.reference("ConfigMap", key.name, TO_BE_KNOWN)]
    return made


# --- workloads -------------------------------------------------------------------------------------------------------

HOPELESS = (EXIT_STAGE_IN_FAILED, EXIT_TOKEN_REFUSED)
JOBS, SETS = "Job", "StatefulSet"


def workload_kind(role: Role) -> str:
    """What makes the pods of this role."""
    return SETS if role is Role.PS else JOBS


def workload(
    spec: TrainingSpec,
    key: JobKey,
    role: Role,
    access: TaskAccess,
    options: TaskOptions,
    owner_uid: str,
    cluster: str,
) -> dict[str, Any]:
    """The manifest of the role's workload, without owner."""
    labels = {
        **names.labels(key),
        **names.labels_of_role(spec, role, access.user),
        **notebooks.labels(spec, options),
        names.OWNER: owner_uid,
    }
    template = pod_template(spec, key, role, options.portal_url or access.portal_url, options, labels, cluster)
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
    """Behind `max_runtime`, for a portal that is away when that is over. The Job's time begins when it is made and
    continues over restarts; the attempt's begins when all tasks run. A set takes no deadline: servers stay for the
    portal. A pod that it ends has its own time to upload."""
    if spec.max_runtime is None:
        return {}
    longest = spec.max_runtime + spec.time_to_restart + timedelta(seconds=options.deadline_margin)
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

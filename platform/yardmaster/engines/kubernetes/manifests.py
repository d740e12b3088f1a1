"""All objects of a run, as plain dicts in the order in which they are applied. Pure.

Their number depends on the roles, never on the replicas: the owner, the token, one workload per role, and a policy
unless a task is alone. The owner has the policy, the token and the leading task's workload, the token has
the other workloads (`ownerReferences`): the owner's end is the end of all, and the token's that of all who are done
when the leading task is. The last one is there only if all are. Not here: applying them.
"""

from __future__ import annotations

from typing import Any

from yardmaster.engines.base import TaskAccess
from yardmaster.engines.kubernetes import environment as env
from yardmaster.engines.kubernetes import names
from yardmaster.engines.kubernetes.options import TaskOptions
from yardmaster.engines.kubernetes.peers import too_many_peers
from yardmaster.engines.kubernetes.shape import RECORD, RunShape, in_order_of_application
from yardmaster.engines.kubernetes.workloads import workload
from yardmaster.errors import Problem
from yardmaster.ids import JobKey
from yardmaster.spec import TrainingSpec
from yardmaster.strategy import only_serves

TO_BE_KNOWN = "known-when-applied"
"""Stands for the owner's uid where the owner does not exist yet."""
TOKEN_TO_BE_KNOWN = "told-when-applied"
"""The same of the token."""


def owner(spec: TrainingSpec, key: JobKey, options: TaskOptions) -> dict[str, Any]:
    """The object that all others belong to, and the run's record."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(key.name, key, options),
        "data": {RECORD: RunShape.of(spec).to_json()},
    }


def token(key: JobKey, access: TaskAccess, options: TaskOptions, owner_uid: str) -> dict[str, Any]:
    """The job's token, of the owner with this uid."""
    metadata = _metadata(names.token_name(key), key, options)
    metadata["labels"][names.OWNER] = owner_uid
    metadata["ownerReferences"] = [_reference("ConfigMap", key.name, owner_uid)]
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "Opaque",
        "stringData": {env.TOKEN_KEY: access.token},
    }


def policies(spec: TrainingSpec, key: JobKey, options: TaskOptions, owner_uid: str) -> list[dict[str, Any]]:
    """What lets the tasks of the run speak to each other, and to no other pod: one, or none where a task is
    alone. The namespace's own policies let them speak to the portal."""
    if len(spec.tasks()) == 1 and not only_serves(spec.strategy):
        return []
    return [policy(key, options, owner_uid)]


def policy(key: JobKey, options: TaskOptions, owner_uid: str) -> dict[str, Any]:
    """The same of a run of which only the key is known."""
    metadata = _metadata(key.name, key, options)
    metadata["ownerReferences"] = [_reference("ConfigMap", key.name, owner_uid)]
    mine = {"podSelector": {"matchLabels": {names.RUN: key.name}}}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata,
        "spec": {
            **mine,
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [mine]}],
            "egress": [{"to": [mine]}],
        },
    }


def owned_workloads(
    spec: TrainingSpec, key: JobKey, access: TaskAccess, options: TaskOptions, owner_uid: str, token_uid: str
) -> list[dict[str, Any]]:
    """The workloads, of the owner and the token with these uids: the leading one, which is the last, of the owner."""
    made = _workloads(spec, key, access, options, owner_uid)
    for one in made:
        one["metadata"]["ownerReferences"] = [_reference("Secret", names.token_name(key), token_uid)]
    made[-1]["metadata"]["ownerReferences"] = [_reference("ConfigMap", key.name, owner_uid)]
    return made


def workloads(spec: TrainingSpec, key: JobKey, access: TaskAccess, options: TaskOptions) -> list[dict[str, Any]]:
    """The workloads alone and without owner: what the server is asked about before anything is made."""
    return _workloads(spec, key, access, options, TO_BE_KNOWN)


def whole_run(spec: TrainingSpec, key: JobKey, access: TaskAccess, options: TaskOptions) -> list[dict[str, Any]]:
    """What `submit` would apply, in its order."""
    return [
        owner(spec, key, options),
        *policies(spec, key, options, TO_BE_KNOWN),
        token(key, access, options, TO_BE_KNOWN),
        *owned_workloads(spec, key, access, options, TO_BE_KNOWN, TOKEN_TO_BE_KNOWN),
    ]


def refused_resources(spec: TrainingSpec, options: TaskOptions) -> list[Problem]:
    """What the operator does not let jobs ask for, and more tasks than can be told of each other."""
    problems = too_many_peers(spec, options)
    for role, one in spec.roles.items():
        for name, amount in one.resources.extended.items():
            if not options.allows(name):
                field = f"roles.{role.value}.extended.{name}"
                remedy = "Ask for gpus." if name == options.gpu_resource else "Leave it out, or ask an administrator."
                message = f"Jobs on this cluster may not ask for {name} in this way."
                problems.append(Problem(field, "no_such_resource", message, remedy, str(amount)))
    return problems


def _workloads(
    spec: TrainingSpec, key: JobKey, access: TaskAccess, options: TaskOptions, owner_uid: str
) -> list[dict[str, Any]]:
    ordered = in_order_of_application(spec.roles)
    return [workload(spec, key, role, access, options, owner_uid) for role in ordered]


def _metadata(name: str, key: JobKey, options: TaskOptions) -> dict[str, Any]:
    namespace = names.namespace_name(key.namespace_id, options)
    return {"name": name, "namespace": namespace, "labels": names.labels(key)}


def _reference(kind: str, name: str, uid: str) -> dict[str, Any]:
    # A run that is deleted as a whole is there until its last pod has ended.
    lasts = {"controller": True, "blockOwnerDeletion": True}
    return {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid, **lasts}

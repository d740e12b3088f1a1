"""The cluster's namespace of a namespace of the portal, as plain dicts, and whether what is there still says the same.
Pure. Not here: making and mending it (`shaping`).

Four bounds lie around the pods of a namespace. Pod Security says what they may be, the ResourceQuota what they may hold
together, the LimitRange what one container may have, the NetworkPolicies whom they may speak to (each other: the run's
own policy, in `manifests`). Only the portal makes anything there, and its ledger admits no more than the quota: the
cluster's bounds hold where the portal errs.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.engines.kubernetes.render.peers import address_in, in_namespace, port_of, portal_peers
from yardmaster.engines.kubernetes.render.pods import EPHEMERAL
from yardmaster.errors import Misconfigured
from yardmaster.job.volumes import VolumeKind
from yardmaster.quantity import format_cpu
from yardmaster.queueing.ledger import RUNNING_JOBS, Quota
from yardmaster.queueing.resources import DEVICE

LEVEL = "restricted"
USUAL_CPU, USUAL_MEMORY = 1.0, 1 << 30
"""What a container gets that says nothing: none of ours."""
USUAL_REQUEST_CPU, USUAL_REQUEST_MEMORY = 0.1, 128 << 20
OUR_WORDS = "yardmaster/hard"
"""The annotation of the ResourceQuota that lists what of it is the portal's: so a limit that was lifted is seen."""
PULLS = "yardmaster/pull-secrets"
"""The annotation of the account that says from what the secrets to pull images with were copied."""
_COUNTED = frozenset({"cpu", "memory", "gpus", RUNNING_JOBS})
"""What of a quota has words of its own in a ResourceQuota, or none."""

Manifest = dict[str, Any]


def base(namespace_id: uuid.UUID, portal_url: str, options: TaskOptions, pulls: str = "") -> list[Manifest]:
    """What every namespace has, whatever its quota, in the order in which it is to be made: the rights to make the
    rest come second. `pulls` is the digest of its copied secrets. Raises `Misconfigured` where nothing says at which
    address pods reach the portal."""
    return [
        _namespace(namespace_id, options),
        *([_binding(namespace_id, options)] if options.bound_role else []),
        _account(namespace_id, options, pulls),
        _service(namespace_id, options),
        policy(_metadata("default-deny", namespace_id, options)),
        policy(_metadata("tasks", namespace_id, options), egress_of(options.portal_url or portal_url, options)),
    ]


def bounds(namespace_id: uuid.UUID, quota: Quota, options: TaskOptions) -> list[Manifest]:
    """What follows from the quota."""
    return [_resource_quota(namespace_id, quota, options), _limit_range(namespace_id, quota, options)]


def id_of(live: Mapping[str, Any]) -> uuid.UUID | None:
    """Which namespace of a portal it was made for; None where its label says nothing of the kind."""
    try:
        return uuid.UUID((live["metadata"].get("labels") or {})[names.NAMESPACE_ID])
    except (KeyError, ValueError):
        return None


def lets_all_speak(live: Mapping[str, Any]) -> bool:
    """Whether this is the policy of an earlier version, under which all pods of the namespace reached each other."""
    return live["kind"] == "NetworkPolicy" and bool((live.get("spec") or {}).get("ingress"))


def why_not_ours(live: Mapping[str, Any], namespace_id: uuid.UUID, options: TaskOptions) -> Misconfigured | None:
    """Why this namespace of the cluster is not the one that this portal made for that namespace of its own; None: it
    is. One that no portal signed, but for its other labels, is from a time when none did."""
    name, labels = live["metadata"]["name"], live["metadata"].get("labels") or {}
    signed = labels.get(names.INSTALLATION, "")
    is_known = all(labels.get(label) == value for label, value in _labels(namespace_id).items())
    if is_known and signed in ("", options.installation):
        return None
    # Rights are given only where Pod Security is enforced already.
    needed = {**_signature(namespace_id, options), "pod-security.kubernetes.io/enforce": LEVEL}
    words = " ".join(f"{label}={value}" for label, value in needed.items())
    take_over = f"Or take it over: kubectl label --overwrite namespace {name} {words}"
    if not is_known:
        message = f"There is a namespace {name} on the cluster, and it lacks this portal's labels: it was left alone."
        return Misconfigured(message, remedy=f"Give this portal a namespace_prefix of its own. {take_over}")
    return Misconfigured(
        f"The cluster's namespace {name} is another portal's, {names.INSTALLATION}={signed}: it was left alone.",
        remedy=f'Where that was this portal under another secret key, set "installation": "{signed}" in '
        f"YARDMASTER_KUBERNETES_TASKS; else give it a namespace_prefix of its own. {take_over}",
    )


def to_be_made(wanted: Mapping[str, Any], why: Misconfigured) -> Misconfigured:
    """What to do about a namespace that the portal may not make."""
    name, labels = wanted["metadata"]["name"], wanted["metadata"]["labels"]
    words = " ".join(f"{label}={value}" for label, value in labels.items())
    by_hand = f"kubectl create namespace {name} && kubectl label namespace {name} {words}"
    message = f"The cluster has no namespace {name}, and the portal may not make it: {why.message}"
    return Misconfigured(message, remedy=f"{why.remedy} Or make it, and a binding of the rights in it: {by_hand}")


def what_holds_up(live: Mapping[str, Any]) -> tuple[str, ...]:
    """Why a namespace that was asked to go is still there, in the cluster's own words: finalizers by name, kinds that
    could not be deleted. Empty as long as nothing is wrong."""
    own = [*(live["metadata"].get("finalizers") or ()), *(live.get("spec", {}).get("finalizers") or ())]
    odd = sorted(one for one in own if one != "kubernetes")
    said = [f"Finalizers of the namespace itself: {', '.join(odd)}"] if odd else []
    conditions = (live.get("status") or {}).get("conditions") or ()
    return (*said, *(one.get("message") or one["type"] for one in conditions if one.get("status") == "True"))


# --- the objects -----------------------------------------------------------------------------------------------------


def _metadata(name: str, namespace_id: uuid.UUID, options: TaskOptions) -> Manifest:
    namespace = names.namespace_name(namespace_id, options)
    return {"name": name, "namespace": namespace, "labels": _labels(namespace_id)}


def _labels(namespace_id: uuid.UUID) -> dict[str, str]:
    return {names.MANAGED_BY: names.US, names.NAMESPACE_ID: str(namespace_id)}


def _signature(namespace_id: uuid.UUID, options: TaskOptions) -> dict[str, str]:
    """The labels by which a namespace is known again."""
    signed = {names.INSTALLATION: options.installation} if options.installation else {}
    return {**_labels(namespace_id), **signed}


def _namespace(namespace_id: uuid.UUID, options: TaskOptions) -> Manifest:
    security = {f"pod-security.kubernetes.io/{mode}": LEVEL for mode in ("enforce", "audit", "warn")}
    labels = {**_signature(namespace_id, options), **security}
    metadata = {"name": names.namespace_name(namespace_id, options), "labels": labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _binding(namespace_id: uuid.UUID, options: TaskOptions) -> Manifest:
    namespace, _, account = options.bound_account.partition("/")
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": _metadata(names.US, namespace_id, options),
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": options.bound_role},
        "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": account}],
    }


def _account(namespace_id: uuid.UUID, options: TaskOptions, pulls: str) -> Manifest:
    """Whom pods run as: an account without a token and without any right."""
    metadata = _metadata(names.ACCOUNT, namespace_id, options)
    if pulls:
        metadata["annotations"] = {PULLS: pulls}
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata,
        "automountServiceAccountToken": False,
    }


def _service(namespace_id: uuid.UUID, options: TaskOptions) -> Manifest:
    """What gives pods their DNS names. One for all runs: their names differ."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(names.SERVICE, namespace_id, options),
        "spec": {
            "clusterIP": "None",
            # Tasks look for each other before any of them could be called ready.
            "publishNotReadyAddresses": True,
            "selector": {names.NAMED: names.SERVICE},
            "ports": [{"name": "tensorflow", "port": options.port, "targetPort": options.port, "protocol": "TCP"}],
        },
    }


def _resource_quota(namespace_id: uuid.UUID, quota: Quota, options: TaskOptions) -> Manifest:
    """Pods' requests equal their limits (`pods.resources`), so both have the same bound. No limit: none."""
    hard: dict[str, str] = {
        **{one: str(options.most_pods) for one in ("pods", "count/configmaps", "count/secrets", "count/services")},
        **{one: str(options.most_pods) for one in ("count/jobs.batch", "count/statefulsets.apps")},
        "services.loadbalancers": "0",
        "services.nodeports": "0",
        "persistentvolumeclaims": str(_most_claims(options)),
    }
    if quota.cpu is not None:
        hard["requests.cpu"] = hard["limits.cpu"] = format_cpu(quota.cpu)
    if quota.memory is not None:
        hard["requests.memory"] = hard["limits.memory"] = str(quota.memory)
    hard.update(_hard_of_devices(quota, options))
    disk = options.scratch_of_all()
    if disk is not None:
        hard[f"requests.{EPHEMERAL}"] = hard[f"limits.{EPHEMERAL}"] = str(disk)
    metadata = _metadata(names.US, namespace_id, options)
    metadata["annotations"] = {OUR_WORDS: ",".join(sorted(hard))}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}}


def _most_claims(options: TaskOptions) -> int:
    """The namespace's volumes, and a home for each user."""
    return (len(VolumeKind) if options.volume_class else 0) + (options.most_pods if options.home_size else 0)


def _hard_of_devices(quota: Quota, options: TaskOptions) -> Manifest:
    """Of every resource that the quota names, and of the accelerators that jobs here may ask for: a cluster's quota has
    no word for all others. Devices of pools may be of one resource, which has the sum of their limits."""
    devices = {one.asked_as: one.resource for one in options.pools if one.device}
    may_be_asked_for = (*devices, *filter(options.allows, options.extended_resources))
    limits = {name: limit for name, limit in quota.limits(may_be_asked_for).items() if name not in _COUNTED}
    asked_as = {name: {name} for name in limits if not name.startswith(DEVICE)}
    asked_as.setdefault(options.gpu_resource, set()).add("gpus")
    for name, resource in devices.items():
        asked_as.setdefault(resource, set()).add(name)
    if quota.gpus is not None:
        limits["gpus"] = quota.gpus
    return {
        f"requests.{resource}": str(sum(int(limits[name]) for name in asked))
        for resource, asked in sorted(asked_as.items())
        if asked <= limits.keys()
    }


def _limit_range(namespace_id: uuid.UUID, quota: Quota, options: TaskOptions) -> Manifest:
    """Devices are left out: what has a `max` here and no default gets the `max` without having asked."""
    most_cpu = USUAL_CPU if quota.cpu is None else min(USUAL_CPU, quota.cpu)
    most_memory = USUAL_MEMORY if quota.memory is None else min(USUAL_MEMORY, quota.memory)
    limit: Manifest = {
        "type": "Container",
        "default": {"cpu": format_cpu(most_cpu), "memory": str(most_memory)},
        "defaultRequest": {
            "cpu": format_cpu(min(USUAL_REQUEST_CPU, most_cpu)),
            "memory": str(min(USUAL_REQUEST_MEMORY, most_memory)),
        },
    }
    disk = options.scratch_bytes()
    if disk is not None:
        limit["defaultRequest"][EPHEMERAL], limit["default"][EPHEMERAL] = map(str, disk)
    most: dict[str, str] = {}
    if quota.cpu is not None:
        most["cpu"] = format_cpu(quota.cpu)
    if quota.memory is not None:
        most["memory"] = str(quota.memory)
    if most:
        limit["max"] = most
    metadata = _metadata(names.US, namespace_id, options)
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": [limit]}}


def policy(metadata: Manifest, egress: Sequence[Manifest] = ()) -> Manifest:
    """Of all pods there: nothing in, and nothing out but this. What is empty is said all the same, so that applying it
    takes away what was added."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata,
        "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "ingress": [], "egress": [*egress]},
    }


def egress_of(portal_url: str, options: TaskOptions) -> list[Manifest]:
    """Names, the portal, the object store where it has a server of its own, and what the operator allows besides."""
    names_too = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
    found: list[Manifest] = [
        {"to": [in_namespace(options.dns_namespace)], "ports": names_too},
        _to_portal(portal_url, options),
    ]
    if options.store_url:
        found.append(_to_store(options))
    if options.allow_egress:
        found.append({"to": [{"ipBlock": {"cidr": cidr}} for cidr in options.allow_egress]})
    return found


def _to_portal(portal_url: str, options: TaskOptions) -> Manifest:
    port = options.portal_port or port_of(urlsplit(portal_url))
    return {"to": portal_peers(portal_url, options), "ports": [{"protocol": "TCP", "port": port}]}


def _to_store(options: TaskOptions) -> Manifest:
    url = urlsplit(options.store_url)
    cidrs = options.store_cidrs or [address_in("object store", url, "Set store_cidrs (its addresses)")]
    return {
        "to": [{"ipBlock": {"cidr": cidr}} for cidr in cidrs],
        "ports": [{"protocol": "TCP", "port": port_of(url)}],
    }

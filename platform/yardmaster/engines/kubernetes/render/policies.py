"""Whom the pods of a run speak to beside what the namespace's own policies allow all of its pods. Pure.

Tasks of a run reach each other, and no pod of another run. The portal alone reaches the port of a service; a notebook
drives the servers of the `in_graph` jobs of its namespace. The driver of a registered Spark cluster reaches that one,
and is reached from there at all ports: Spark chooses them.
"""

from __future__ import annotations

from typing import Any

from yardmaster.engines.kubernetes.render import names
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.engines.kubernetes.render.peers import portal_peers, spark_peers
from yardmaster.errors import Misconfigured
from yardmaster.ids import JobKey
from yardmaster.job.programs import JUPYTER
from yardmaster.job.spec import Strategy, TrainingSpec
from yardmaster.job.strategy import is_cluster, is_service, only_serves, server_roles

Manifest = dict[str, Any]
_NOTEBOOKS = {"podSelector": {"matchLabels": {names.PROGRAM: JUPYTER}}}
_SERVERS = {"podSelector": {"matchLabels": {names.STRATEGY: Strategy.IN_GRAPH.value}}}


def policies(
    spec: TrainingSpec, key: JobKey, options: TaskOptions, owner_uid: str, portal_url: str
) -> list[dict[str, Any]]:
    """One, or none where a task is alone or none has a server. All reach the portal by the namespace's own policies."""
    return [_open_to_spark(one, spec, options) for one in _policies(spec, key, options, owner_uid, portal_url)]


def _policies(spec: TrainingSpec, key: JobKey, options: TaskOptions, owner_uid: str, portal_url: str) -> list[Manifest]:
    if is_service(spec.strategy):
        made = policy(key, options, owner_uid)
        made["spec"]["ingress"] = _from_portal(options.portal_url or portal_url, options)
        made["spec"]["egress"] = [{"to": [_SERVERS], "ports": _port(options)}] if spec.program == JUPYTER else []
        return [made]
    is_alone = len(spec.tasks()) == 1 and not only_serves(spec.strategy)
    if not server_roles(spec) or (is_alone and not _spark_peers(spec, options)):
        return []
    made = policy(key, options, owner_uid)
    if is_cluster(spec.strategy):
        made["spec"]["ingress"].append({"from": [_NOTEBOOKS], "ports": _port(options)})
    return [made]


def policy(key: JobKey, options: TaskOptions, owner_uid: str) -> dict[str, Any]:
    """What lets the tasks of a run speak to each other, where only the key is known."""
    metadata = names.metadata(key.name, key, options)
    metadata["ownerReferences"] = [names.reference("ConfigMap", key.name, owner_uid)]
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


def _open_to_spark(made: Manifest, spec: TrainingSpec, options: TaskOptions) -> Manifest:
    """The same for a driver of a registered cluster. The pod of another job gets nothing."""
    peers = _spark_peers(spec, options)
    if not peers:
        return made
    found, every_port = made["spec"], [{"protocol": "TCP"}]
    ingress = [*found["ingress"], {"from": peers, "ports": every_port}]
    egress = [*found["egress"], {"to": peers, "ports": every_port}]
    return {**made, "spec": {**found, "ingress": ingress, "egress": egress}}


def _spark_peers(spec: TrainingSpec, options: TaskOptions) -> list[Manifest]:
    return [] if spec.spark is None else spark_peers(options)


def _from_portal(portal_url: str, options: TaskOptions) -> list[Manifest]:
    """None where no address of the portal is known: as in a preview, which is given none."""
    try:
        peers = portal_peers(portal_url, options)
    except Misconfigured:
        return []
    return [{"from": peers, "ports": _port(options)}]


def _port(options: TaskOptions) -> list[Manifest]:
    return [{"protocol": "TCP", "port": options.port}]

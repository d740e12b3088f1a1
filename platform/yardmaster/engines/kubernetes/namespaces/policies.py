"""The NetworkPolicies of a namespace: pods reach the cluster's DNS, the portal, and what the operator allows. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.errors import Misconfigured

_NAME_LABEL = "kubernetes.io/metadata.name"

Manifest = dict[str, Any]


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
    """Names, the portal, and what the operator allows besides."""
    names_too = [{"protocol": protocol, "port": 53} for protocol in ("UDP", "TCP")]
    found: list[Manifest] = [
        {"to": [_in_namespace(options.dns_namespace)], "ports": names_too},
        _to_portal(portal_url, options),
    ]
    if options.allow_egress:
        found.append({"to": [{"ipBlock": {"cidr": cidr}} for cidr in options.allow_egress]})
    return found


def _to_portal(portal_url: str, options: TaskOptions) -> Manifest:
    url = urlsplit(portal_url)
    port = options.portal_port or url.port or (443 if url.scheme == "https" else 80)
    peers = [{"ipBlock": {"cidr": cidr}} for cidr in options.portal_cidrs]
    if options.portal_namespace:
        peers.append(_in_namespace(options.portal_namespace))
    if not peers:
        peers.append({"ipBlock": {"cidr": _address_in(portal_url, url.hostname or "")}})
    return {"to": peers, "ports": [{"protocol": "TCP", "port": port}]}


def _address_in(portal_url: str, host: str) -> str:
    """NetworkPolicies know addresses, not names; what a name means to pods cannot be told from here."""
    try:
        return str(ipaddress.ip_network(host))
    except ValueError as error:
        raise Misconfigured(
            f"Pods reach the portal as {portal_url}, and a NetworkPolicy knows no names.",
            remedy="Set portal_cidrs (its addresses) or portal_namespace (where it runs on the cluster) in "
            "YARDMASTER_KUBERNETES_TASKS.",
        ) from error


def _in_namespace(name: str) -> Manifest:
    return {"namespaceSelector": {"matchLabels": {_NAME_LABEL: name}}}

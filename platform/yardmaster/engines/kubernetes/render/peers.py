"""Who is on the other side of a NetworkPolicy's rule: the portal, a server with an address, a namespace. Pure."""

from __future__ import annotations

import ipaddress
from typing import Any
from urllib.parse import SplitResult, urlsplit

from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.errors import Misconfigured

Manifest = dict[str, Any]
_NAME_LABEL = "kubernetes.io/metadata.name"


def portal_peers(portal_url: str, options: TaskOptions) -> list[Manifest]:
    """Where the portal is, seen from pods. Raises `Misconfigured` where nothing says it as an address."""
    peers: list[Manifest] = [{"ipBlock": {"cidr": cidr}} for cidr in options.portal_cidrs]
    if options.portal_namespace:
        peers.append(in_namespace(options.portal_namespace))
    if not peers:
        remedy = "Set portal_cidrs (its addresses) or portal_namespace (where it runs on the cluster)"
        peers.append({"ipBlock": {"cidr": address_in("portal", urlsplit(portal_url), remedy)}})
    return peers


def spark_peers(options: TaskOptions) -> list[Manifest]:
    """Where registered Spark clusters are; empty: no driver reaches any."""
    found: list[Manifest] = [{"ipBlock": {"cidr": cidr}} for cidr in options.spark_cidrs]
    return [*found, in_namespace(options.spark_namespace)] if options.spark_namespace else found


def port_of(url: SplitResult) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def address_in(what: str, url: SplitResult, remedy: str) -> str:
    """NetworkPolicies know addresses, not names; what a name means to pods cannot be determined from here."""
    try:
        return str(ipaddress.ip_network(url.hostname or ""))
    except ValueError as error:
        raise Misconfigured(
            f"Pods reach the {what} as {url.geturl()}, and a NetworkPolicy knows no names.",
            remedy=f"{remedy} in YARDMASTER_KUBERNETES_TASKS.",
        ) from error


def in_namespace(name: str) -> Manifest:
    return {"namespaceSelector": {"matchLabels": {_NAME_LABEL: name}}}

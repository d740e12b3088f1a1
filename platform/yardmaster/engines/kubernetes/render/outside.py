"""Whether pods reach addresses outside of the operator's own networks, by what their policies let them reach."""

from __future__ import annotations

import ipaddress

_PRIVATE = [ipaddress.ip_network(one) for one in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")]


def leads_outside(cidr: str) -> bool:
    """Whether it has other addresses than private ones."""
    network = ipaddress.ip_network(cidr)
    return not any(
        network.subnet_of(inner)  # type: ignore[arg-type]  # both of one version
        for inner in _PRIVATE
        if inner.version == network.version
    )

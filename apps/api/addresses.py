"""The networks that requests are counted under. Pure."""

from __future__ import annotations

import ipaddress
from functools import lru_cache

_LONGEST = 45
"""Characters of an address. A longer text, which a header may hold, is not kept."""


def network_of(address: str) -> str:
    """An IPv4 address, or the network of 64 bits of an IPv6 one. What is no address is counted as one."""
    return _network_of(address) if len(address) <= _LONGEST else "unknown"


@lru_cache(maxsize=10_000)
def _network_of(address: str) -> str:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((int(found), 64), strict=False))

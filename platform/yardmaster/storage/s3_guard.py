"""Connections to S3 servers that others have named: never to an address of the link, where clouds offer credentials to
anyone who asks from inside. It is checked when the connection is made, so a name that changes its address gains
nothing.
"""

from __future__ import annotations

import ipaddress
import socket

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import NewConnectionError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_METADATA = frozenset(map(ipaddress.ip_address, ("100.100.100.200", "192.0.0.192", "fd00:ec2::254", "168.63.129.16")))


def is_forbidden(address: Address) -> bool:
    """Whether nothing is ever connected to this: link-local, multicast, unspecified, and the metadata services that
    have other addresses."""
    return any(
        one.is_link_local or one.is_multicast or one.is_unspecified or one in _METADATA
        for one in (address, *_within(address))
    )


def _within(address: Address) -> list[Address]:
    """The IPv4 address that a router or the system takes out of an IPv6 one: mapped, 6to4, or translated (NAT64)."""
    if not isinstance(address, ipaddress.IPv6Address):
        return []
    translated = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
    return [one for one in (address.ipv4_mapped, address.sixtofour, translated) if one is not None]


class _Guarded:
    def _new_conn(self) -> socket.socket:
        sock: socket.socket = super()._new_conn()  # type: ignore[misc]  # of the connection it is mixed into
        peer = ipaddress.ip_address(str(sock.getpeername()[0]).partition("%")[0])
        if is_forbidden(peer):
            sock.close()
            raise NewConnectionError(self, "connections to addresses of this kind are not allowed")  # type: ignore[arg-type]
        return sock


class _Http(_Guarded, HTTPConnection):
    pass


class _Https(_Guarded, HTTPSConnection):
    pass


class _HttpPool(HTTPConnectionPool):
    ConnectionCls = _Http


class _HttpsPool(HTTPSConnectionPool):
    ConnectionCls = _Https


def guarded(pool: urllib3.PoolManager) -> urllib3.PoolManager:
    """The same pool with connections that look where they lead."""
    pool.pool_classes_by_scheme = {"http": _HttpPool, "https": _HttpsPool}
    return pool

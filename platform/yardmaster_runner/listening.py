"""Where the sockets of a task may be bound when it must be reachable from its own machine alone. Pure.

TensorFlow's servers bind the wildcard address, whatever address they are given, and ask for no password. So a wildcard
becomes the loopback address of the same port, and an address by which other machines reach this one is refused.
Not here: how a task's system calls come to be asked about (`narrower`).
"""

from __future__ import annotations

import socket
from typing import Optional

LOCAL_FAMILIES = (1, 16, 38)
"""AF_UNIX, AF_NETLINK, AF_ALG: they lead to no other machine, so every address of theirs is allowed."""
INTERNET = (2, 10)
"""AF_INET, AF_INET6: decided here. Every other family (VSOCK, TIPC, SMC and so on) is refused."""
PROTOCOLS = (1, 6, 17, 58, 136, 256, 262)
"""ICMP, TCP, UDP, ICMPv6, UDP-Lite, SMC, MPTCP. SCTP is refused: it binds through socket options, too."""

LOOPBACK4 = bytes([127, 0, 0, 1])
LOOPBACK6 = bytes(15) + b"\1"
MAPPED = bytes(10) + b"\xff\xff"
"""IPv4 addresses as IPv6 sockets write them."""


def is_loopback(host: bytes) -> bool:
    """Whether a packed address, of 4 or 16 bytes, is one that only this machine reaches."""
    if len(host) == 16:
        return host == LOOPBACK6 or (host.startswith(MAPPED) and is_loopback(host[12:]))
    return host[:1] == b"\x7f"


def narrowed(kind: int, host: bytes, port: int, only_v6: bool) -> Optional[bytes]:
    """The packed address to bind in place of `host`, often itself; None where the task may not bind it. `kind` is a
    socket's type. An IPv6 socket that speaks IPv4, too, gets IPv4's loopback: so tasks are told of each other."""
    if len(host) == 16 and host.startswith(MAPPED):
        inner = narrowed(kind, host[12:], port, False)
        return None if inner is None else MAPPED + inner
    if is_loopback(host):
        return host
    if any(host):
        return None
    if kind != socket.SOCK_STREAM and port == 0:
        return host  # a client that wants any port to ask from, such as one that resolves names
    if len(host) == 4:
        return LOOPBACK4
    return LOOPBACK6 if only_v6 else MAPPED + LOOPBACK4

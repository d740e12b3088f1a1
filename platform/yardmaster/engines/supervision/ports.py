"""Ports for the servers of a job's tasks: claimed in the machine's ledger, and really free when claimed.

They lie outside the range from which the kernel serves outgoing connections, which may take any free port there at
any moment. Asking the kernel for "any free port" instead would be a race: it is free again before the task binds it,
and TensorFlow's servers share a port silently (SO_REUSEPORT), so that two jobs would speak to each other's tasks.
"""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Iterator
from pathlib import Path

_WIDTH = 12_000


def default_range(kernel: tuple[int, int] | None = None) -> range:
    """Ports below the kernel's own range where there is room, else above it, else any unprivileged ones."""
    low, high = kernel or _kernel_range()
    if low - _WIDTH >= 1024:
        return range(low - _WIDTH, low)
    if low >= 2048:
        return range(1024, low)
    if high <= 64_000:
        return range(high + 1, 65_536)
    return range(1024, 65_536)


def candidates(ports: range) -> Iterator[str]:
    """All of `ports` once, from a random one on: a port that was just given back is not handed out at once."""
    start = random.randrange(len(ports))
    for offset in range(len(ports)):
        yield str(ports[(start + offset) % len(ports)])


def is_free(port: int, *, again: bool = False) -> bool:
    """Whether no process has this port on any address. `again` is for the port of a task that is started again: what
    the kernel remembers of its former connections (TIME_WAIT) does not count then."""
    with contextlib.ExitStack() as open_sockets:
        for family, anywhere in ((socket.AF_INET6, "::"), (socket.AF_INET, "0.0.0.0")):
            try:
                one = open_sockets.enter_context(socket.socket(family, socket.SOCK_STREAM))
            except OSError:  # this machine does not speak that family
                continue
            try:
                if family == socket.AF_INET6:
                    one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                if again:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                one.bind((anywhere, port))
                one.listen(1)
            except OSError as error:
                if family == socket.AF_INET6 and error.errno in _NO_IPV6:
                    continue
                return False
    return True


_NO_IPV6 = (97, 99)
"""EAFNOSUPPORT, EADDRNOTAVAIL: IPv6 is compiled in but switched off."""


def _kernel_range() -> tuple[int, int]:
    try:
        low, high = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    except OSError:
        return 32_768, 60_999
    return int(low), int(high)

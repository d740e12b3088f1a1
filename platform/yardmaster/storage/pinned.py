"""Connections to an address that was checked: a name is resolved once, all of its addresses are checked, and the
connection goes to one of those. So a name that changes its address between check and connection gains nothing.

Not here: which addresses are allowed (`s3_guard.is_public`, and what its callers add).
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence

from yardmaster.errors import YardmasterError
from yardmaster.storage.s3_guard import Address

Resolve = Callable[[str, int], list[str]]


class AddressRefused(YardmasterError):
    """One of the name's addresses may not be connected to."""

    code = "address_not_allowed"


def addresses_of(host: str, port: int) -> list[str]:
    """The addresses of a name, in the order of the system. Raises `OSError`."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(one[4][0]) for one in found))


def refuse_addresses(found: Sequence[str], may_connect: Callable[[Address], bool]) -> None:
    """Raises `AddressRefused`, whose message is the first address that is not allowed."""
    for one in found:
        if not may_connect(ipaddress.ip_address(one.partition("%")[0])):
            raise AddressRefused(one)


def connected(found: Sequence[str], port: int, timeout: Callable[[], float]) -> socket.socket:
    """A connection to the first of these addresses that takes one; `timeout` is asked before each. Raises
    `OSError`."""
    problem: OSError = OSError("the name has no address")
    for one in found:
        try:
            return socket.create_connection((one, port), timeout=timeout())
        except OSError as error:
            problem = error
    raise problem

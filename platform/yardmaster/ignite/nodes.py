"""The nodes of a cluster as people write them, and which of them the portal may connect to. Pure: names are resolved by
the process that connects (`program`), which asks `Policy.may_connect` of each address it finds.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from typing import Any

from yardmaster.errors import Problem, SpecRejected
from yardmaster.job.spec_limits import shorten
from yardmaster.outgoing.targets import Policy, policy_of
from yardmaster_runner.data.ignite_reader.access import DEFAULT_PORT, Address, addresses_of
from yardmaster_runner.data.ignite_reader.errors import IgniteDataError

MOST_NODES = 16
LONGEST = 1_000
_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


def ignite_policy(words: list[str], ports: Iterable[str]) -> Policy:
    """What an operator allows: hosts, `host:port` and networks of its own network, and the ports elsewhere, each a
    number or a range. Raises `ValueError` with the word that says none of these."""
    found: set[int] = set()
    for word in ports:
        first, _, last = word.partition("-")
        last = last or first
        if not (first.isdecimal() and last.isdecimal() and 0 < int(first) <= int(last) < 65_536):
            raise ValueError(f"{word!r} is neither a port nor a range such as 10800-10900")
        found.update(range(int(first), int(last) + 1))
    return policy_of(words, ports=frozenset(found))


def nodes_of(text: str, policy: Policy) -> tuple[Address, ...]:
    """The nodes that the text names, each once. Raises `SpecRejected` with all that is wrong."""
    if len(text) > LONGEST:
        raise SpecRejected([_problem("too_long", f"Hosts can have at most {LONGEST} characters.", "Name fewer nodes.")])
    try:
        found = tuple(dict.fromkeys((host.lower(), port) for host, port in addresses_of(text, DEFAULT_PORT)))
    except IgniteDataError:
        message = "Hosts must be names or addresses of nodes. Add a colon and the port if it is not 10800."
        raise SpecRejected(
            [_problem("invalid", message, "Enter hosts such as one.example.org, two:10801.", text)]
        ) from None
    if len(found) > MOST_NODES:
        message = f"A connection can have at most {MOST_NODES} hosts."
        raise SpecRejected(
            [_problem("too_many", message, "Name a few nodes: the others are discovered automatically.")]
        )
    problems = [one for host, port in found for one in _problems(host, port, policy)]
    if problems:
        raise SpecRejected(problems)
    return found


def text_of(nodes: Iterable[Address]) -> str:
    """As `nodes_of` reads it, and the reader in a task."""
    return ",".join(host if port == DEFAULT_PORT else f"{host}:{port}" for host, port in nodes)


def may_dial(policy: Policy, host: str, port: int) -> bool:
    """Whether this port of the host may be connected to at all."""
    return port in policy.ports or f"{host}:{port}" in policy.hosts


def policy_to_json(policy: Policy) -> dict[str, Any]:
    """For the process that connects."""
    return {
        "hosts": sorted(policy.hosts), "ports": sorted(policy.ports), "networks": [str(one) for one in policy.networks],
    }  # fmt: skip


def policy_from_json(said: dict[str, Any]) -> Policy:
    """The policy that `policy_to_json` wrote."""
    return Policy(
        hosts=frozenset(said["hosts"]), ports=frozenset(said["ports"]),
        networks=tuple(ipaddress.ip_network(one) for one in said["networks"]),
    )  # fmt: skip


def _problems(host: str, port: int, policy: Policy) -> Iterable[Problem]:
    try:
        address: Any = ipaddress.ip_address(host)
    except ValueError:
        address = None
        if not _NAME.fullmatch(host) or _NUMBER.fullmatch(host.rpartition(".")[2]):
            yield _problem(
                "invalid", "This is not the name or address of a host.", "Enter a name or an IP address.", host
            )
            return
    if not may_dial(policy, host, port):
        allowed = _ranges(policy.ports)
        message = f"The portal does not connect to the port {port}: YARDMASTER_IGNITE_PORTS allows {allowed}."
        remedy = "Use the thin client port, 10800 if nothing else was configured. An administrator can add "
        remedy += (
            f"{port} to YARDMASTER_IGNITE_PORTS, or {host}:{port} to YARDMASTER_IGNITE_HOSTS, and restart the portal."
        )
        yield _problem("port_not_allowed", message, remedy, f"{host}:{port}")
    if address is not None and not policy.may_connect(host, port, address):
        yield address_problem(host, host)


def _ranges(ports: Iterable[int]) -> str:
    """`10800-10900,11211`, as the setting has them."""
    found: list[list[int]] = []
    for port in sorted(ports):
        if found and port == found[-1][1] + 1:
            found[-1][1] = port
        else:
            found.append([port, port])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in found) or "none"


def address_problem(host: str, address: str) -> Problem:
    """The host resolves to an address to which the portal does not connect."""
    message = f"The portal does not connect to {shorten(address)}: it is an address inside its own network."
    remedy = (
        f"Use a public address. An administrator can add {shorten(host)} to YARDMASTER_IGNITE_HOSTS and restart the "
    )
    remedy += "portal."
    return _problem("address_not_allowed", message, remedy, host)


def _problem(code: str, message: str, remedy: str, value: str = "") -> Problem:
    return Problem("hosts", code, message, remedy, shorten(value))

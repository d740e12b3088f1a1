"""Where a message may be sent: what an address of a receiver must look like, and which addresses of the network are
allowed. Pure; names are resolved by `posting`, which asks `Policy.may_connect` of each address it finds.

Not here: the addresses of the Internet (`storage.s3_guard`).
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from yardmaster.errors import Problem, SpecRejected
from yardmaster.storage.s3_guard import Address, embedded, is_forbidden, is_public

LONGEST = 2_000
_PRINTABLE = re.compile(r"[!-~]+")
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_INTERNAL_ENDS = ("localhost", "local", "internal", "intranet", "lan", "home", "corp", "arpa")
_PORTS = {"https": 443, "http": 80}
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Policy:
    """What the operator allows. `hosts` are names or `name:port`, which may be internal; `networks` are internal
    networks that any name may lead to."""

    allow_http: bool = False
    ports: frozenset[int] = frozenset({443, 8443})
    hosts: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()
    seconds: float = 10.0
    """The most that one attempt takes, from the look-up of the name to the last byte."""

    def is_named(self, host: str, port: int) -> bool:
        """Whether the operator has named this receiver."""
        return host in self.hosts or f"{host}:{port}" in self.hosts

    def may_connect(self, host: str, port: int, address: Address) -> bool:
        """Whether a message for this host may go to this address. Those of the link, and metadata services, never."""
        if is_forbidden(address):
            return False
        inside = any(one in network for one in (address, *embedded(address)) for network in self.networks)
        return is_public(address) or inside or self.is_named(host, port)


@dataclass(frozen=True)
class Target:
    """A receiver's address in its parts. `host` has no brackets; `path` has the query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def host_header(self) -> str:
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == _PORTS[self.scheme] else f"{name}:{self.port}"


def policy_of(words: list[str], **more: object) -> Policy:
    """The policy with the hosts and networks that these words name. Raises `ValueError` with the word that is
    neither."""
    hosts, networks = set(), []
    for word in words:
        if "/" in word and "://" not in word:
            networks.append(ipaddress.ip_network(word))
        elif re.fullmatch(r"[a-z0-9_.-]+(:[0-9]{1,5})?|\[[0-9a-f:]+\]:[0-9]{1,5}", word.lower()):
            hosts.add(word.lower().replace("[", "").replace("]", ""))
        else:
            raise ValueError(f"{word!r} is neither a host, host:port nor a network such as 10.1.0.0/16")
    return Policy(hosts=frozenset(hosts), networks=tuple(networks), **more)  # type: ignore[arg-type]


def target_of(url: str, policy: Policy, field: str = "url") -> Target:
    """The receiver that the address names. Raises `SpecRejected` with what is wrong; no message repeats the path, which
    may be a secret."""
    if not url or len(url) > LONGEST or not _PRINTABLE.fullmatch(url) or "\\" in url:
        raise _bad(field, f"An address is printable ASCII without spaces, with at most {LONGEST} characters.",
                   "Write a name with other letters in its ASCII form (xn--…), and encode spaces as %20.")  # fmt: skip
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _bad(field, "This is not an address.", "Write https://host/path.") from None
    schemes = ("https", "http") if policy.allow_http else ("https",)
    if parts.scheme not in schemes:
        raise _bad(field, f"The address begins with {' or '.join(f'{one}://' for one in schemes)}.",
                   "Use https. An administrator can allow http (YARDMASTER_WEBHOOK_HTTP).")  # fmt: skip
    if "@" in parts.netloc:
        raise _bad(field, "The address has no user name or password.", "Verify the signature instead.")
    if "#" in url:
        raise _bad(field, "The address has no fragment (#…).", "Omit it.")
    host = _host(parts.hostname or "", parts.netloc, field)
    found = Target(
        parts.scheme, host, port if port is not None else _PORTS[parts.scheme], _path(parts.path, parts.query)
    )
    _refuse(found, policy, field)
    return found


def _path(path: str, query: str) -> str:
    return (path or "/") + (f"?{query}" if query else "")


def _host(host: str, netloc: str, field: str) -> str:
    """The host as it is looked up. Refuses forms of an address that programs read differently."""
    host = host.lower()
    if netloc.startswith("["):
        try:
            return str(ipaddress.IPv6Address(host if "%" not in host else "zone"))
        except ValueError:
            raise _bad(field, "This is not an IPv6 address, or has a zone.", "Use the host's name.", host) from None
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(one) for one in labels):
        raise _bad(field, "This is not the name of a host.", "Write it without a dot at the end.", host)
    if _NUMBER.fullmatch(labels[-1]):
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            message = "An IPv4 address is four decimal numbers without leading zeros."
            raise _bad(field, message, "Use the host's name.", host) from None
    return host


def _refuse(target: Target, policy: Policy, field: str) -> None:
    named = policy.is_named(target.host, target.port)
    if target.port not in policy.ports and f"{target.host}:{target.port}" not in policy.hosts:
        known = ", ".join(str(one) for one in sorted(policy.ports))
        raise _bad(field, f"The port is one of: {known}.", "An administrator can allow others "
                   "(YARDMASTER_WEBHOOK_PORTS).", str(target.port))  # fmt: skip
    try:
        address: Address | None = ipaddress.ip_address(target.host)
    except ValueError:
        address = None
    if address is not None:
        internal = not policy.may_connect(target.host, target.port, address)
    else:
        labels = target.host.split(".")
        internal = not named and not policy.networks and (len(labels) == 1 or labels[-1] in _INTERNAL_ENDS)
    if internal:
        message = "The address is inside the portal's network, where nothing is sent."
        remedy = "Use a public address. An administrator can allow this one (YARDMASTER_WEBHOOK_ALLOWED_HOSTS)."
        raise _bad(field, message, remedy, target.host)


def shown(url: str, *, is_secret: bool) -> str:
    """The address as people may see it: of one that is a secret the host and the last four characters, of another
    everything but the query."""
    parts = urlsplit(url)
    if is_secret:
        return (
            f"{parts.scheme}://{parts.netloc}/…{url[-4:]}"
            if len(parts.path) > 12
            else f"{parts.scheme}://{parts.netloc}/…"
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path}" + ("?…" if parts.query else "")


def _bad(field: str, message: str, remedy: str, value: str = "") -> SpecRejected:
    return SpecRejected([Problem(field, "address_not_allowed", message, remedy, value[:200])])

"""Which Git hosts may be asked, and which of their addresses may be connected to. Pure.

A host is written as `host` or `host:port`. It must have public addresses, unless the administrator writes
`internal:host`: then its addresses may be of the own network. `internal:http://host` also allows plain HTTP.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from yardmaster.errors import Problem, SpecRejected
from yardmaster.git.address import GitAddress
from yardmaster.storage.s3_guard import Address, embedded, is_forbidden

INTERNAL = "internal:"
_NOT_GLOBAL = tuple(map(ipaddress.ip_network, ("192.88.99.0/24", "fec0::/10", "2001::/32")))
"""Relays of old tunnels, site-local addresses and Teredo, of which `is_global` says nothing."""


@dataclass(frozen=True)
class GitHost:
    """A host that may be asked."""

    origin: str
    is_internal: bool = False

    def __str__(self) -> str:
        return (INTERNAL if self.is_internal else "") + self.origin


def git_hosts(words: Iterable[str]) -> list[GitHost]:
    """What the words say. Raises `ValueError` with the word that says no host."""
    return [_host(word.strip()) for word in words if word.strip()]


def _host(word: str) -> GitHost:
    is_internal = word.startswith(INTERNAL)
    text = word.removeprefix(INTERNAL)
    parts = urlsplit(text if "://" in text else f"https://{text}")
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.path.strip("/") or parts.username:
        raise ValueError(f"{word!r} is no host: write host, host:port, internal:host or internal:http://host:port")
    if parts.scheme == "http" and not is_internal:
        raise ValueError(f"{word!r}: plain HTTP is for internal hosts alone, written as internal:http://…")
    found = GitAddress(
        parts.scheme, f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname.lower(),
        parts.port or (443 if parts.scheme == "https" else 80), "/",
    )  # fmt: skip
    return GitHost(found.origin, is_internal)


def host_allowed(address: GitAddress, hosts: Sequence[GitHost]) -> GitHost:
    """The host of the address. Raises `SpecRejected` where it may not be asked."""
    if not hosts:
        remedy = "Upload the code, or ask an administrator to set YARDMASTER_GIT_HOSTS."
        raise _refused("git_off", "This portal fetches no code from Git.", remedy, address.origin)
    found = next((one for one in hosts if one.origin == address.origin), None)
    if found is None:
        known = ", ".join(one.origin.removeprefix("https://") for one in hosts)
        message = f"Code is not fetched from {address.origin.removeprefix('https://')}."
        remedy = f"Use one of: {known}. An administrator can allow others (YARDMASTER_GIT_HOSTS)."
        raise _refused("git_host_not_allowed", message, remedy, address.origin)
    return found


def may_connect(address: Address, *, is_internal: bool) -> bool:
    """Whether a connection may go to this address. Those of the link, where clouds offer credentials, never."""
    if is_forbidden(address):
        return False
    return is_internal or all(_is_public(one) for one in embedded(address) or (address,))


def _is_public(address: Address) -> bool:
    if any(address in network for network in _NOT_GLOBAL if network.version == address.version):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _refused(code: str, message: str, remedy: str, value: str) -> SpecRejected:
    return SpecRejected([Problem("address", code, message, remedy, value)])

"""Under which address a session is shown, and which session an address asks for. Pure.

With a `*` in the setting each session has a host, and so an origin, of its own: what one shows cannot act in another.
Without it sessions share a host, and are told apart by their paths.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from ipaddress import ip_address
from itertools import takewhile
from urllib.parse import SplitResult, urlsplit

MOST_VALUES = 5
LENGTH_OF_PREFIX = len("/w//") + 36
RESERVED = "/.yardmaster/"
"""Addresses on a session's host that the proxy answers itself."""
_PORTS = {"http": 80, "https": 443}
_PATH = re.compile(r"/w/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(/.*)?", re.DOTALL)
_LABEL = re.compile(r"[0-9a-f]{32}")
_LABELS_OF_DOMAIN = 2
"""Browsers take no cookie for a domain of one label."""
_HOST = re.compile(r"[a-z0-9.:\[\]-]+")


def prefix_of(session_id: uuid.UUID) -> str:
    """Where the paths of a session begin."""
    return f"/w/{session_id}/"


def session_in(path: str) -> uuid.UUID | None:
    """The session whose prefix the path has, with or without the slash at its end."""
    found = _PATH.fullmatch(path)
    return None if found is None else uuid.UUID(found.group(1))


@dataclass(frozen=True)
class Cookie:
    """The cookie that lets a browser into one session."""

    name: str
    path: str
    secure: bool

    def header(self, value: str) -> str:
        """As `Set-Cookie` has it. It ends with the browser; what it is worth is decided at each request."""
        return f"{self.name}={value}; Path={self.path}; HttpOnly; SameSite=Lax{'; Secure' if self.secure else ''}"

    def found_in(self, header: str) -> list[str]:
        """Its values in a header `Cookie`, a few at most. A script of a session can add others of the same name, before
        the right one or behind it: none of them may hide it."""
        pairs = (pair.strip().partition("=") for pair in header.split(";"))
        return [value for name, _, value in pairs if name == self.name][:MOST_VALUES]


@dataclass(frozen=True)
class EntryCookie(Cookie):
    """The cookie by which a browser that began to enter is known again when it comes with its ticket."""

    def header(self, value: str) -> str:
        return f"{super().header(value)}; Max-Age=300"


@dataclass(frozen=True)
class Origins:
    """The origins of sessions, as the setting says."""

    scheme: str
    host: str
    """Without the `*.` where each session has its own; an IPv6 address in brackets."""
    port: int
    each_its_own: bool
    portal_url: str

    @property
    def shared(self) -> str:
        """The origin of all sessions, where they share one."""
        return f"{self.scheme}://{self.host}:{self.port}"

    def can_set_cookies_of_portal(self) -> bool:
        """Whether browsers let what sessions show set cookies under the names of the portal's own, which they then send
        to the portal. Under https those names begin with `__Host-`, which browsers keep for the portal alone."""
        portal = _split(self.portal_url)
        host = portal.hostname or ""
        if portal.scheme == "https":
            return False
        if not self.each_its_own and self.host.strip("[]") == host:
            return True
        if _is_address(host):
            return False
        pairs = zip(reversed(host.split(".")), reversed(self.host.split(".")), strict=False)
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        return common >= _LABELS_OF_DOMAIN

    def of(self, session_id: uuid.UUID) -> str:
        """The origin, as browsers write it."""
        return f"{self.scheme}://{self.host_of(session_id)}"

    def url(self, session_id: uuid.UUID) -> str:
        """Where the session begins."""
        return self.of(session_id) + prefix_of(session_id)

    def host_of(self, session_id: uuid.UUID) -> str:
        """Host and port, as browsers send them."""
        host = f"{session_id.hex}.{self.host}" if self.each_its_own else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def is_ours(self, host: str) -> bool:
        """Whether a header `Host` names the host of a session."""
        name, port = _parted(host.lower())
        if port not in ("", str(self.port)) or (not port and self.port != _PORTS[self.scheme]):
            return False
        if not self.each_its_own:
            return name == self.host
        label, _, rest = name.partition(".")
        return rest == self.host and _LABEL.fullmatch(label) is not None

    def session_at(self, host: str, path: str) -> uuid.UUID | None:
        """The session that a request for this path asks for, on a host that is ours: None where it is none's, or that
        of another session's host."""
        found = session_in(path)
        if found is None or not self.each_its_own:
            return found
        return found if host.lower().startswith(f"{found.hex}.") else None

    def entry_cookie(self) -> EntryCookie:
        is_secure = self.scheme == "https"
        if self.each_its_own:
            return EntryCookie(f"{'__Host-' if is_secure else ''}yardmaster_entry", "/", is_secure)
        return EntryCookie("yardmaster_entry", RESERVED, is_secure)

    def session_of_host(self, host: str) -> uuid.UUID | None:
        """The session whose own host this is."""
        return uuid.UUID(host[:32].lower()) if self.each_its_own and self.is_ours(host) else None

    def cookie(self, session_id: uuid.UUID) -> Cookie:
        is_secure = self.scheme == "https"
        if self.each_its_own:
            return Cookie(f"{'__Host-' if is_secure else ''}yardmaster_workbench", "/", is_secure)
        return Cookie(f"yardmaster_workbench_{session_id.hex}", prefix_of(session_id), is_secure)


def origins(setting: str, portal_url: str) -> Origins:
    """The setting, read.

    Raises:
        ValueError: it is no such address, or that of the portal itself.
    """
    url = _split(setting)
    if url.scheme not in _PORTS or not url.hostname or not url.netloc.isascii():
        raise ValueError("it must be http:// or https:// with a host: http://*.localhost:8081")
    if url.path.rstrip("/") or url.query or url.fragment or "@" in url.netloc:
        raise ValueError("it must end after host and port: sessions are below /w/")
    each_its_own = url.hostname.startswith("*.")
    host = url.hostname.removeprefix("*.")
    host = f"[{host}]" if ":" in host else host
    if not _HOST.fullmatch(host):
        raise ValueError("its host has characters that no host has: `*` can only be the first label")
    port, portal = _port(url), _split(portal_url)
    if not each_its_own and (host.strip("[]"), port) == (portal.hostname, _port(portal)):
        raise ValueError(
            "it is the portal's own address: what sessions show could then act as the one who looks at it. "
            "Use another port, or another host such as https://*.workbench.example.com"
        )
    return Origins(url.scheme, host, port, each_its_own, portal_url.rstrip("/"))


def default(portal_url: str, port: int | None = None) -> str:
    """The setting where none is made. `port`: where the workbench listens; None: at the port after the portal's."""
    url = _split(portal_url)
    host = url.hostname or "localhost"
    port = port or _port(url) + 1
    if _is_loopback(host):
        return f"http://*.localhost:{port}"
    return f"{url.scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def _split(address: str) -> SplitResult:
    url = urlsplit(address.strip().lower())
    try:
        _port(url)
    except ValueError as error:
        raise ValueError("its port is none") from error
    return url


def _port(url: SplitResult) -> int:
    return url.port or _PORTS.get(url.scheme, 80)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _parted(host: str) -> tuple[str, str]:
    """Name and port of a header `Host`."""
    name, colon, port = host.rpartition(":")
    return (name, port) if colon and not port.endswith("]") else (host, "")

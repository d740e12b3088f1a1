"""Connections to one Git host: its name is resolved once for each, every address is checked, and the connection goes to
one of those that were checked, under the host's own name for TLS. So a name that changes its address gains nothing.
A redirect is followed where it stays at the host; another host is never asked.

Runs in the process that fetches. Not here: which hosts may be asked (`hosts`).
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from yardmaster.git.hosts import GitHost, may_connect
from yardmaster.git.refusals import Refused
from yardmaster.storage import pinned
from yardmaster.storage.pinned import Resolve, addresses_of

CONNECT = 10.0
READ = 60.0
MOST_REDIRECTS = 3
_REDIRECTS = (301, 302, 303, 307, 308)


def connected(host: str, port: int, *, is_internal: bool, resolve: Resolve) -> socket.socket:
    """A connection to the host. Raises `Refused` where one of its addresses may not be connected to, and `OSError`."""
    name = host.strip("[]")
    try:
        found = resolve(name, port)
    except OSError as error:
        remedy = "Check the host's name. The portal must be able to resolve and reach it."
        raise Refused("git_unreachable", f"The host {name} was not found.", remedy, name) from error
    try:
        pinned.refuse_addresses(found, lambda one: may_connect(one, is_internal=is_internal))
    except pinned.AddressRefused as error:
        message = f"The host {name} has an address that code is not fetched from: {error.message}."
        remedy = "Use a public host. An administrator can allow internal ones (internal:… in YARDMASTER_GIT_HOSTS)."
        raise Refused("git_address_not_allowed", message, remedy, error.message) from error
    return pinned.connected(found, port, lambda: CONNECT)


class GitPool(urllib3.PoolManager):
    """Requests to one host and no other. It uses no proxy, and sends no credentials but those of `headers`."""

    def __init__(
        self, host: GitHost, *, cafile: str | None = None, capath: str | None = None,
        headers: Mapping[str, str] | None = None, resolve: Resolve = addresses_of,
    ) -> None:  # fmt: skip
        self._host = host
        context = ssl.create_default_context(cafile=cafile, capath=capath)
        super().__init__(
            timeout=urllib3.Timeout(connect=CONNECT, read=READ), retries=False, headers=dict(headers or {}),
            ssl_context=context,
        )  # fmt: skip
        self.pool_classes_by_scheme = _pools(host, resolve)

    def urlopen(  # type: ignore[override]
        self, method: str, url: str, redirect: bool = True, **options: Any
    ) -> urllib3.BaseHTTPResponse:
        """Asks the host; follows redirects of a GET that stay there. Raises `Refused`."""
        for _ in range(MOST_REDIRECTS + 1):
            self._check(url)
            answer = super().urlopen(method, url, redirect=False, **options)
            place = answer.headers.get("Location")
            if answer.status not in _REDIRECTS or not place:
                return answer
            answer.close()
            if method != "GET":
                raise _redirects("The host answers with a redirect where it should take what is sent.", url)
            url = urljoin(url, place)
        raise _redirects(f"The host redirects more than {MOST_REDIRECTS} times.", url)

    def _check(self, url: str) -> None:
        parts = urlsplit(url)
        usual = {"https": 443, "http": 80}.get(parts.scheme)
        name = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        origin = f"{parts.scheme}://{name}" + (f":{parts.port}" if parts.port not in (None, usual) else "")
        if origin != self._host.origin or parts.username is not None:
            shown = origin[:200]
            message = f"{self._host.origin} redirects to {shown}: redirects are followed within a host alone."
            raise Refused("git_redirect", message, "If you trust that host, use its address.", shown)


def _redirects(message: str, url: str) -> Refused:
    return Refused("git_redirect", message, "Use the repository's own address.", url[:200])


def _pools(host: GitHost, resolve: Resolve) -> dict[str, Any]:
    class Http(_Guarded, HTTPConnection):
        pass

    class Https(_Guarded, HTTPSConnection):
        pass

    for kind in (Http, Https):
        kind.is_internal, kind.resolve = host.is_internal, staticmethod(resolve)

    class HttpPool(HTTPConnectionPool):
        ConnectionCls = Http

    class HttpsPool(HTTPSConnectionPool):
        ConnectionCls = Https

    return {"http": HttpPool, "https": HttpsPool}


class _Guarded:
    is_internal = False
    resolve: Resolve

    def _new_conn(self) -> socket.socket:
        host, port = str(self._dns_host), int(self.port)  # type: ignore[attr-defined]
        return connected(host, port, is_internal=self.is_internal, resolve=self.resolve)

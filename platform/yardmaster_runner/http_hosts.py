"""Keep-alive HTTP/1.1 connections, one per host and thread, over `http.client`. Every trouble is `NetworkTrouble`.

Not here: what a status means (`portal`), retries over time (`patience`). Proxies from the environment are not used: the
portal's address is the one seen from the task.
"""

from __future__ import annotations

import http.client
import threading
from typing import Callable, Dict, Iterator, Mapping, Optional, Tuple, Union
from urllib.parse import urlsplit

LOOPBACK = ("localhost", "127.0.0.1", "::1")
STALE = (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError, ConnectionAbortedError)


class Moving:
    """A body that is sent piece by piece, and again from its start; `moved` is called after each piece."""

    PIECE = 256 << 10

    def __init__(self, body: bytes, moved: Callable[[], object]) -> None:
        self._body, self._moved = memoryview(body), moved

    def __len__(self) -> int:
        return len(self._body)

    def __iter__(self) -> Iterator[memoryview]:
        for start in range(0, len(self._body), self.PIECE):
            yield self._body[start : start + self.PIECE]
            self._moved()


Body = Union[bytes, Moving]


class NetworkTrouble(Exception):
    """The host did not answer, or not in HTTP. Trying later may help."""


class Hosts:
    """Connections that each thread keeps for itself, so that no lock is held while one waits."""

    def __init__(self) -> None:
        self._local = threading.local()

    def request(
        self, method: str, url: str, headers: Mapping[str, str], body: Optional[Body], timeout: float
    ) -> http.client.HTTPResponse:
        """The answer, its body still to be read (until then the connection is taken). Raises `NetworkTrouble`.

        A kept connection that the host has closed meanwhile is replaced once, at once: all requests of the runner may
        be repeated.
        """
        parts = urlsplit(url)
        target = (parts.path or "/") + ("?" + parts.query if parts.query else "")
        key = (parts.scheme, parts.netloc)
        for last_try in (False, True):
            connection, is_fresh = self._connection(key, timeout)
            try:
                return _exchange(connection, method, target, headers, body)
            except STALE as error:
                self.forget(url)
                if is_fresh or last_try:
                    raise NetworkTrouble("%s: %s" % (parts.netloc, error or type(error).__name__)) from error
            except (OSError, http.client.HTTPException) as error:
                self.forget(url)
                raise NetworkTrouble("%s: %s" % (parts.netloc, error or type(error).__name__)) from error
        raise AssertionError("unreachable")

    def forget(self, url: str) -> None:
        """Close this thread's connection to the host of `url`, as after an answer that was not read to its end."""
        parts = urlsplit(url)
        connection = self._kept().pop((parts.scheme, parts.netloc), None)
        if connection is not None:
            connection.close()

    def _kept(self) -> Dict[Tuple[str, str], http.client.HTTPConnection]:
        if not hasattr(self._local, "connections"):
            self._local.connections = {}
        kept: Dict[Tuple[str, str], http.client.HTTPConnection] = self._local.connections
        return kept

    def _connection(self, key: Tuple[str, str], timeout: float) -> Tuple[http.client.HTTPConnection, bool]:
        kept = self._kept()
        connection = kept.get(key)
        if connection is not None and connection.sock is not None:
            connection.sock.settimeout(timeout)
            return connection, False
        scheme, host = key
        if scheme == "https":
            connection = http.client.HTTPSConnection(host, timeout=timeout)
        elif scheme == "http":
            connection = http.client.HTTPConnection(host, timeout=timeout)
        else:
            raise NetworkTrouble("an address must begin with http:// or https://, not %r" % scheme)
        kept[key] = connection
        return connection, True


def _exchange(
    connection: http.client.HTTPConnection, method: str, target: str, headers: Mapping[str, str], body: Optional[Body]
) -> http.client.HTTPResponse:
    """Send and wait for the answer's head. A host may answer (413, 401) and hang up before it has read the body:
    its answer is worth more than our broken pipe."""
    try:
        if isinstance(body, Moving):
            headers = {**headers, "Content-Length": str(len(body))}
        connection.request(method, target, body, dict(headers))
    except (BrokenPipeError, ConnectionResetError) as broken:
        try:
            return connection.getresponse()
        except (OSError, http.client.HTTPException):
            raise broken from None
    return connection.getresponse()


def is_loopback(url: str) -> bool:
    """Whether the host of `url` is this machine, so that compressing would only cost."""
    host = urlsplit(url).hostname or ""
    return host in LOOPBACK or host.startswith("127.")

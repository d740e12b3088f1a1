"""Connections to the servers of signed addresses, kept open for the next request.

`http.client` itself: for each small file a fuller library takes more processor time than all the rest of the transfer.
Not here: proxies (`signed`), repeats (`transport`).
"""

from __future__ import annotations

import contextlib
import http.client
import select
import ssl
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

_KEPT = 16
"""Idle connections to a server."""


class NoAnswer(Exception):
    """The other side did not answer, or stopped in the middle of its answer."""


@dataclass
class Connections:
    """Thread-safe."""

    seconds: float
    context: ssl.SSLContext
    _idle: dict[tuple[str, str], deque[http.client.HTTPConnection]] = field(
        default_factory=lambda: defaultdict(lambda: deque(maxlen=_KEPT))
    )

    @contextlib.contextmanager
    def answer(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Iterator[http.client.HTTPResponse]:
        """The answer, to be read within the block: what is left then costs the connection. Raises `NoAnswer`."""
        parts = urlsplit(url)
        server = parts.scheme, parts.netloc
        connection = self._connection(server)
        target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        is_good = False
        try:
            with broken():
                found = _ask(connection, method, target, body, headers)
            yield found
            is_good = found.isclosed() and not found.will_close
        finally:
            if is_good:
                self._idle[server].append(connection)
            else:
                connection.close()

    def close(self) -> None:
        for idle in list(self._idle.values()):
            with contextlib.suppress(IndexError):
                while True:
                    idle.pop().close()

    def _connection(self, server: tuple[str, str]) -> http.client.HTTPConnection:
        idle = self._idle[server]
        with contextlib.suppress(IndexError):
            while True:
                kept = idle.pop()
                if _is_quiet(kept):
                    return kept
                kept.close()
        scheme, netloc = server
        host = netloc.rpartition("@")[2]
        if scheme == "https":
            return http.client.HTTPSConnection(host, timeout=self.seconds, context=self.context)
        return http.client.HTTPConnection(host, timeout=self.seconds)


def read(answer: http.client.HTTPResponse, most: int) -> bytes:
    """Up to so many bytes; none at the end. Raises `NoAnswer` where the answer stops before its end."""
    with broken():
        data = answer.read(most)
        if not data and answer.length:
            raise http.client.IncompleteRead(data, answer.length)
    return data


@contextlib.contextmanager
def broken() -> Iterator[None]:
    """What goes wrong with a connection, as `NoAnswer`."""
    try:
        yield
    except (http.client.HTTPException, OSError) as error:
        raise NoAnswer(str(error) or type(error).__name__) from error


def _ask(
    connection: http.client.HTTPConnection, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
) -> http.client.HTTPResponse:
    try:
        connection.request(method, target, body, dict(headers))
    except (BrokenPipeError, ConnectionResetError):
        if connection.sock is None:
            raise
        # It did not want the rest: its answer says why.
    return connection.getresponse()


def _is_quiet(connection: http.client.HTTPConnection) -> bool:
    """Whether the server has neither closed an idle connection nor said anything there."""
    if connection.sock is None:
        return False
    watch = select.poll()
    watch.register(connection.sock, select.POLLIN)
    return not watch.poll(0)

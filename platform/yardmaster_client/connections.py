"""Connections to the servers of signed addresses, kept open for the next request.

`http.client` itself: for each small file a fuller library takes more processor time than all the rest of the transfer.
Of large files nothing is copied that need not be: what is sent goes from the file to the connection within the system,
and what comes the other way (`yardmaster_runner.receiving`).
Not here: proxies (`signed`), repeats (`transport`).
"""

from __future__ import annotations

import contextlib
import http.client
import select
import socket
import ssl
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from yardmaster_runner.receiving import PIECE, Incoming, Interrupted

_KEPT = 16
"""Idle connections to a server."""


class NoAnswer(Exception):
    """The other side did not answer, or stopped in the middle of its answer."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """So many bytes of a file from `start`, which are read when they are needed."""

    path: str
    start: int
    size: int

    def __len__(self) -> int:
        return self.size

    def pieces(self) -> Iterator[memoryview]:
        """The bytes, in pieces that are good until the next one. Raises ValueError: the file has become shorter."""
        left, space = self.size, memoryview(bytearray(min(PIECE, self.size)))
        with open(self.path, "rb", buffering=0) as stream:
            stream.seek(self.start)
            while left:
                count = stream.readinto(space[:left])
                if not count:
                    raise self._shorter()
                left -= count
                yield space[:count]

    def read(self) -> bytes:
        """The bytes. Raises as `pieces`."""
        with open(self.path, "rb", buffering=0) as stream:
            stream.seek(self.start)
            data = stream.read(self.size)
            while len(data) < self.size and (more := stream.read(self.size - len(data))):
                data += more
        if len(data) < self.size:
            raise self._shorter()
        return data

    def send(self, sock: socket.socket) -> None:
        """To a connection, past this program's memory where it is not encrypted. Raises as `pieces`."""
        if isinstance(sock, ssl.SSLSocket):
            for piece in self.pieces():
                sock.sendall(piece)
            return
        with open(self.path, "rb", buffering=0) as stream:
            if sock.sendfile(stream, self.start, self.size) != self.size:
                raise self._shorter()

    def _shorter(self) -> ValueError:
        return ValueError(f"{self.path} was changed while it was uploaded: upload it again.")


Body = bytes | FilePart


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
        self, method: str, url: str, body: Body | None, headers: Mapping[str, str]
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


def take(answer: http.client.HTTPResponse, target: Incoming, is_plain: bool, seconds: float) -> int:
    """The number of bytes that the file has received; 0 at the end. Raises as `read`, and OSError where the file does;
    `is_plain`, `seconds`: as of `Incoming.take`."""
    try:
        count = target.take(answer, is_plain, seconds)
    except Interrupted as error:
        raise NoAnswer(str(error)) from error
    if not count and answer.length:
        raise NoAnswer(f"{answer.length} bytes are missing at the end")
    return count


@contextlib.contextmanager
def broken() -> Iterator[None]:
    """What goes wrong with a connection, as `NoAnswer`."""
    try:
        yield
    except (http.client.HTTPException, OSError) as error:
        raise NoAnswer(str(error) or type(error).__name__) from error


def _ask(
    connection: http.client.HTTPConnection, method: str, target: str, body: Body | None, headers: Mapping[str, str]
) -> http.client.HTTPResponse:
    try:
        if isinstance(body, FilePart):
            connection.request(method, target, None, {**headers, "Content-Length": str(body.size)})
            body.send(connection.sock)
        else:
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

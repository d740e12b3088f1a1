"""One message to one receiver: resolve the name, check its addresses, connect to one that was checked, send, and read
the answer, all within the seconds of the policy. Redirects are not followed.

TLS is verified for the receiver's name, whichever of its addresses is connected to. Not here: which addresses are
allowed (`targets`), what an answer means (`retries`).
"""

from __future__ import annotations

import contextlib
import http.client
import io
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as LookedUpTooLong
from dataclasses import dataclass
from functools import cache
from typing import Any

from yardmaster.errors import YardmasterError
from yardmaster.outgoing.targets import Policy, Target
from yardmaster.storage import pinned
from yardmaster.storage.pinned import Resolve, addresses_of

MOST_READ = 64 << 10
"""Bytes of an answer, head included, that are read. What is longer is cut off."""
MOST_KEPT = 2 << 10
_PIECE = 16 << 10


class NotSent(YardmasterError):
    """The receiver gave no answer. The message says why."""

    code = "not_sent"


@dataclass(frozen=True)
class Reply:
    status: int
    excerpt: str
    """The beginning of the answer's body, as text."""
    retry_after: str
    """As the receiver wrote it; empty where it did not."""


def post(
    target: Target, body: bytes, headers: Mapping[str, str], policy: Policy, *,
    resolve: Resolve = addresses_of, context: ssl.SSLContext | None = None,
) -> Reply:  # fmt: skip
    """Send the body, and return what the receiver answers, whatever its status. Raises `NotSent`."""
    left = _Left(policy.seconds)
    try:
        found = _looked_up(target, resolve, left)
        pinned.refuse_addresses(found, lambda one: policy.may_connect(target.host, target.port, one))
        connection = _Connection(target, found, left, context)
        with contextlib.closing(connection):
            connection.request("POST", target.path, body, {"Host": target.host_header, **headers})
            return _read(connection)
    except pinned.AddressRefused as error:
        message = f"{target.host} has an address that nothing is sent to: {error.message}."
        remedy = "An administrator can allow it (YARDMASTER_WEBHOOK_ALLOWED_HOSTS)."
        raise NotSent(message, remedy=remedy) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotSent(_why(target, error, policy.seconds)) from error


class _Left:
    """How much of the attempt's time is left. Raises `TimeoutError` where none is."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def __call__(self) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


@cache
def _look_ups() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(8, thread_name_prefix="look-up")


def _looked_up(target: Target, resolve: Resolve, left: Callable[[], float]) -> list[str]:
    """In a thread, as the system's look-up knows no bound of time."""
    try:
        return _look_ups().submit(resolve, target.host, target.port).result(timeout=left())
    except LookedUpTooLong as error:
        raise TimeoutError from error


class _Connection(http.client.HTTPConnection):
    """To one of these addresses. Every step has only the time that is left of the whole."""

    def __init__(
        self, target: Target, found: list[str], left: Callable[[], float], context: ssl.SSLContext | None
    ) -> None:
        super().__init__(target.host, target.port)
        self._target, self._found, self._left = target, found, left
        self._context = context or ssl.create_default_context()
        self.response_class = self._response  # type: ignore[assignment]

    def connect(self) -> None:
        sock = pinned.connected(self._found, self.port, self._left)
        self.sock = sock
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._target.scheme == "https":
            sock.settimeout(self._left())  # the handshake as a whole
            self.sock = self._context.wrap_socket(sock, server_hostname=self._target.host)

    def send(self, data: Any) -> None:
        if self.sock is None:
            self.connect()
        for start in range(0, len(data), _PIECE):
            self.sock.settimeout(self._left())
            self.sock.sendall(data[start : start + _PIECE])

    def _response(self, sock: socket.socket, *given: Any, **more: Any) -> http.client.HTTPResponse:
        answer = http.client.HTTPResponse(sock, *given, **more)
        answer.fp = io.BufferedReader(_Bounded(answer.fp.detach(), sock, self._left))
        return answer


class _Bounded(io.RawIOBase):
    """The first `MOST_READ` bytes of an answer, as long as there is time. What is longer seems to end there."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, left: Callable[[], float]) -> None:
        self._raw, self._sock, self._left = raw, sock, left
        self._more = MOST_READ

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        if not self._more:
            return 0
        self._sock.settimeout(self._left())
        count = self._raw.readinto(memoryview(buffer)[: self._more])
        self._more -= count or 0
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


def _read(connection: _Connection) -> Reply:
    with connection.getresponse() as answer:
        excerpt = b""
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):  # its status has come: that counts
            while piece := answer.read(_PIECE):
                excerpt += piece[: MOST_KEPT - len(excerpt)]
        text = excerpt.decode(errors="replace").replace("\x00", "\ufffd")
        return Reply(answer.status, text, (answer.headers.get("Retry-After") or "")[:64])


def _why(target: Target, error: Exception, seconds: float) -> str:
    match error:
        case TimeoutError():
            return f"{target.host} did not answer within {seconds:g} seconds."
        case socket.gaierror():
            return f"The name {target.host} is not known."
        case ssl.SSLCertVerificationError():
            return f"The certificate of {target.host} is not valid: {error.verify_message}."
        case ssl.SSLError():
            return f"{target.host} does not speak TLS as expected."
        case ConnectionRefusedError():
            return f"{target.host} accepts no connection on port {target.port}."
        case http.client.HTTPException():
            return f"{target.host} did not answer in HTTP."
    return f"{target.host} cannot be reached."

"""A client for WebSockets (RFC 6455) on the standard library, for one thread that waits with `select`.

Addresses, certificates and proxies as in `http_hosts`. Messages are bounded, and neither reading nor sending blocks.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.client
import os
import socket
import ssl
import struct
import time
from typing import List, Mapping, Optional, Tuple, Union
from urllib.parse import urlsplit

LONGEST_MESSAGE = 1 << 20
LONGEST_HEAD = 16 << 10
CHUNK = 64 << 10
CONTINUED, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
_ACCEPTED_AS = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_BLOCKED = (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

Message = Union[bytes, str]


class Closed(Exception):
    """The connection is over, or was never opened."""


class WebSocket:
    """An open connection. `receive` and `flush` do what can be done at once; `Closed` where nothing can be any more."""

    def __init__(self, connection: socket.socket, came: bytes = b"") -> None:
        connection.setblocking(False)
        self._socket = connection
        self._came = bytearray(came)
        self._unsent = bytearray()
        self._parts: Optional[Tuple[int, bytearray]] = None
        self.received_at = time.monotonic()
        """When something came last."""

    def fileno(self) -> int:
        return self._socket.fileno()

    @property
    def unsent(self) -> int:
        """Bytes that wait for the network."""
        return len(self._unsent)

    def send(self, message: Message) -> None:
        """Queue a message, to be flushed."""
        if isinstance(message, str):
            self._unsent += _frame(TEXT, message.encode())
        else:
            self._unsent += _frame(BINARY, message)

    def ping(self) -> None:
        self._unsent += _frame(PING, b"")

    def say_goodbye(self) -> None:
        """Queue the end of the connection."""
        self._unsent += _frame(CLOSE, struct.pack(">H", 1000))

    def flush(self) -> None:
        """Send what the network takes now."""
        try:
            while self._unsent:
                sent = self._socket.send(memoryview(bytes(self._unsent[:CHUNK])))
                del self._unsent[:sent]
        except _BLOCKED:
            return
        except OSError as error:
            raise Closed(str(error)) from error

    def receive(self) -> List[Message]:
        """The messages that are here. Pings are answered."""
        is_over = self._read()
        found = []
        while True:
            frame = self._next_frame()
            if frame is None:
                break
            message = self._take(*frame)
            if message is not None:
                found.append(message)
        if is_over and not found:
            raise Closed("the connection was closed")
        return found

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()

    def _read(self) -> bool:
        """Take in what has come, some at a time; whether nothing more will."""
        try:
            while len(self._came) <= LONGEST_MESSAGE:
                data = self._socket.recv(CHUNK)
                if not data:
                    return True
                self._came += data
                self.received_at = time.monotonic()
        except _BLOCKED:
            return False
        except OSError:
            return True
        return False

    def _next_frame(self) -> Optional[Tuple[bool, int, bytes]]:
        """Whether it is the last of its message, its kind, and its content; None where no whole one is here."""
        came = self._came
        if len(came) < 2:
            return None
        size, start = came[1] & 0x7F, 2
        if size > 125:
            start = 4 if size == 126 else 10
            if len(came) < start:
                return None
            size = int.from_bytes(came[2:start], "big")
        if came[0] & 0x70 or came[1] & 0x80 or size > LONGEST_MESSAGE:
            raise Closed("the other side does not keep to the protocol")
        if len(came) < start + size:
            return None
        first, content = came[0], bytes(came[start : start + size])
        del came[: start + size]
        return bool(first & 0x80), first & 0x0F, content

    def _take(self, is_last: bool, kind: int, content: bytes) -> Optional[Message]:
        """The message that the frame completes, if any."""
        if kind == CLOSE:
            raise Closed("closed: %s" % content[2:].decode("utf-8", "replace"))
        if kind == PING:
            self._unsent += _frame(PONG, content[:125])
        if kind in (PING, PONG):
            return None
        if kind != CONTINUED and self._parts is None:
            self._parts = (kind, bytearray())
        elif kind != CONTINUED or self._parts is None:
            raise Closed("a message began within another")
        kind, whole = self._parts
        whole += content
        if len(whole) > LONGEST_MESSAGE:
            raise Closed("a message is too long")
        if not is_last:
            return None
        self._parts = None
        if kind == BINARY:
            return bytes(whole)
        return whole.decode("utf-8", "replace")


def connect(url: str, headers: Mapping[str, str], timeout: float) -> WebSocket:
    """Open a connection; `url` begins with http or https. Raises `Closed`."""
    parts = urlsplit(url)
    kinds = {"http": http.client.HTTPConnection, "https": http.client.HTTPSConnection}
    if parts.scheme not in kinds:
        raise Closed("an address must begin with http:// or https://, not %r" % parts.scheme)
    connection = kinds[parts.scheme](parts.netloc, timeout=timeout)
    try:
        connection.connect()
        opened = connection.sock
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return WebSocket(opened, _shake_hands(opened, parts.netloc, url, headers))
    except (OSError, http.client.HTTPException, ValueError) as error:
        connection.close()
        raise Closed("%s: %s" % (parts.netloc, error or type(error).__name__)) from error


def _shake_hands(opened: socket.socket, host: str, url: str, headers: Mapping[str, str]) -> bytes:
    """What came behind the answer's head. Raises `OSError` or `ValueError`."""
    parts = urlsplit(url)
    key = base64.b64encode(os.urandom(16)).decode()
    lines = ["GET %s HTTP/1.1" % ((parts.path or "/") + ("?" + parts.query if parts.query else "")), "Host: " + host]
    wanted = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key}
    lines += ["%s: %s" % one for one in {**wanted, **headers}.items()]
    opened.sendall(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    came = b""
    while b"\r\n\r\n" not in came:
        data = opened.recv(4096)
        if not data or len(came) > LONGEST_HEAD:
            raise ValueError("the answer has no end")
        came += data
    head, _, rest = came.partition(b"\r\n\r\n")
    status, *fields = head.decode("latin-1").split("\r\n")
    answered = {name.strip().lower(): value.strip() for name, _, value in (one.partition(":") for one in fields)}
    expected = base64.b64encode(hashlib.sha1(key.encode() + _ACCEPTED_AS).digest()).decode()
    if status.split(" ")[1:2] != ["101"] or answered.get("sec-websocket-accept") != expected:
        raise ValueError("it was answered with %r" % status[:100])
    return rest


def _frame(kind: int, content: bytes) -> bytes:
    size = len(content)
    if size < 126:
        head = struct.pack(">BB", 0x80 | kind, 0x80 | size)
    elif size < 1 << 16:
        head = struct.pack(">BBH", 0x80 | kind, 0x80 | 126, size)
    else:
        head = struct.pack(">BBQ", 0x80 | kind, 0x80 | 127, size)
    mask = os.urandom(4)
    repeated = (mask * (size // 4 + 1))[:size]
    masked = int.from_bytes(content, "big") ^ int.from_bytes(repeated, "big")
    return head + mask + masked.to_bytes(size, "big")

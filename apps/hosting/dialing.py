"""One request to the port of a service: only to the address that its engine gives, bounded in time and in bytes, and
only after the gate there has proved that it is the service's (`yardmaster_runner.gate_protocol`).

What answers is a program with a model of a user: nothing of its answer is believed but the status and that the body is
bytes. No redirect is followed, no proxy is used, and a connection carries one request.
"""

from __future__ import annotations

import http.client
import socket
import time
from dataclasses import dataclass
from typing import Any

from yardmaster.engines.base import Address
from yardmaster_runner.gate_protocol import LONGEST_LINE, greeting, new_nonce, place_of, proof_of_portal

MOST_BODY = 8 << 20
MOST_ANSWER = 16 << 20
CONNECT = 3.0
PREDICT = 60.0
HEALTH = 1.0
_PIECE = 256 << 10


class NotReached(Exception):
    """Nothing answers at the address, or another program does, or the connection broke before there was an answer."""


class TooSlow(Exception):
    """The answer was not complete in time."""


class AnswerTooLarge(Exception):
    """The answer has more bytes than are passed on."""


@dataclass(frozen=True)
class Reply:
    """What the service answered."""

    status: int
    body: bytes


def dial(
    address: Address,
    method: str,
    path: str,
    body: bytes = b"",
    *,
    key: str,
    seconds: float = PREDICT,
    most: int = MOST_ANSWER,
) -> Reply:
    """Send one request, with the key of the service, and read the whole answer. Raises `NotReached`, `TooSlow` and
    `AnswerTooLarge`."""
    until = time.monotonic() + seconds
    is_proved = False
    connection = http.client.HTTPConnection(address.host, address.port, timeout=min(CONNECT, seconds))
    headers = {"Accept": "application/json", "Connection": "close"}
    if method == "POST":
        headers["Content-Type"] = "application/json"
    try:
        connection.connect()
        connection.sock = _Bounded(connection.sock.detach(), min(until, time.monotonic() + CONNECT))
        _prove(connection.sock, key)
        is_proved = True
        connection.sock.until = until
        _allow(connection, until)
        connection.request(method, path, body if method == "POST" else None, headers)
        answer = connection.getresponse()
        return Reply(answer.status, _whole(answer, most))
    except TimeoutError as error:
        if not is_proved and time.monotonic() < until:
            raise NotReached(f"{address} does not answer") from error
        raise TooSlow(f"no answer from {address} within {seconds:.0f} s") from error
    except (OSError, http.client.HTTPException) as error:
        raise NotReached(f"{address}: {type(error).__name__}") from error
    finally:
        connection.close()


def _prove(connection: socket.socket, key: str) -> None:
    """Have the gate prove itself, then prove ourselves; it gets nothing of the request before. Raises `NotReached`."""
    nonce, line = new_nonce(), b""
    connection.sendall(greeting(nonce))
    space = bytearray(LONGEST_LINE)
    while not line.endswith(b"\n") and len(line) < LONGEST_LINE:
        size = connection.recv_into(space, LONGEST_LINE - len(line))
        if not size:
            break
        line += space[:size]
    proof = proof_of_portal(key, place_of(connection.getpeername()), nonce, line)
    if proof is None:
        raise NotReached("what answers at the address is not the service")
    connection.sendall(proof)


def _allow(connection: http.client.HTTPConnection, until: float) -> None:
    """As much time as is left for the next step."""
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    if connection.sock is not None:
        connection.sock.settimeout(left)


class _Bounded(socket.socket):
    """Of which all reading ends at a moment, however little comes at a time, and whatever it is a part of: the library
    reads lines of a head, and heads of answers that announce another, for as long as some byte of them comes."""

    def __init__(self, descriptor: int, until: float) -> None:
        super().__init__(fileno=descriptor)
        self.until = until

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.settimeout(left)
        return super().recv_into(buffer, nbytes, flags)


def _whole(answer: http.client.HTTPResponse, most: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while True:
        piece = answer.read1(_PIECE)
        if not piece:
            break
        size += len(piece)
        if size > most:
            raise AnswerTooLarge(f"more than {most} bytes")
        pieces.append(piece)
    if answer.length:  # cut off: read1 does not say so
        raise NotReached("the connection broke in the middle of the answer")
    return b"".join(pieces)

"""Requests with bad tokens, so many a second, from a process of its own: bare sockets, no client library, so that the
stream takes little of the machine that the portal runs on. Linux: every address of 127.0.0.0/8 is this machine."""

from __future__ import annotations

import contextlib
import random
import re
import selectors
import socket
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from tests.real.portal import RealPortal

TICK = 0.02
_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
_WORKED = 3.0
"""Seconds over which the web process is watched without other requests, at the end of a round."""


@dataclass(frozen=True)
class Round:
    """What one stretch of the stream reached."""

    rate: float
    statuses: Counter[str]


@dataclass
class Stream:
    """The process that sends, and what it said of each round."""

    _pipe: Connection
    rounds: list[Round] = field(default_factory=list)

    @contextlib.contextmanager
    def on(self, portal: RealPortal, used: list[float]) -> Iterator[None]:
        """The stream runs meanwhile, and for some seconds more, in which what the web process takes is its own: that
        goes to `used`, in processor seconds per refused request."""
        self._pipe.send("begin")
        yield
        before, begun = portal.processor_seconds("web"), time.perf_counter()
        time.sleep(_WORKED)
        worked, took = portal.processor_seconds("web") - before, time.perf_counter() - begun
        self._pipe.send("end")
        self.rounds.append(Round(*self._pipe.recv()))
        used.append(worked / (self.rounds[-1].rate * took))


@contextlib.contextmanager
def stream(url: str, secrets: dict[str, list[str]], rate: int, sources: int) -> Iterator[Stream]:
    """A process that sends on demand, from `sources` addresses."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_send, args=(theirs, url, secrets, rate, sources), daemon=True)
    process.start()
    theirs.close()  # so that a process that has died is noticed
    try:
        yield Stream(ours)
    finally:
        with contextlib.suppress(OSError):
            ours.send("quit")
        process.join(10)
        process.kill()


def _send(pipe: Connection, url: str, secrets: dict[str, list[str]], rate: int, sources: int) -> None:
    host, port = url.removeprefix("http://").split(":")
    sender = _Sender((host, int(port)), secrets, sources)
    while pipe.recv() == "begin":
        pipe.send(sender.round(pipe, rate))


def _received(client: Any) -> bytes:
    """A piece of an answer; nothing where the server has closed the connection, or has reset it because a request came
    as it did so."""
    try:
        found: bytes = client.recv(16384)
    except ConnectionResetError:
        return b""
    return found


def _is_whole(answer: bytes) -> bool:
    """Whether a body that is as long as the head says has come."""
    head, end, body = answer.partition(b"\r\n\r\n")
    length = _LENGTH.search(head)
    return bool(end) and len(body) >= int(length[1] if length else 0)


class _Sender:
    """Kept connections, one for each address: a request is written as soon as the last one is answered."""

    def __init__(self, server: tuple[str, int], secrets: dict[str, list[str]], sources: int) -> None:
        self._server = server
        self._secrets = secrets
        self._sources = sources
        self._draw = random.Random(1)
        self._selector = selectors.DefaultSelector()
        self._idle: list[int] = []
        self._sent = 0
        self._heard: dict[int, bytes] = {}
        self._statuses: Counter[str] = Counter()

    def round(self, pipe: Connection, rate: int) -> tuple[float, Counter[str]]:
        """Send until told to end; the rate of answers, and their statuses."""
        self._statuses, self._sent, begun = Counter(), 0, time.perf_counter()
        self._heard.clear()
        self._idle = list(range(self._sources))
        while not pipe.poll():
            due = int((time.perf_counter() - begun) * rate) - self._sent
            for _ in range(min(due, len(self._idle))):
                self._ask(self._idle.pop(0))
            self._hear()
        pipe.recv()
        took = time.perf_counter() - begun
        for key in list(self._selector.get_map().values()):
            self._drop(key.fileobj)
        return sum(self._statuses.values()) / took, self._statuses

    def _ask(self, source: int) -> None:
        kept = next((one for one in self._selector.get_map().values() if one.data == source), None)
        if kept is None:
            client = socket.create_connection(self._server, 10, (f"127.0.0.{source + 2}", 0))
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(client, selectors.EVENT_READ, source)
        else:
            client = kept.fileobj  # type: ignore[assignment]
        with contextlib.suppress(ConnectionError):  # closed meanwhile: seen when it is read, and a new one is made
            client.sendall(self._request())
        self._sent += 1

    def _request(self) -> bytes:
        kind = self._sent % 5
        token = (
            "",
            "not-a-token",
            f"ym_{self._draw.randbytes(32).hex()}",
            self._draw.choice(self._secrets["expired"]),
            self._draw.choice(self._secrets["revoked"]),
        )[kind]
        head = f"Authorization: Bearer {token}\r\n" if token else ""
        return f"GET /api/v1/me/ HTTP/1.1\r\nHost: 127.0.0.1\r\n{head}\r\n".encode()

    def _hear(self) -> None:
        for key, _ in self._selector.select(TICK if self._idle else 0.2):
            piece = _received(key.fileobj)
            answer = self._heard.pop(key.data, b"") + piece
            if piece and not _is_whole(answer):
                self._heard[key.data] = answer
                continue
            if piece:
                self._statuses[answer[9:12].decode()] += 1
            if key.data not in self._idle:  # else the server has closed a connection that was not in use
                self._idle.append(key.data)
            if not piece or b"onnection: close" in answer:
                self._drop(key.fileobj)

    def _drop(self, client: Any) -> None:
        self._selector.unregister(client)
        client.close()

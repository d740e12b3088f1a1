"""A request to a service ends in time, whatever the program at its port does."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from apps.hosting.dialing import Reply, TooSlow, dial
from apps.serving.views import _json as passed_on
from yardmaster.engines.base import Address

WELL = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


@contextmanager
def listening(answer: Callable[[socket.socket], None]) -> Iterator[Address]:
    """Someone who takes one connection, and answers it so."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.recv(65536)
                answer(connection)

        threading.Thread(target=serve, daemon=True).start()
        yield Address("127.0.0.1", server.getsockname()[1])


def dripping(piece: bytes, before: bytes = b"") -> Callable[[socket.socket], None]:
    """Sends this again and again, each time long before a reader's patience is over; ten seconds in all."""

    def answer(connection: socket.socket) -> None:
        connection.sendall(before)
        until = time.monotonic() + 10
        while time.monotonic() < until:
            connection.sendall(piece)
            time.sleep(0.05)

    return answer


def test_an_answer_is_read():
    with listening(lambda connection: connection.sendall(WELL)) as address:
        reply = dial(address, "POST", "/v1/models/m:predict", b"{}", seconds=10)
    assert (reply.status, reply.body) == (200, b"{}")


@pytest.mark.parametrize(
    ("piece", "before"),
    [
        (b"HTTP/1.1 100 Continue\r\n\r\n", b""),
        (b"x", b"HTTP/1.1 200 OK\r\nX-Long: "),
        (b"1\r\nx\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"),
    ],
    ids=["heads", "head", "body"],
)
def test_a_service_that_never_gets_to_the_end_is_left_in_time(piece: bytes, before: bytes):
    begun = time.monotonic()
    with listening(dripping(piece, before)) as address, pytest.raises(TooSlow):
        dial(address, "GET", "/healthz", seconds=0.5)
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(("status", "shown"), [(200, 200), (400, 400), (503, 503), (101, 502), (302, 502), (999, 502)])
def test_only_statuses_of_a_model_server_are_passed_on(status: int, shown: int):
    assert passed_on(Reply(status, b"{}")).status_code == shown

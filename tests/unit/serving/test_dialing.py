"""A request to a service ends in time, whatever the program at its port does."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from apps.hosting.dialing import NotReached, Reply, TooSlow, dial
from apps.serving.views import _json as passed_on
from yardmaster.engines.base import Address
from yardmaster_runner.gate_protocol import answer as gates_answer
from yardmaster_runner.gate_protocol import new_nonce, nonce_in, place_of, proves

KEY = "yms.the service's"
WELL = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


def has_proved(connection: socket.socket, key: str) -> bool:
    """The gate's part of the challenge; what it receives first is all that it gets before its proof."""
    with connection.makefile("rb", buffering=0) as lines:
        place, nonce, own = place_of(connection.getsockname()), nonce_in(lines.readline()), new_nonce()
        assert nonce is not None
        connection.sendall(gates_answer(key, place, nonce, own))
        return proves(key, place, nonce, own, lines.readline())


@contextmanager
def listening(answer: Callable[[socket.socket], None], key: str = KEY) -> Iterator[Address]:
    """A gate that takes one connection, proves itself with this key, and answers it so."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                if has_proved(connection, key):
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


def test_an_answer_is_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("apps.hosting.dialing.CONNECT", 10.0)
    with listening(lambda connection: connection.sendall(WELL)) as address:
        reply = dial(address, "POST", "/v1/models/m:predict", b"{}", key=KEY, seconds=10)
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
        dial(address, "GET", "/healthz", key=KEY, seconds=0.5)
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(("status", "shown"), [(200, 200), (400, 400), (503, 503), (101, 502), (302, 502), (999, 502)])
def test_only_statuses_of_a_model_server_are_passed_on(status: int, shown: int):
    assert passed_on(Reply(status, b"{}")).status_code == shown


def received_by_another(answer: Callable[[str], bytes]) -> bytes:
    """All that a program which is not the service gets, when it answers the portal's first line so."""
    got = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            connection.settimeout(10)
            with connection:
                got.append(connection.recv(65536))
                connection.sendall(answer(place_of(connection.getsockname())))
                with suppress(OSError):
                    got.append(connection.recv(65536))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with pytest.raises(NotReached):
            dial(Address("127.0.0.1", server.getsockname()[1]), "POST", "/secret", b"secret", key=KEY, seconds=10)
        thread.join(10)
    return b"".join(got)


@pytest.mark.parametrize(
    "answer",
    [
        lambda place: WELL,
        lambda place: b"x" * 1000,
        lambda place: gates_answer(KEY, place, "0" * 32, "1" * 32),
        lambda place: gates_answer("another key", place, "0" * 32, "1" * 32),
        lambda place: b"\n",
    ],
    ids=["http", "long", "replayed", "another", "empty"],
)
def test_a_program_that_is_not_the_service_gets_a_nonce_alone(answer: Callable[[str], bytes]):
    got = received_by_another(answer)
    assert got.startswith(b"YMG1 ")
    assert len(got) == 38


def test_a_service_with_another_key_gets_no_request(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("apps.hosting.dialing.CONNECT", 10.0)
    with (
        listening(lambda connection: connection.sendall(WELL), "another key") as address,
        pytest.raises(NotReached, match="not the service"),
    ):
        dial(address, "GET", "/healthz", key=KEY, seconds=10)


def test_one_that_says_nothing_does_not_answer(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("apps.hosting.dialing.CONNECT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(NotReached):
        dial(Address("127.0.0.1", server.getsockname()[1]), "GET", "/healthz", key=KEY, seconds=10)

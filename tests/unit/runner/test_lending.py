"""The gate lends connections to programs that take them: which, for how long, and what remains of an answer."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.unit.runner.test_gate import KEY, PATIENCE, all_of, connected, echo, gate, passed, program, until
from yardmaster_runner import lending
from yardmaster_runner.gate import Gate
from yardmaster_runner.gate_protocol import greeting, new_nonce
from yardmaster_runner.workbench.wsgi_server import Server

__all__ = ["gate"]


@contextmanager
def taker(gate: Gate, serve: Callable[[lending.Lent], None]) -> Iterator[None]:
    """A program that takes connections, one after the other, and has no socket of its own."""

    def take() -> None:
        with suppress(OSError):
            while True:
                with lending.Lent(listener.accept()[0]) as connection:
                    connection.settimeout(PATIENCE)
                    serve(connection)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(lending.place(gate.socket_path))
        listener.listen()
        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        yield
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE)


def test_a_program_gets_the_portals_own_connection(gate: Gate):
    peers: list[Any] = []

    def serve(connection: lending.Lent) -> None:
        peers.append(connection.getpeername())
        echo(connection)

    with taker(gate, serve), passed(gate, b"with the proof") as one:
        one.sendall(b", and after it")
        one.shutdown(socket.SHUT_WR)
        assert all_of(one) == b"with the proof, and after it"
        assert peers == [one.getsockname()]


def test_what_does_not_prove_itself_is_lent_to_no_one(gate: Gate):
    reached: list[Any] = []
    with taker(gate, reached.append):
        assert all_of(passed(gate, b"secret", key="another")) == b""
        one = connected(gate)
        one.sendall(greeting(new_nonce()) + b"0" * 64 + b"\nGET / HTTP/1.1\r\n\r\n")
        one.shutdown(socket.SHUT_WR)
        assert all_of(one) == b""
    assert reached == []


def test_it_counts_until_the_program_has_done_with_it(gate: Gate):
    gate._most = 1
    done = threading.Event()
    with taker(gate, lambda connection: bool(done.wait(PATIENCE))):
        first = passed(gate)
        until(lambda: len(gate._proven) == 1)
        assert all_of(passed(gate)) == b"", "there is no room for it"
        done.set()
        assert all_of(first) == b"", "it is closed for the portal, too"
        first.close()
        until(lambda: not gate._proven)


def test_an_answer_arrives_although_the_request_was_not_read(gate: Gate):
    with taker(gate, lambda connection: connection.sendall(b"too large")), passed(gate) as one:
        with suppress(OSError):
            for _ in range(64):
                one.sendall(b"x" * 65_536)
            one.shutdown(socket.SHUT_WR)
        assert all_of(one) == b"too large"


def test_the_end_of_the_gate_ends_what_it_has_lent(tmp_path: Path):
    one, ended = Gate("127.0.0.1:0", KEY, str(tmp_path)), threading.Event()

    def serve(connection: lending.Lent) -> None:
        echo(connection)
        ended.set()

    with taker(one, serve), passed(one, b"x") as portal:
        assert portal.recv(1) == b"x"
        one.close()
        assert all_of(portal) == b""
        assert ended.wait(PATIENCE)


def test_the_program_that_has_gone_is_not_taken_for_one_that_passes_bytes(gate: Gate):
    with taker(gate, echo):
        pass
    with program(gate, echo):
        assert all_of(passed(gate, b"x")) == b""


def test_a_server_answers_what_is_lent_and_what_comes_to_its_socket(gate: Gate):
    def application(environment: dict[str, Any], start: Any) -> list[bytes]:
        start("200 OK", [])
        return [environment["PATH_INFO"].encode()]

    server = Server(gate.socket_path, application)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        with socket.socket(socket.AF_UNIX) as silent, socket.socket(socket.AF_UNIX) as own, passed(gate) as lent:
            silent.connect(lending.place(gate.socket_path))
            silent.shutdown(socket.SHUT_WR)  # and lends nothing
            own.connect(gate.socket_path)
            for one, path in ((lent, b"/a"), (own, b"/b"), (lent, b"/c")):
                one.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path)
                answer = b""
                while not answer.endswith(path):
                    answer += one.recv(1000)
                assert answer.startswith(b"HTTP/1.1 200")
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def test_nothing_that_was_lent_is_an_error():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"\n")
        with pytest.raises(OSError, match="nothing was lent"):
            lending.Lent(ours)

"""The gate of a service: who passes it, what those who do not are allowed, and that bytes pass whole, both ways."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from apps.hosting.dialing import NotReached, dial
from apps.workbench.proxy.gate_connection import Unreachable, through_gate
from yardmaster.engines.base import Address
from yardmaster_runner import gate as gates
from yardmaster_runner.gate import Gate, bound
from yardmaster_runner.gate_protocol import LONGEST_LINE, answer, greeting, new_nonce, place_of, proof_of_portal

KEY = "yms.key"
PATIENCE = 20.0
OPENED: list[socket.socket] = []
"""Closed at the end of a test."""


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    made = Gate("127.0.0.1:0", KEY, str(tmp_path))
    yield made
    made.close()
    while OPENED:
        OPENED.pop().close()


@contextmanager
def program(gate: Gate, serve: Callable[[socket.socket], None]) -> Iterator[None]:
    """What is behind the gate: each connection in a thread."""

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=one, args=(connection,), daemon=True).start()

    def one(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            serve(connection)

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(gate.socket_path)
        listener.listen(128)
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(PATIENCE)


def echo(connection: socket.socket) -> None:
    while data := connection.recv(1 << 20):
        connection.sendall(data)


def connected(gate: Gate) -> socket.socket:
    OPENED.append(socket.create_connection(("127.0.0.1", gate.port), timeout=PATIENCE))
    return OPENED[-1]


def passed(gate: Gate, after: bytes = b"", key: str = KEY) -> socket.socket:
    """A connection of the portal; `after` is sent together with the proof."""
    one, nonce = connected(gate), new_nonce()
    one.sendall(greeting(nonce))
    proof = proof_of_portal(KEY, place_of(one.getpeername()), nonce, line_of(one))
    assert proof is not None, "the gate knows the key"
    if key != KEY:
        proof = b"0" * 64 + b"\n"
    one.sendall(proof + after)
    return one


def line_of(one: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n") and (piece := one.recv(1)):
        line += piece
    return line


def all_of(one: socket.socket) -> bytes:
    """Until the end; a reset is one, too."""
    got = bytearray()
    with suppress(ConnectionResetError):
        while piece := one.recv(1 << 20):
            got += piece
    return bytes(got)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.01)


def test_it_listens_on_loopback_where_its_address_is_there():
    assert bound("127.0.0.1:80") == ("127.0.0.1", 80)
    assert bound("[::1]:80") == ("::1", 80)
    assert bound("10.0.0.5:2222") == ("10.0.0.5", 2222)
    assert bound("worker-0.run:2222") == ("0.0.0.0", 2222)


def test_what_the_portal_sends_with_its_proof_and_after_it_reaches_the_program(gate: Gate):
    with program(gate, echo), passed(gate, b"GET / ") as one:
        one.sendall(b"HTTP/1.1")
        one.shutdown(socket.SHUT_WR)
        assert all_of(one) == b"GET / HTTP/1.1"


@pytest.mark.parametrize("first", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"x" * 10_000, b"YMG1 00\n", b"\n", b""])
def test_what_does_not_begin_with_the_greeting_is_closed_without_a_word(gate: Gate, first: bytes):
    reached: list[bytes] = []
    with program(gate, lambda one: reached.append(one.recv(100))), connected(gate) as one:
        with suppress(OSError):  # it may be closed already
            one.sendall(first)
            one.shutdown(socket.SHUT_WR)
        assert all_of(one) == b""
    assert reached == []


def test_a_wrong_proof_reaches_nothing(gate: Gate):
    reached: list[bytes] = []
    with program(gate, lambda one: reached.append(one.recv(100))):
        assert all_of(passed(gate, b"secret", key="another")) == b""
    assert reached == []


def test_lines_of_an_earlier_connection_are_good_for_no_other(gate: Gate):
    with program(gate, echo):
        nonce = new_nonce()
        with connected(gate) as first:
            first.sendall(greeting(nonce))
            proof = proof_of_portal(KEY, place_of(first.getpeername()), nonce, line_of(first))
            assert proof is not None
            first.sendall(proof + b"ok")
            assert first.recv(2) == b"ok"
        with connected(gate) as second:
            second.sendall(greeting(nonce))
            line_of(second)
            second.sendall(proof + b"again")
            assert all_of(second) == b""


@contextmanager
def relayed(gate: Gate) -> Iterator[Address]:
    """Another's program, at an address that the portal still knows: it passes all bytes to the gate and back."""

    def copy(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def relay() -> None:
        portal, _ = listener.accept()
        with portal, socket.create_connection(("127.0.0.1", gate.port)) as there:
            back = threading.Thread(target=copy, args=(there, portal), daemon=True)
            back.start()
            copy(portal, there)
            back.join(PATIENCE)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=relay, daemon=True).start()
        yield Address("127.0.0.1", listener.getsockname()[1])


def test_the_challenge_passed_on_by_a_program_at_another_address_proves_nothing(gate: Gate):
    reached: list[bytes] = []
    with program(gate, lambda one: reached.append(one.recv(100))):
        with relayed(gate) as address, pytest.raises(NotReached):
            dial(address, "GET", "/", key=KEY, seconds=PATIENCE)
        with relayed(gate) as address, pytest.raises(Unreachable):
            asyncio.run(through_gate(address, KEY))
        with relayed(gate) as address, socket.create_connection((address.host, address.port), PATIENCE) as one:
            nonce = new_nonce()
            one.sendall(greeting(nonce))
            of_relay = place_of(one.getpeername())
            gate_nonce = line_of(one).split()[0].decode()
            own_answer = answer(KEY, of_relay, nonce, gate_nonce)
            proof = proof_of_portal(KEY, of_relay, nonce, own_answer)
            assert proof is not None, "as if the portal believed it"
            one.sendall(proof + b"secret")
            assert all_of(one) == b""
    assert reached == []


@pytest.mark.parametrize(
    ("end", "place"),
    [
        (("10.0.0.7", 2222), "[10.0.0.7]:2222"),
        (("::ffff:10.0.0.7", 2222, 0, 0), "[10.0.0.7]:2222"),
        (("fe80::1%eth0", 2222, 0, 2), "[fe80::1]:2222"),
    ],
)
def test_both_ends_of_a_connection_write_a_place_alike(end: tuple[object, ...], place: str):
    assert place_of(end) == place


def test_a_connection_without_an_address_has_no_place():
    with pytest.raises(OSError, match="without an address"):
        place_of("")


def test_no_more_than_a_line_is_read_before_the_proof(gate: Gate):
    one = connected(gate)
    one.sendall(b"x" * (LONGEST_LINE - 1))
    one.settimeout(0.3)
    with pytest.raises(TimeoutError):
        one.recv(1)
    one.settimeout(PATIENCE)
    with suppress(OSError):
        one.sendall(b"xx")
    assert all_of(one) == b""


def test_a_slow_greeting_is_cut_off_in_time(gate: Gate, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gates, "SECONDS", 0.3)
    with connected(gate) as one:
        begun = time.monotonic()
        with suppress(OSError):
            while time.monotonic() - begun < PATIENCE:
                one.sendall(b"Y")
                time.sleep(0.01)
        assert time.monotonic() - begun < PATIENCE


def test_those_that_prove_nothing_keep_the_portal_out_never(gate: Gate):
    crowd = [connected(gate) for _ in range(3 * gates.MOST_UNPROVEN)]
    with program(gate, echo), passed(gate, b"here") as one:
        assert one.recv(4) == b"here"
        assert all_of(crowd[0]) == b"", "the oldest were closed"
        assert len(gate._unproven) <= gates.MOST_UNPROVEN


def test_too_many_connections_are_refused_and_their_places_used_again(gate: Gate):
    gate._most = 2
    with program(gate, echo):
        kept = [passed(gate, b"a") for _ in range(2)]
        assert [one.recv(1) for one in kept] == [b"a", b"a"]
        assert all_of(passed(gate, b"b")) == b""
        kept[0].close()
        until(lambda: len(gate._proven) < 2)
        assert passed(gate, b"c").recv(1) == b"c"


def test_while_the_program_does_not_listen_the_portal_is_told_at_once(gate: Gate, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(gates, "SECONDS", 20.0)
    monkeypatch.setattr(gates, "TIME_TO_CONNECT", 40.0)  # which does not pass either
    begun = time.monotonic()
    assert all_of(passed(gate, b"GET /")) == b""
    assert time.monotonic() - begun < gates.SECONDS
    with program(gate, echo):
        assert passed(gate, b"x").recv(1) == b"x"


def test_a_program_whose_backlog_is_full_gets_the_connection_when_it_takes_one(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(gates, "TIME_TO_CONNECT", 30.0)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(gate.socket_path)
        listener.listen(0)
        waiting = [passed(gate, b"%d" % number) for number in range(4)]
        until(lambda: len(gate._proven) == 4)
        got = set()
        for _ in waiting:
            connection, _ = listener.accept()
            with connection:
                got.add(connection.recv(1))
        assert got == {b"0", b"1", b"2", b"3"}


def test_the_end_of_either_direction_is_passed_on_and_the_other_stays(gate: Gate):
    def answers_after_the_end(connection: socket.socket) -> None:
        got = all_of(connection)
        connection.sendall(b"%d" % len(got))

    with program(gate, answers_after_the_end), passed(gate) as one:
        one.sendall(b"x" * 1000)
        one.shutdown(socket.SHUT_WR)
        assert all_of(one) == b"1000"

    os.unlink(gate.socket_path)
    got: list[bytes] = []
    seen = threading.Event()

    def ends_first(connection: socket.socket) -> None:
        connection.sendall(b"that is all")
        connection.shutdown(socket.SHUT_WR)
        got.append(all_of(connection))
        seen.set()

    with program(gate, ends_first), passed(gate) as one:
        assert all_of(one) == b"that is all"
        one.sendall(b"thank you")
        one.shutdown(socket.SHUT_WR)
        assert seen.wait(PATIENCE)
    assert got == [b"thank you"]


def test_an_answer_that_comes_before_the_end_of_the_request_arrives(gate: Gate):
    def refuses(connection: socket.socket) -> None:
        connection.recv(10)
        connection.sendall(b"413")

    with program(gate, refuses), passed(gate) as one:
        with suppress(OSError):
            one.sendall(b"x" * (4 << 20))
        assert all_of(one) == b"413"


@pytest.mark.parametrize("side", ["portal", "program"])
def test_a_connection_that_breaks_ends_on_the_other_side_too(gate: Gate, side: str):
    met: list[socket.socket] = []
    ended = threading.Event()

    def holds(connection: socket.socket) -> None:
        met.append(connection)
        all_of(connection)
        ended.set()

    with program(gate, holds), passed(gate, b"x") as one:
        until(lambda: bool(met))
        if side == "portal":
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            one.close()
            assert ended.wait(PATIENCE)
        else:
            met[0].shutdown(socket.SHUT_RDWR)
            assert all_of(one) == b""
            one.close()
        until(lambda: not gate._proven)


def test_a_large_answer_passes_whole_and_is_not_kept_in_memory(gate: Gate):
    size, sent = 256 << 20, [0]
    piece = os.urandom(1 << 20)

    def sends(connection: socket.socket) -> None:
        while sent[0] < size:
            connection.sendall(piece)
            sent[0] += len(piece)

    with program(gate, sends), passed(gate) as one:
        before = 0
        until(lambda: sent[0] > 0)
        while before != sent[0]:
            before = sent[0]
            time.sleep(0.3)
        assert sent[0] < 32 << 20, "a reader that does not read holds up the writer"
        got = 0
        space = bytearray(len(piece))
        while got < size:
            view = memoryview(space)
            while view:
                received = one.recv_into(view)
                assert received
                view = view[received:]
            assert space == piece
            got += len(piece)
        assert one.recv(1) == b""


def test_many_connections_at_once_pass_what_is_theirs(gate: Gate):
    with program(gate, echo):
        ones = [passed(gate, b"%04d" % number) for number in range(200)]
        assert [one.recv(4) for one in ones] == [b"%04d" % number for number in range(200)]
        for one in ones:
            one.close()
        until(lambda: not gate._proven)


def test_its_folder_is_the_users_alone_short_and_gone_at_the_end(gate: Gate, tmp_path: Path):
    deep = tmp_path / ("deep" * 20)
    deep.mkdir()
    for work in (tmp_path / "short", deep):
        work.mkdir(exist_ok=True)
        one = Gate("127.0.0.1:0", KEY, str(work))
        folder = os.path.dirname(one.socket_path)
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        assert len(one.socket_path) < 104
        with program(one, echo):
            assert passed(one, b"x").recv(1) == b"x"
        one.close()
        assert not os.path.exists(folder)
        with pytest.raises(ConnectionRefusedError):
            connected(one)


def test_an_address_that_is_taken_is_an_error_and_leaves_nothing(gate: Gate, tmp_path: Path):
    (tmp_path / "other").mkdir()
    with pytest.raises(OSError, match="in use"):
        Gate(f"127.0.0.1:{gate.port}", KEY, str(tmp_path / "other"))
    assert list((tmp_path / "other").iterdir()) == []

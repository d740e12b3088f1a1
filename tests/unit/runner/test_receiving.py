"""From a connection into a file, within the system and through memory."""

from __future__ import annotations

import errno
import hashlib
import http.client
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from yardmaster_runner.receiving import PIECE, Incoming, Interrupted

DATA = os.urandom(1 << 20) * 3 + b"the end"
SECONDS = 20.0
needs_splice = pytest.mark.skipif(not hasattr(os, "splice"), reason="this system has no splice")


@contextmanager
def answered(pieces: Sequence[bytes | threading.Event], length: int = len(DATA)) -> Iterator[http.client.HTTPResponse]:
    """The answer of a server that sends these bytes, waits for these events, and closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            # A client that stops at an error closes its end while this one still sends.
            with connection, suppress(ConnectionError):
                connection.recv(1 << 16)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length)
                for piece in pieces:
                    if isinstance(piece, bytes):
                        connection.sendall(piece)
                    else:
                        piece.wait(SECONDS)

        thread = threading.Thread(target=serve)
        thread.start()
        asking = http.client.HTTPConnection(*listening.getsockname(), timeout=SECONDS)
        asking.request("GET", "/")
        try:
            yield asking.getresponse()
        finally:
            asking.close()
            thread.join()


def received(answer: http.client.HTTPResponse, path: Path, **more: bool) -> tuple[int, str]:
    """The size, and the SHA-256 of what was looked at."""
    digest = hashlib.sha256()
    with Incoming(str(path), digest.update, memoryview(bytearray(PIECE))) as incoming:
        while incoming.take(answer, more.get("is_plain", True), SECONDS):
            pass
        return incoming.size, digest.hexdigest()


WHOLE = (len(DATA), hashlib.sha256(DATA).hexdigest())


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How much went from a connection into a pipe, call by call."""
    found: list[int] = []
    if hasattr(os, "splice"):
        splice = os.splice

        def noted(source: int, target: int, count: int, **more: int) -> int:
            done = splice(source, target, count, **more)
            if more:
                found.append(done)
            return done

        monkeypatch.setattr(os, "splice", noted)
    return found


@needs_splice
def test_a_large_file_goes_past_the_memory_of_the_program(tmp_path: Path, moved: list[int]) -> None:
    with answered([DATA]) as answer:
        assert received(answer, tmp_path / "a") == WHOLE
        assert answer.isclosed()
    assert (tmp_path / "a").read_bytes() == DATA
    assert sum(moved) >= len(DATA) - 2 * PIECE


def test_an_encrypted_connection_is_read_through_memory(tmp_path: Path, moved: list[int]) -> None:
    with answered([DATA]) as answer:
        assert received(answer, tmp_path / "a", is_plain=False) == WHOLE
    assert (tmp_path / "a").read_bytes() == DATA
    assert not moved


def test_what_comes_bit_by_bit_is_waited_for(tmp_path: Path) -> None:
    pieces = [DATA[start : start + 70_001] for start in range(0, len(DATA), 70_001)]
    with answered(pieces) as answer:
        assert received(answer, tmp_path / "a") == WHOLE
    assert (tmp_path / "a").read_bytes() == DATA


def test_an_answer_that_ends_too_early_is_as_long_as_it_was(tmp_path: Path) -> None:
    with answered([DATA[:1_500_000]]) as answer:
        size, digest = received(answer, tmp_path / "a")
        assert answer.length
    assert (size, digest) == (1_500_000, hashlib.sha256(DATA[:1_500_000]).hexdigest())


def test_a_silent_connection_is_given_up(tmp_path: Path) -> None:
    silence = threading.Event()  # set at the end of the test
    with answered([DATA[:500_000], silence]) as answer:
        with Incoming(str(tmp_path / "a"), None, memoryview(bytearray(PIECE))) as incoming:
            while incoming.size < 500_000:
                incoming.take(answer, True, SECONDS)
            with pytest.raises(Interrupted, match="timed out"):
                incoming.take(answer, True, 0.05)
            assert incoming.size == 500_000
        silence.set()


def _refusing(which: Callable[[dict[str, int]], bool], number: int) -> Callable[..., int]:
    splice = os.splice

    def refuse(source: int, target: int, count: int, **more: int) -> int:
        if which(more):
            raise OSError(number, os.strerror(number))
        return splice(source, target, count, **more)

    return refuse


@needs_splice
@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOSYS, errno.EPERM])
@pytest.mark.parametrize("end", ["connection", "file"])
def test_a_system_that_does_not_move_bytes_loses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, end: str
) -> None:
    monkeypatch.setattr(os, "splice", _refusing(lambda more: bool(more) == (end == "connection"), number))
    with answered([DATA]) as answer:
        assert received(answer, tmp_path / "a") == WHOLE
    assert (tmp_path / "a").read_bytes() == DATA


@needs_splice
def test_a_full_disk_is_an_error_of_the_file_and_not_of_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "splice", _refusing(lambda more: not more, errno.ENOSPC))
    with answered([DATA]) as answer, pytest.raises(OSError, match="No space left"):
        received(answer, tmp_path / "a")


@needs_splice
def test_a_file_that_someone_cuts_off_meanwhile_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    splice = os.splice

    def cut(source: int, target: int, count: int, **more: int) -> int:
        done = splice(source, target, count, **more)
        if not more:
            os.ftruncate(target, 10)
        return done

    monkeypatch.setattr(os, "splice", cut)
    with answered([DATA]) as answer, pytest.raises(OSError, match="became shorter"):
        received(answer, tmp_path / "a")


def test_nothing_stays_open(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd")) if sys.platform == "linux" else set()
    with answered([DATA]) as answer:
        received(answer, tmp_path / "a")
    after = set(os.listdir("/proc/self/fd")) if sys.platform == "linux" else set()
    assert after <= before

"""Parts of files on their way into a connection."""

from __future__ import annotations

import os
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from yardmaster_client.connections import PIECE, FilePart

SIZE = 3 * PIECE + 5
CERTIFICATE = Path(__file__).with_name("store.test.pem")
"""Of `store.test`, with its key. It proves nothing."""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "data.bin"
    file.write_bytes(os.urandom(SIZE))
    return file


def _all_of(connection: socket.socket) -> bytes:
    received = bytearray()
    while data := connection.recv(1 << 16):
        received += data
    return bytes(received)


def test_a_part_is_read_whole_and_in_pieces(file: Path) -> None:
    part = FilePart(str(file), 7, SIZE - 9)
    wanted = file.read_bytes()[7:-2]
    assert (len(part), part.read()) == (len(wanted), wanted)
    assert b"".join(bytes(piece) for piece in part.pieces()) == wanted


def test_a_part_is_sent_exactly(file: Path) -> None:
    ours, theirs = socket.socketpair()
    with ThreadPoolExecutor(1) as pool, theirs:
        received = pool.submit(_all_of, theirs)
        with ours:
            ours.settimeout(5)  # as connections to stores have one
            FilePart(str(file), 7, SIZE - 9).send(ours)
        assert received.result() == file.read_bytes()[7:-2]


def test_a_part_is_sent_exactly_over_an_encrypted_connection(file: Path) -> None:
    server, client = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context(cafile=CERTIFICATE)
    server.load_cert_chain(CERTIFICATE)
    server.num_tickets = 0  # a client that closes with tickets unread would reset the connection
    ours, theirs = socket.socketpair()

    def receive() -> bytes:
        with server.wrap_socket(theirs, server_side=True) as connection:
            return _all_of(connection)

    with ThreadPoolExecutor(1) as pool:
        received = pool.submit(receive)
        with client.wrap_socket(ours, server_hostname="store.test") as connection:
            FilePart(str(file), 7, SIZE - 9).send(connection)
        assert received.result() == file.read_bytes()[7:-2]


def test_a_file_that_has_become_shorter_is_refused_however_it_is_read(file: Path) -> None:
    part = FilePart(str(file), 7, SIZE)
    ours, theirs = socket.socketpair()
    with ThreadPoolExecutor(1) as pool, theirs:
        pool.submit(_all_of, theirs)
        with ours:
            for way in (part.read, lambda: list(part.pieces()), lambda: part.send(ours)):
                with pytest.raises(ValueError, match=r"data\.bin was changed while it was uploaded"):
                    way()

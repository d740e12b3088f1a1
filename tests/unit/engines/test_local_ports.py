"""Which ports may be given out."""

from __future__ import annotations

import socket

import pytest

from yardmaster.engines.supervision import ports


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ((32768, 60999), range(20768, 32768)),
        ((10000, 60999), range(1024, 10000)),
        ((1024, 60999), range(61000, 65536)),
        ((1024, 65535), range(1024, 65536)),
    ],
)
def test_the_range_keeps_clear_of_the_kernels_where_it_can(kernel, expected):
    assert ports.default_range(kernel) == expected


def test_every_candidate_comes_once():
    span = range(20000, 20050)
    assert sorted(int(port) for port in ports.candidates(span)) == list(span)


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_a_port_with_a_listener_on_any_address_is_not_free(address: str):
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # as TensorFlow's servers do
        other.bind((address, 0))
        other.listen()
        port = other.getsockname()[1]
        assert not ports.is_free(port)
        assert not ports.is_free(port, again=True)
    assert ports.is_free(port)


def test_a_port_whose_connections_have_just_ended_is_free_again_for_its_own_task():
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        client = socket.create_connection(("127.0.0.1", port))
        accepted, _ = server.accept()
        accepted.close()  # the side that closes first keeps TIME_WAIT
        client.close()
    assert not ports.is_free(port)
    assert ports.is_free(port, again=True)

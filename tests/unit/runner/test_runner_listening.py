"""What a task may bind when it is to be reached from its own machine alone, and what its filter does with each call."""

from __future__ import annotations

import errno
import socket
import struct

import pytest

from yardmaster_runner.narrower import Listening, is_loopback, narrowed
from yardmaster_runner.seccomp import ALLOW, ASK, ERRNO, IO_URING_SETUP, KILL_PROCESS, MACHINES, filter_for

TCP, UDP, RAW = socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW
REFUSED = ""
ALONE = Listening(lambda text: None)


def packed(host: str) -> bytes:
    return socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)


@pytest.mark.parametrize(
    ("kind", "host", "port", "only_v6", "expected"),
    [
        (TCP, "0.0.0.0", 0, False, "127.0.0.1"),
        (TCP, "0.0.0.0", 2222, False, "127.0.0.1"),
        (TCP, "127.0.0.1", 2222, False, "127.0.0.1"),
        (TCP, "127.8.9.10", 2222, False, "127.8.9.10"),
        (TCP, "192.0.2.1", 2222, False, REFUSED),
        (TCP, "192.0.2.1", 0, False, REFUSED),
        (TCP, "126.255.255.255", 1, False, REFUSED),
        (TCP, "255.255.255.255", 1, False, REFUSED),
        (TCP, "::", 2222, False, "::ffff:127.0.0.1"),
        (TCP, "::", 2222, True, "::1"),
        (TCP, "::1", 2222, False, "::1"),
        (TCP, "::1", 2222, True, "::1"),
        (TCP, "::2", 2222, False, REFUSED),
        (TCP, "::127.0.0.1", 2222, False, REFUSED),
        (TCP, "::ffff:0.0.0.0", 2222, False, "::ffff:127.0.0.1"),
        (TCP, "::ffff:127.0.0.1", 2222, False, "::ffff:127.0.0.1"),
        (TCP, "::ffff:192.0.2.1", 2222, False, REFUSED),
        (TCP, "fe80::1", 2222, False, REFUSED),
        (UDP, "0.0.0.0", 0, False, "0.0.0.0"),
        (UDP, "::", 0, False, "::"),
        (UDP, "::ffff:0.0.0.0", 0, False, "::ffff:0.0.0.0"),
        (UDP, "0.0.0.0", 53, False, "127.0.0.1"),
        (UDP, "::", 53, False, "::ffff:127.0.0.1"),
        (UDP, "224.0.0.1", 53, False, REFUSED),
        (UDP, "192.0.2.1", 0, False, REFUSED),
        (RAW, "0.0.0.0", 0, False, "0.0.0.0"),
    ],
)
def test_where_a_socket_is_bound(kind: int, host: str, port: int, only_v6: bool, expected: str):
    found = narrowed(kind, packed(host), port, only_v6, ALONE)
    assert found == (packed(expected) if expected else None)


@pytest.mark.parametrize(
    ("kind", "host", "port", "only_v6", "expected"),
    [
        (TCP, "0.0.0.0", 2222, False, "10.0.0.5"),
        (TCP, "::", 2222, False, "::ffff:10.0.0.5"),
        (TCP, "::ffff:0.0.0.0", 2222, False, "::ffff:10.0.0.5"),
        (TCP, "::", 2222, True, "::1"),
        (TCP, "0.0.0.0", 2223, False, "127.0.0.1"),
        (TCP, "0.0.0.0", 0, False, "127.0.0.1"),
        (TCP, "10.0.0.5", 2223, False, "10.0.0.5"),
        (TCP, "::ffff:10.0.0.5", 2223, False, "::ffff:10.0.0.5"),
        (TCP, "127.0.0.1", 2222, False, "127.0.0.1"),
        (TCP, "10.0.0.6", 2222, False, REFUSED),
        (UDP, "10.0.0.5", 53, False, "10.0.0.5"),
        (UDP, "192.0.2.1", 53, False, REFUSED),
    ],
)
def test_a_task_of_several_machines_is_bound_to_its_private_address(
    kind: int, host: str, port: int, only_v6: bool, expected: str
):
    where = Listening(lambda text: None, packed("10.0.0.5"), 2222)
    found = narrowed(kind, packed(host), port, only_v6, where)
    assert found == (packed(expected) if expected else None)


def test_in_a_spark_job_of_several_machines_others_reach_every_port_of_a_wildcard():
    where = Listening(lambda text: None, packed("10.0.0.5"), 2222, every_port=True)
    for port in (0, 2222, 4711):
        assert narrowed(TCP, packed("0.0.0.0"), port, False, where) == packed("10.0.0.5")
        assert narrowed(TCP, packed("::"), port, False, where) == packed("::ffff:10.0.0.5")
    assert narrowed(TCP, packed("127.0.0.1"), 4711, False, where) == packed("127.0.0.1")
    assert narrowed(TCP, packed("10.0.0.6"), 4711, False, where) is None
    alone = Listening(lambda text: None, every_port=True)
    assert narrowed(TCP, packed("0.0.0.0"), 4711, False, alone) == packed("127.0.0.1")


@pytest.mark.parametrize("kind", [TCP, UDP])
@pytest.mark.parametrize("port", [0, 1, 65_535])
@pytest.mark.parametrize("only_v6", [False, True])
def test_a_tcp_socket_never_leaves_loopback_whatever_it_asks_for(kind: int, port: int, only_v6: bool):
    hosts = [bytes(4), bytes(16), *(bytes(at) + b"\x7f" + bytes(15 - at) for at in range(16))]
    for host in hosts:
        found = narrowed(kind, host, port, only_v6, ALONE)
        if found is not None and (kind == TCP or port):
            assert is_loopback(found)


def what_happens(code: bytes, architecture: int, call: int) -> int:
    """Run a filter as the kernel does."""
    lines = list(struct.iter_unpack("=HBBI", code))
    loaded, at = 0, 0
    while True:
        what, then, otherwise, value = lines[at]
        at += 1
        if what == 0x20:
            loaded = {0: call, 4: architecture}[value]
        elif what == 0x06:
            return value
        else:
            at += then if (loaded == value if what == 0x15 else loaded >= value) else otherwise


@pytest.mark.parametrize("name", MACHINES)
def test_the_filter_asks_about_bind_and_listen_and_leaves_no_way_around(name: str):
    machine = MACHINES[name]
    code = filter_for(machine)
    for call in (machine.bind, machine.listen):
        assert what_happens(code, machine.audit, call) == ASK
    assert what_happens(code, machine.audit, IO_URING_SETUP) == ERRNO | errno.EPERM
    for call in (0, 1, 42, machine.bind - 1, machine.listen + 1, 500):
        assert what_happens(code, machine.audit, call) == ALLOW
    assert what_happens(code, machine.audit, 0x40000000 | machine.bind) == ERRNO | errno.ENOSYS
    for other in (0x40000003, *(one.audit for one in MACHINES.values() if one != machine)):
        assert what_happens(code, other, machine.bind) == KILL_PROCESS

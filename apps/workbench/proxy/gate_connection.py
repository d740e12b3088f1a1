"""A connection to the program of a session: to the gate of its task, which has proven that it knows the key."""

from __future__ import annotations

import asyncio
import errno
import socket

from yardmaster.engines.base import Address
from yardmaster_runner import gate_protocol

CONNECT = 3.0
"""Seconds until the task's port accepts."""
_OWN_TROUBLE = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL)


class NoMoreConnections(Exception):
    """This process can open none, which says nothing about the session."""


class Unreachable(Exception):
    """Nothing listens there, or not the gate of this session. The message is for the portal's log."""


async def through_gate(address: Address, key: str) -> socket.socket:
    """A socket on which the program is spoken to. Nothing of a user was sent on it yet.

    Raises:
        Unreachable: see there.
        NoMoreConnections: see there.
    """
    try:
        async with asyncio.timeout(CONNECT):
            sock = await _connected(address)
    except OSError as error:  # a timeout is one
        if error.errno in _OWN_TROUBLE:
            raise NoMoreConnections(str(error)) from error
        raise Unreachable(f"{address}: {error or 'no answer'}") from error
    try:
        async with asyncio.timeout(gate_protocol.SECONDS):
            await _prove(sock, key)
    except OSError as error:
        sock.close()
        raise Unreachable(f"{address}: {error or 'no proof in time'}") from error
    except BaseException:
        sock.close()
        raise
    return sock


async def streams_through_gate(
    address: Address, key: str, limit: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """The same, as streams. `limit`: bytes that are read ahead."""
    sock = await through_gate(address, key)
    try:
        return await asyncio.open_connection(sock=sock, limit=limit)
    except BaseException:
        sock.close()
        raise


async def _connected(address: Address) -> socket.socket:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    family, kind, protocol, _, place = found[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await loop.sock_connect(sock, place)
    except BaseException:
        sock.close()
        raise
    return sock


async def _prove(sock: socket.socket, key: str) -> None:
    loop = asyncio.get_running_loop()
    nonce = gate_protocol.new_nonce()
    await loop.sock_sendall(sock, gate_protocol.greeting(nonce))
    line = b""
    while not line.endswith(b"\n"):
        more = await loop.sock_recv(sock, gate_protocol.LONGEST_LINE - len(line))
        if not more:
            raise ConnectionError("the other side has closed the connection before its proof, or says something else")
        line += more
    place = gate_protocol.place_of(sock.getpeername())
    proof = gate_protocol.proof_of_portal(key, place, nonce, line)
    if proof is None:
        raise ConnectionError("the other side is not the session's gate at this address")
    await loop.sock_sendall(sock, proof)

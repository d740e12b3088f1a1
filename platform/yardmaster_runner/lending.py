"""Lending an open connection to another process of the same user, over a unix socket.

The gate lends those that have proved themselves to programs that take them: their bytes then take no way through it.
Each is lent on a connection of its own to the place beside the program's socket; the program closes that one when it
has done with what was lent, and its end closes it, too.
"""

from __future__ import annotations

import array
import socket

PATIENCE = 5.0
_INT = array.array("i").itemsize


def place(socket_path: str) -> str:
    """Where a program listens that takes connections, and has its socket at this path."""
    return socket_path + "c"


def lend(program: socket.socket, connection: socket.socket) -> None:
    """`program`: a new connection to the place. Raises `OSError`."""
    program.sendmsg([b"\n"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [connection.fileno()]))])


class Lent(socket.socket):
    """A connection that was lent on `lender`, which is closed with it. Raises `OSError` where none was."""

    def __init__(self, lender: socket.socket) -> None:
        lender.settimeout(PATIENCE)
        found = array.array("i")
        for level, kind, data in lender.recvmsg(1, socket.CMSG_SPACE(_INT))[1]:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                found.frombytes(data[:_INT])
        if not found:
            raise OSError("nothing was lent")
        super().__init__(fileno=found[0])
        self._lender = lender

    def close(self) -> None:
        super().close()
        self._lender.close()

"""Whether a Spark master answers at an address, told by Spark's own protocol, within a bounded time.

It is asked for a file that it does not have. A Spark process says that it has none; every other server answers
something else, or nothing. It needs no secret for that, and writes nothing to its log.
"""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass
from typing import List, Sequence, Tuple

PREFIX = "spark://"
USUAL_PORT = 7077
STEP = 5.0
"""Seconds for each step of one look."""
_FRAME = struct.Struct(">q")
_LENGTH = struct.Struct(">i")
_ASKS, _NONE = 6, 8
"""The types of a request for a stream, and of the answer that there is none of this name."""
_FILE = b"/files/yardmaster-looks"
_MOST = 1 << 16


@dataclass(frozen=True)
class Look:
    """What was found at one address: empty `problem` where a Spark master answers."""

    address: str
    problem: str = ""
    is_other: bool = False
    """Something other than Spark answers there: waiting does not help."""


def addresses_in(master: str) -> List[Tuple[str, int]]:
    """The hosts and ports of `spark://HOST:PORT[,HOST:PORT]`."""
    found = []
    for one in master[len(PREFIX) :].split(","):
        host, _, port = one.rpartition(":")
        found.append((host.strip("[]"), int(port)))
    return found


def look_at(host: str, port: int, patience: float = STEP) -> Look:
    """One look at one master. Never raises for what the network does."""
    address = "%s:%d" % (host, port)
    try:
        with socket.create_connection((host, port), timeout=patience) as connection:
            until = time.monotonic() + patience
            body = bytes([_ASKS]) + _LENGTH.pack(len(_FILE)) + _FILE
            connection.sendall(_FRAME.pack(_FRAME.size + len(body)) + body)
            try:
                head = _read(connection, _FRAME.size + 1, until)
                if _is_spark(head):  # the whole answer: a connection that is cut off is a warning in the master's log
                    _read(connection, _FRAME.unpack(head[:-1])[0] - len(head), until)
            except socket.timeout:
                return Look(address, "it accepts connections, but does not answer like Spark", True)
            except OSError:
                head = b""
    except socket.gaierror as error:
        return Look(address, "the name %s is not known (%s)" % (host, error.strerror))
    except socket.timeout:
        return Look(
            address, "no answer within %d s: the machine is off, or a firewall blocks the connection" % patience
        )
    except OSError as error:
        return Look(address, error.strerror or str(error))
    return Look(address) if _is_spark(head) else Look(address, "the server that answers is not a Spark master", True)


def look_at_all(master: str, patience: float = STEP) -> List[Look]:
    """Of each address, until one answers as Spark does."""
    found = []
    for host, port in addresses_in(master):
        found.append(look_at(host, port, patience))
        if not found[-1].problem:
            break
    return found


def in_words(looks: Sequence[Look]) -> str:
    """Why no master answers: `10.0.0.5:7077: Connection refused`."""
    return "; ".join("%s: %s" % (one.address, one.problem) for one in looks if one.problem)


def _read(connection: socket.socket, count: int, until: float) -> bytes:
    """So many bytes, or fewer where the other side ends. Raises `socket.timeout`."""
    found = b""
    while len(found) < count:
        left = until - time.monotonic()
        if left <= 0:
            raise socket.timeout
        connection.settimeout(left)
        piece = connection.recv(count - len(found))
        if not piece:
            break
        found += piece
    return found


def _is_spark(head: bytes) -> bool:
    if len(head) != _FRAME.size + 1:
        return False
    size, kind = _FRAME.unpack(head[:-1])[0], head[-1]
    return kind == _NONE and _FRAME.size < size < _MOST

"""One connection to one node of Ignite: the handshake, requests and their answers, each in one piece.

Not safe to use from several threads. Not here: which node, and what to do when a connection is lost (`cluster`).
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import time
from dataclasses import dataclass
from typing import Callable, Optional, Tuple

from yardmaster_runner.data.ignite_reader import wire
from yardmaster_runner.data.ignite_reader.access import Access, Address
from yardmaster_runner.data.ignite_reader.buffers import Buffers
from yardmaster_runner.data.ignite_reader.errors import (
    ConnectionLost,
    IgniteCertificateError,
    IgniteDataError,
    IgniteSignInError,
    ServerRefusal,
)

VERSION = (1, 7, 0)
OLDEST = (1, 4, 0)
"""The first one whose answers say that the topology has changed."""
HEADER = struct.Struct("<iqh")
LONG, TOO_LONG = 16 << 10, 8 << 20
"""Bytes of answers behind which the next one is asked for early. Of longer ones the server would hold two at a time,
each several times over while it makes it, for every connection: that is what its memory may not have."""
BEGIN = 24
"""Bytes of a long answer that are looked at first."""
CONNECT_TIMEOUT = 10.0
Topology = Tuple[int, int]


@dataclass(frozen=True)
class Answer:
    """What the server says: the bytes after the header, in memory that stays as it is while they are looked at."""

    body: memoryview

    def reader(self) -> wire.Reader:
        return wire.Reader(self.body)


class Connection:
    """Raises `ConnectionLost` where the server cannot be reached, and `IgniteDataError` where it refuses us.

    `has_worked`: the cluster has let this script in before, so a server that only closes the connection does not refuse
    its certificate, but is starting or failing."""

    def __init__(self, address: Address, access: Access, *, has_worked: bool = False) -> None:
        self.address = address
        self.node = b""
        """The id of the node at the other end."""
        self.topology: Optional[Topology] = None
        """The newest version that the server has told of; None: no change was told of yet."""
        self.features = 0
        self._timeout = access.timeout
        self._largest = access.largest
        self._number = 0
        self._buffers = Buffers()
        self._head = bytearray(HEADER.size)
        self._is_plain = access.tls is None
        self._has_worked = has_worked
        self._socket = self._connected(access)
        try:
            self._sign_in(access)
        except BaseException:
            self.close()
            raise
        self._has_worked = True

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()

    def ask(self, operation: int, body: bytes = b"") -> Answer:
        """The answer to one request. Raises `ServerRefusal`, `ConnectionLost`."""
        return self.receive(self.send(operation, body))

    def send(self, operation: int, body: bytes = b"") -> int:
        """Send a request; its number is what `receive` takes."""
        self._number += 1
        head = struct.pack("<ihq", len(body) + 10, operation, self._number)
        try:
            self._socket.sendall(head + body)
        except OSError as error:
            raise ConnectionLost(self._words(error)) from error
        return self._number

    def receive(self, number: int, at_begin: Optional[Callable[[memoryview], None]] = None) -> Answer:
        """The answer to the request of this number; others that come before it are passed over. `at_begin` gets the
        first bytes of an answer in pieces while the others are on their way: the server has made all of it by then, so
        it can make the next one."""
        while True:
            self._fill(memoryview(self._head))
            length, of, flags = HEADER.unpack(self._head)
            body = self._space(length - HEADER.size + 4)
            is_wanted = of == number and not flags & wire.FLAG_NOTIFICATION
            if at_begin is not None and is_wanted and not flags & wire.FLAG_ERROR and LONG <= len(body) < TOO_LONG:
                self._fill(body[:BEGIN])
                at_begin(body[12 if flags & wire.FLAG_TOPOLOGY_CHANGED else 0 : BEGIN])
                self._fill(body[BEGIN:])
            else:
                self._fill(body)
            if is_wanted:
                return self._judged(flags, body)

    def receive_any(self) -> Tuple[int, Answer]:
        """The next answer, and the number of its request. Of requests that wait at the same time a server may answer
        the later one first. Raises as `ask`."""
        while True:
            self._fill(memoryview(self._head))
            length, of, flags = HEADER.unpack(self._head)
            body = self._space(length - HEADER.size + 4)
            self._fill(body)
            if not flags & wire.FLAG_NOTIFICATION:
                return of, self._judged(flags, body)

    def _judged(self, flags: int, body: memoryview) -> Answer:
        at = 0
        if flags & wire.FLAG_TOPOLOGY_CHANGED:
            self.topology = struct.unpack_from("<qi", body)
            at = 12
        if flags & wire.FLAG_ERROR:
            found = wire.Reader(body, at)
            raise ServerRefusal(found.int32(), found.text() or "no reason was given")
        return Answer(body[at:])

    def _space(self, length: int) -> memoryview:
        if not 0 <= length <= self._largest:
            raise ConnectionLost("%s sent something that is no answer of Ignite" % self._where())
        return self._buffers.space(length)

    def _fill(self, target: memoryview) -> None:
        """Receive so many bytes. In one call to the kernel where it can be: each return takes Python's lock."""
        done, most = 0, len(target)
        until = time.monotonic() + self._timeout
        try:
            while done < most:
                if self._is_plain:
                    count = self._socket.recv_into(target[done:], most - done, socket.MSG_WAITALL)
                else:
                    count = self._socket.recv_into(target[done:], most - done)
                if not count:
                    raise ConnectionLost("%s has closed the connection" % self._where())
                done += count
                until = time.monotonic() + self._timeout
        except (BlockingIOError, socket.timeout) as error:
            if time.monotonic() >= until - 1.0:
                message = "%s sent nothing for %d seconds"
                raise ConnectionLost(message % (self._where(), self._timeout)) from error
            raise ConnectionLost(self._words(error)) from error
        except ssl.SSLError as error:
            raise self._tls_error(error) from error
        except OSError as error:
            raise ConnectionLost(self._words(error)) from error

    def _connected(self, access: Access) -> socket.socket:
        made = None
        try:
            made = access.dial(self.address, min(CONNECT_TIMEOUT, access.timeout))
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if access.tls is not None:
                made = access.tls.wrap_socket(made, server_hostname=self.address[0])
                made.settimeout(access.timeout)
            else:
                # A blocking socket with a limit of the kernel's own: only so a whole page is one call.
                made.settimeout(None)
                limit = struct.pack("ll", int(access.timeout), int(access.timeout % 1 * 1e6))
                made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
                made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
            return made
        except ssl.SSLError as error:
            _closed(made)
            raise self._tls_error(error) from error
        except OSError as error:
            _closed(made)
            raise ConnectionLost(self._words(error)) from error

    def _sign_in(self, access: Access) -> None:
        version = VERSION
        while True:
            answer = self._handshake(version, access)
            if answer.int8() == 1:
                break
            offered = (answer.int16(), answer.int16(), answer.int16())
            message = answer.text() or ""
            status = answer.int32() if answer.at + 4 <= len(answer.data) else 0
            if OLDEST <= offered < version and status != wire.STATUS_SIGN_IN_FAILED:
                version = offered
                self.close()
                self._socket = self._connected(access)
                continue
            raise self._refused(status, message, access)
        self.features = int.from_bytes(answer.byte_array(), "little") if version >= (1, 7, 0) else 0
        if answer.int8() == wire.UUID:
            self.node = answer.raw(16)

    def _handshake(self, version: Tuple[int, int, int], access: Access) -> wire.Reader:
        said = struct.pack("<bhhhb", 1, *version, 2)
        if version >= (1, 7, 0):
            said += wire.byte_array(bytes([access.features]))
        if access.username is not None:
            said += wire.text_bytes(access.username) + wire.text_bytes(access.password or "")
        try:
            self._socket.sendall(struct.pack("<i", len(said)) + said)
        except ssl.SSLError as error:
            raise self._tls_error(error) from error
        except OSError as error:
            raise ConnectionLost(self._words(error)) from error
        head = memoryview(bytearray(4))
        try:
            self._fill(head)
        except ConnectionLost as error:
            raise self._unanswered(error) from error
        length = struct.unpack("<i", head)[0]
        if not 0 < length < 1 << 20:
            message = "%s is not a thin client port of Ignite, or it requires TLS: give certfile, or another port."
            raise IgniteCertificateError(message % self._where())
        body = self._space(length)
        self._fill(body)
        return wire.Reader(bytes(body))

    def _unanswered(self, error: ConnectionLost) -> Exception:
        """A server that requires TLS closes a connection without; with TLS 1.3 a certificate is refused only now."""
        if self._has_worked or not str(error).endswith("has closed the connection"):
            return error
        message = "%s closed the connection before it sent anything. "
        if self._is_plain:
            message += "If it requires TLS, give certfile. If it listens on another port, give port."
        else:
            message += "It may have refused the certificate in certfile. Check that it is valid, and of a CA that the "
            message += "server trusts."
        return IgniteCertificateError(message % self._where())

    def _refused(self, status: int, message: str, access: Access) -> Exception:
        if status == wire.STATUS_SIGN_IN_FAILED or "authenticat" in message.lower():
            who = "without a user" if access.username is None else "as the user %r" % access.username
            words = "%s refuses the sign-in of this script %s: %s. Give username and password of a user that may read."
            return IgniteSignInError(words % (self._where(), who, message.rstrip(".")))
        said = "%s refuses the connection: %s" % (self._where(), message)
        return ConnectionLost(said) if self._has_worked else IgniteDataError(said)

    def _tls_error(self, error: ssl.SSLError) -> Exception:
        if self._has_worked and not isinstance(error, ssl.SSLCertVerificationError):
            return ConnectionLost(self._words(error))
        return _certificate_error(self._where(), error)

    def _where(self) -> str:
        return "Ignite at %s:%d" % self.address

    def _words(self, error: Exception) -> str:
        return "%s: %s" % (self._where(), error)


def _closed(made: Optional[socket.socket]) -> None:
    if made is not None:
        made.close()


def _certificate_error(where: str, error: ssl.SSLError) -> Exception:
    """In words: whose certificate it is, and what helps."""
    reason = (error.reason or str(error)).lower().replace("_", " ")
    if isinstance(error, ssl.SSLCertVerificationError):
        said = (
            "the certificate of %s is not accepted: %s. Give the CA that signed it, in certfile after the script's own."
        )
        return IgniteCertificateError(said % (where, error.verify_message))
    if "alert" in reason:
        said = "%s does not accept the certificate in certfile (%s): give one that has not expired, of a CA it trusts."
        return IgniteCertificateError(said % (where, reason))
    if "wrong version number" in reason or "unexpected eof" in reason:
        said = "%s does not speak TLS, or has ended it (%s): leave out certfile, or give the port that does."
        return IgniteCertificateError(said % (where, reason))
    return ConnectionLost("%s: %s" % (where, error))

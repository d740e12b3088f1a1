"""Keeps everything that a task listens on to this machine: the kernel asks here before any process of the script binds
a socket or listens on one, and what is allowed is done here, on a copy of the socket that belongs to us.

The script cannot change its mind meanwhile: what is decided about is what is done. A filter is inherited by all that
the script starts and cannot be taken off. When the runner is gone the kernel refuses such calls; the script is killed
then.

What is allowed: TensorFlow's servers bind the wildcard address, whatever address they are given, and ask for no
password. So a wildcard becomes the loopback address of the same port, and an address by which other machines reach this
one is refused. A job on several machines has one such address (`Listening`): it may be bound by name, and it is what a
wildcard with the port of the task's own server becomes. In a Spark job libraries start servers for the other tasks on
ports that nothing knows before: there it is every port (`every_port`).

Not here: the kernel's interface (`seccomp`).
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import struct
import threading
import traceback
from dataclasses import dataclass
from typing import Callable, Optional, Tuple

from yardmaster_runner import seccomp
from yardmaster_runner.exits import note
from yardmaster_runner.seccomp import Asked

LOCAL_FAMILIES = (1, 16, 38)
"""AF_UNIX, AF_NETLINK, AF_ALG: they lead to no other machine, so every address of theirs is allowed."""
INTERNET = (2, 10)
"""AF_INET, AF_INET6: decided here. Every other family (VSOCK, TIPC, SMC and so on) is refused."""
PROTOCOLS = (1, 6, 17, 58, 136, 256, 262)
"""ICMP, TCP, UDP, ICMPv6, UDP-Lite, SMC, MPTCP. SCTP is refused: it binds through socket options, too."""

LOOPBACK4 = bytes([127, 0, 0, 1])
LOOPBACK6 = bytes(15) + b"\1"
MAPPED = bytes(10) + b"\xff\xff"
"""IPv4 addresses as IPv6 sockets write them."""


def is_loopback(host: bytes) -> bool:
    """Whether a packed address, of 4 or 16 bytes, is one that only this machine reaches."""
    if len(host) == 16:
        return host == LOOPBACK6 or (host.startswith(MAPPED) and is_loopback(host[12:]))
    return host[:1] == b"\x7f"


@dataclass(frozen=True)
class Listening:
    """Where a task may listen. `say` tells its log of what was refused. `address` is the packed IPv4 address by which
    the job's other machines reach it, empty where there are none; `port` that of its own server. With `every_port` a
    wildcard is that address on all other ports, too."""

    say: Callable[[str], None]
    address: bytes = b""
    port: int = 0
    every_port: bool = False

    def allows(self, host: bytes) -> bool:
        """Whether something may listen on this packed address."""
        plain = host[12:] if host.startswith(MAPPED) else host
        return is_loopback(host) or (bool(self.address) and plain == self.address)


def narrowed(kind: int, host: bytes, port: int, only_v6: bool, where: Listening) -> Optional[bytes]:
    """The packed address to bind in place of `host`, often itself; None where the task may not bind it. `kind` is a
    socket's type. An IPv6 socket that speaks IPv4, too, gets IPv4's address: so tasks know each other."""
    if len(host) == 16 and host.startswith(MAPPED):
        inner = narrowed(kind, host[12:], port, False, where)
        return None if inner is None else MAPPED + inner
    if where.allows(host):
        return host
    if any(host):
        return None
    if kind != socket.SOCK_STREAM and port == 0:
        return host  # a client that wants any port to ask from, such as one that resolves names
    if where.address and (where.every_port or port == where.port) and not only_v6:
        return where.address if len(host) == 4 else MAPPED + where.address
    if len(host) == 4:
        return LOOPBACK4
    return LOOPBACK6 if only_v6 else MAPPED + LOOPBACK4


SO_PROTOCOL, SO_DOMAIN = 38, 39
LONGEST_ADDRESS = 128
MOST_BACKLOG = 4096
MOST_SAID = 10
UNIX = struct.pack("=H", socket.AF_UNIX)


class Narrower(threading.Thread):
    """Answers until the last process of the script has ended."""

    def __init__(self, channel: socket.socket, where: Listening) -> None:
        super().__init__(name="narrower", daemon=True)
        self._channel = channel
        self._where = where
        self._said = 0
        self._machine = seccomp.this_machine()
        self._has_own_place = False
        self._umask = os.umask(0o77)
        os.umask(self._umask)

    def run(self) -> None:
        listener = self._receive_listener()
        if listener is None:
            return
        self._has_own_place = seccomp.take_own_place()
        try:
            while self._answer_next(listener):
                pass
        except Exception:  # noqa: BLE001 - whatever it was, the descriptor is closed, and so nothing waits for us
            note("answering for the script's sockets failed:\n" + traceback.format_exc())
        finally:
            os.close(listener)

    def _receive_listener(self) -> Optional[int]:
        """From the guard; None where it ended before it had one."""
        with self._channel as channel, contextlib.suppress(OSError):
            _, parts, _, _ = channel.recvmsg(1, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC)
            for _, _, data in parts:
                return int(struct.unpack("i", data[:4])[0])
        return None

    def _answer_next(self, listener: int) -> bool:
        """One call; False when none is left to make."""
        waiting = select.poll()
        waiting.register(listener, select.POLLIN)
        if not any(event & select.POLLIN for _, event in waiting.poll()):
            return False
        asked = seccomp.receive(listener)
        if asked is None:
            return True
        try:
            self._perform(listener, asked)
        except OSError as error:
            # That we may not look at a process is its doing: it is refused, as is what we do not understand.
            known = error.errno not in (None, errno.EPERM, errno.ESRCH, errno.EMFILE, errno.ENFILE)
            seccomp.answer(listener, asked, error=error.errno or errno.EACCES if known else errno.EACCES)
        else:
            seccomp.answer(listener, asked)
        return True

    def _perform(self, listener: int, asked: Asked) -> None:
        """Do what is asked as far as it is allowed. Raises `OSError` as the script shall see it."""
        copy = socket.socket(0, 0, 0, fileno=seccomp.copy_of(asked, _signed(asked.arguments[0])))
        with copy:
            family, kind = _option(copy, SO_DOMAIN), _option(copy, socket.SO_TYPE)
            is_bind = asked.call == self._machine.bind
            is_local = family in LOCAL_FAMILIES
            address = _address(asked) if is_bind and (is_local or family in INTERNET) else b""
            if is_bind and is_local:
                self._stand_where(asked, address)
            if not seccomp.is_waiting(listener, asked):
                return
            if is_local:
                # What is asked may lead elsewhere by now: the descriptor may be another socket's. The copy is not.
                if is_bind:
                    seccomp.bind(copy.fileno(), address)
                else:
                    copy.listen(_backlog(asked))
                return
            if family not in INTERNET or (kind != socket.SOCK_RAW and _option(copy, SO_PROTOCOL) not in PROTOCOLS):
                raise self._refused("a socket of family %d and protocol %d" % (family, _option(copy, SO_PROTOCOL)))
            with socket.socket(family, kind, 0, fileno=copy.detach()) as one:
                if is_bind:
                    self._bind(one, address)
                else:
                    self._listen(one, _backlog(asked))

    def _stand_where(self, asked: Asked, address: bytes) -> None:
        """Have the thread's folder and umask, where it names a file. Raises `OSError`."""
        path = address[2:]
        if address[:2] != UNIX or path[:1] in (b"", b"\0"):
            return
        umask = seccomp.umask_of(asked)
        if self._has_own_place:
            os.chdir("/proc/%d/cwd" % asked.thread)
            os.umask(umask)
        elif not path.startswith(b"/") or umask != self._umask:
            raise self._refused("a local socket by a relative path, or with a umask of its own,")

    def _bind(self, one: socket.socket, address: bytes) -> None:
        host, port, rest = _read(one.family, address)
        chosen = narrowed(one.type, host, port, _is_only_v6(one), self._where)
        if chosen is None:
            raise self._refused("%s:%d" % (socket.inet_ntop(one.family, host), port))
        try:
            one.bind((socket.inet_ntop(one.family, chosen), port, *rest))
        except OSError as error:
            # Before Linux 5.19 a signal may break the wait off, and the same is asked again when it is done.
            name = one.getsockname()
            is_done = name[1] and socket.inet_pton(one.family, name[0]) == chosen and port in (0, name[1])
            if error.errno != errno.EINVAL or not is_done:
                raise

    def _listen(self, one: socket.socket, backlog: int) -> None:
        if one.type != socket.SOCK_STREAM:
            raise OSError(errno.EOPNOTSUPP, "nothing to listen on")
        host, port = _name(one)
        if not any(host):  # the kernel would choose a port of the wildcard address
            chosen = narrowed(one.type, host, port, _is_only_v6(one), self._where) or host
            one.bind((socket.inet_ntop(one.family, chosen), port))
        elif not self._where.allows(host):
            raise self._refused("%s:%d" % (socket.inet_ntop(one.family, host), port))
        one.listen(backlog)
        host, port = _name(one)
        if not self._where.allows(host):  # another thread has changed the socket since we looked
            one.shutdown(socket.SHUT_RDWR)
            raise self._refused("%s:%d" % (socket.inet_ntop(one.family, host), port))

    def _refused(self, what: str) -> OSError:
        self._said += 1
        if self._said <= MOST_SAID:
            whom = "the job's machines" if self._where.address else "their own machine"
            self._where.say("listening on %s was refused: tasks can be reached from %s alone" % (what, whom))
        return OSError(errno.EACCES, what)


def _backlog(asked: Asked) -> int:
    backlog = _signed(asked.arguments[1])
    return MOST_BACKLOG if backlog < 0 else min(backlog, MOST_BACKLOG)


def _address(asked: Asked) -> bytes:
    length = _signed(asked.arguments[2])
    if not 0 < length <= LONGEST_ADDRESS:
        raise OSError(errno.EINVAL, "no length of an address")
    return seccomp.memory_of(asked, asked.arguments[1], length)


def _read(family: int, address: bytes) -> Tuple[bytes, int, Tuple[int, ...]]:
    """Host, port, and what more an IPv6 address has. Refuses as the kernel does what is no address of the family."""
    least = 16 if family == socket.AF_INET else 24
    if len(address) < least:
        raise OSError(errno.EINVAL, "too short for an address")
    named, port = struct.unpack("=H", address[:2])[0], struct.unpack(">H", address[2:4])[0]
    host = address[4:8] if family == socket.AF_INET else address[8:24]
    # The kernel takes an IPv4 wildcard without a family, as old programs write it.
    if named != family and not (family == socket.AF_INET and named == 0 and not any(host)):
        raise OSError(errno.EAFNOSUPPORT, "an address of another family")
    if family == socket.AF_INET:
        return host, port, ()
    scope = struct.unpack("=I", address[24:28])[0] if len(address) >= 28 else 0
    return host, port, (struct.unpack(">I", address[4:8])[0] & 0xFFFFF, scope)


def _name(one: socket.socket) -> Tuple[bytes, int]:
    name = one.getsockname()
    return socket.inet_pton(one.family, name[0].partition("%")[0]), name[1]


def _is_only_v6(one: socket.socket) -> bool:
    return one.family == socket.AF_INET6 and bool(one.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY))


def _option(one: socket.socket, name: int) -> int:
    return one.getsockopt(socket.SOL_SOCKET, name)


def _signed(value: int) -> int:
    """A C int out of a register."""
    return int(struct.unpack("=i", struct.pack("=I", value & 0xFFFFFFFF))[0])

"""The gate of a service's task: it listens where the portal connects, has each connection prove that it is the portal's
(`gate_protocol`), and lends it to a program that takes connections (`lending`). To another one, which listens on a
unix socket, it passes bytes.

One event loop in one thread serves all connections. A connection holds no buffer while nothing comes, and one piece per
direction while its reader is slower than its writer. An end of one direction is passed on; the other one stays open.

Others may reach the port, so what has not proved itself is bounded in bytes, time and number: of too many, the one that
has waited longest is closed. The portal proves itself within milliseconds, so it is not among them. Whatever fails, the
gate listens on, and neither the runner nor the program is disturbed. Not here: what the bytes mean.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import shutil
import socket
import tempfile
import threading
import traceback
from typing import Dict, Set, Tuple

from yardmaster_runner import lending
from yardmaster_runner.exits import note
from yardmaster_runner.gate_protocol import LONGEST_LINE, PROOF, SECONDS, answer, new_nonce, nonce_in, place_of, proves

VARIABLE = "YARDMASTER_SERVICE_SOCKET"
"""Where the program is to listen."""
PIECE = 128 << 10
"""Bytes that are passed on at once: more are not read before these are written."""
MOST_UNPROVEN = 64
MOST_CONNECTIONS = 1024
SPARE_FILES = 256
"""Open files that connections leave to the rest of the runner."""
BACKLOG = 256
TIME_TO_CONNECT = 5.0
"""Seconds in which a busy program has to take a connection."""
LINGER = 2.0
"""Seconds in which the portal may still send what the program no longer reads, so that it reads the answer first."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
LONGEST_PATH = 100
"""Of a socket in the file system (Linux: 108, macOS: 104)."""


def bound(address: str) -> Tuple[str, int]:
    """Where to listen: on the address itself where it is one; by a name, only that of a pod's own network is reached,
    so on every address there."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    return (host if host in LOOPBACK or _is_ipv4(host) else "0.0.0.0", int(port))


def _is_ipv4(host: str) -> bool:
    with contextlib.suppress(OSError):
        return socket.inet_ntoa(socket.inet_aton(host)) == host
    return False


class Gate:
    """Listens from its making until `close`. Raises `OSError` where it cannot. `socket_path` is the program's."""

    def __init__(self, address: str, key: str, work_dir: str) -> None:
        self.key = key
        self._folder, self.socket_path = "", ""
        self._listener = _listening(bound(address))
        self.port = int(self._listener.getsockname()[1])
        try:
            self._folder = _fresh_folder(work_dir)
        except OSError:
            self._listener.close()
            raise
        self.socket_path = os.path.join(self._folder, "s")
        self._most = _most_connections()
        self._unproven: "Dict[asyncio.Task[None], None]" = {}
        self._proven: "Set[asyncio.Task[None]]" = set()
        self._said = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="gate", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close every connection, listen no more, remove the folder of the program's socket."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(TIME_TO_CONNECT)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self) -> None:
        accepting = self._loop.create_task(self._accept())
        try:
            self._loop.run_forever()
        finally:
            self._listener.close()
            ending = [accepting, *self._unproven, *self._proven]
            for one in ending:
                one.cancel()
            self._loop.run_until_complete(asyncio.gather(*ending, return_exceptions=True))
            self._loop.close()

    async def _accept(self) -> None:
        while True:
            try:
                connection, _ = await self._loop.sock_accept(self._listener)
            except OSError as error:  # such as too many open files
                self._say("the gate could not take a connection: %s" % error)
                await asyncio.sleep(0.1)
                continue
            while len(self._unproven) >= MOST_UNPROVEN:
                oldest = next(iter(self._unproven))
                del self._unproven[oldest]
                oldest.cancel()
            task = self._loop.create_task(self._serve(connection))
            self._unproven[task] = None
            task.add_done_callback(self._forget)
            await asyncio.sleep(0)  # it begins before the next one is taken

    def _forget(self, task: "asyncio.Task[None]") -> None:
        self._unproven.pop(task, None)
        self._proven.discard(task)

    async def _serve(self, portal: socket.socket) -> None:
        """One connection from its begin to its end."""
        with portal:
            try:
                if not await asyncio.wait_for(self._proof(portal), SECONDS) or not self._admit():
                    return
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as program:
                    takes = await asyncio.wait_for(self._connect(program), TIME_TO_CONNECT)
                    await (self._lend(portal, program) if takes else self._pass_both_ways(portal, program))
            except (OSError, asyncio.TimeoutError):
                return  # cut off, too slow, or the program does not listen (yet)
            except Exception:  # noqa: BLE001 - one connection must not end the gate
                self._say("a connection failed at the gate:\n" + traceback.format_exc())

    def _admit(self) -> bool:
        """The connection of the current task is the portal's. False: there are too many of them."""
        task = asyncio.current_task()
        if task not in self._unproven:
            return False  # it was closed for a newer one meanwhile
        if len(self._proven) >= self._most:
            self._say("the gate has %d connections, and takes no more" % self._most)
            return False
        del self._unproven[task]
        self._proven.add(task)
        return True

    async def _proof(self, portal: socket.socket) -> bool:
        """Whether it is the portal's. What comes behind its proof is not read."""
        _prepare(portal)
        place = place_of(portal.getsockname())
        portal_nonce, gate_nonce = nonce_in(await self._line(portal, LONGEST_LINE)), new_nonce()
        if portal_nonce is None:
            return False
        await self._loop.sock_sendall(portal, answer(self.key, place, portal_nonce, gate_nonce))
        if proves(self.key, place, portal_nonce, gate_nonce, await self._line(portal, PROOF)):
            return True
        with contextlib.suppress(BlockingIOError):
            portal.recv(LONGEST_LINE)  # what was left unread would make its end a reset
        return False

    async def _line(self, portal: socket.socket, longest: int) -> bytes:
        """The next line. What is longer is none."""
        line = b""
        while b"\n" not in line and len(line) < longest:
            piece = await self._loop.sock_recv(portal, longest - len(line))
            if not piece:
                return b""
            line += piece
        return line

    async def _connect(self, program: socket.socket) -> bool:
        """Whether the program takes connections. Not `loop.sock_connect`: a unix socket whose backlog is full says that
        it would block, and never becomes connected by waiting."""
        program.setblocking(False)
        takes = True
        while True:
            try:
                program.connect(lending.place(self.socket_path) if takes else self.socket_path)
                return takes
            except FileNotFoundError:
                if not takes:
                    raise
                takes = False
            except BlockingIOError:
                await asyncio.sleep(0.01)

    async def _lend(self, portal: socket.socket, program: socket.socket) -> None:
        """Until the program has done with it. It may have left something unread: a connection that was closed then
        would take its answer with it."""
        lending.lend(program, portal)
        try:
            await self._loop.sock_recv(program, 1)
        except asyncio.CancelledError:
            portal.shutdown(socket.SHUT_RDWR)
            raise
        portal.shutdown(socket.SHUT_WR)
        portal.setblocking(False)  # both processes have the same connection, and so its mode
        await asyncio.wait_for(self._discard(portal), LINGER)

    async def _pass_both_ways(self, portal: socket.socket, program: socket.socket) -> None:
        """Until both directions have ended, or the portal's connection breaks."""
        ways = [
            self._loop.create_task(self._to_program(portal, program)),
            self._loop.create_task(self._to_portal(program, portal)),
        ]
        try:
            await asyncio.gather(*ways)
        finally:
            for one in ways:
                one.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _to_program(self, portal: socket.socket, program: socket.socket) -> None:
        data = await self._loop.sock_recv(portal, PIECE)
        while data:
            try:
                await self._loop.sock_sendall(program, data)
            except OSError:  # the program reads no more, but what it has answered is to arrive
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._discard(portal), LINGER)
                return
            await asyncio.sleep(0)  # to the others, where neither side ever waits
            data = await self._loop.sock_recv(portal, PIECE)
        with contextlib.suppress(OSError):
            program.shutdown(socket.SHUT_WR)

    async def _discard(self, portal: socket.socket) -> None:
        while await self._loop.sock_recv(portal, PIECE):
            await asyncio.sleep(0)

    async def _to_portal(self, program: socket.socket, portal: socket.socket) -> None:
        while True:
            try:
                data = await self._loop.sock_recv(program, PIECE)
            except ConnectionResetError:  # it has ended without reading all that was sent to it
                data = b""
            if not data:
                return portal.shutdown(socket.SHUT_WR)
            await self._loop.sock_sendall(portal, data)
            await asyncio.sleep(0)

    def _say(self, trouble: str) -> None:
        """Once, not for each connection."""
        if trouble != self._said:
            self._said = trouble
            note(trouble)


def _listening(address: Tuple[str, int]) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener


def _prepare(portal: socket.socket) -> None:
    """Small answers leave at once, and a portal that is gone without a word is noticed within some minutes."""
    portal.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    portal.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, name):
            portal.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _fresh_folder(work_dir: str) -> str:
    """A folder of the task's user alone, with a path that leaves space for a socket's name."""
    folder = os.path.join(work_dir, "service")
    if len(os.fsencode(folder)) + 2 > LONGEST_PATH:
        short = tempfile.gettempdir()
        return tempfile.mkdtemp(
            prefix="yardmaster-", dir=short if len(os.fsencode(short)) < LONGEST_PATH // 2 else "/tmp"
        )
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder, 0o700)
    return folder


def _most_connections() -> int:
    """Each takes two of the files that the runner may open."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(16, min(MOST_CONNECTIONS, (files - SPARE_FILES - MOST_UNPROVEN) // 2))

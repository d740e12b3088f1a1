"""One kept SSH connection to each machine, with its agent: made when it is first needed, and made again when it ends.

`Links.call` is for any thread. All connections live in one event loop, in a thread of its own, per process. A machine
that did not answer is not tried again for a while: until then every call fails at once, with what was wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import threading
import time
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import asyncssh

from yardmaster.engines.hosts import wire
from yardmaster.engines.hosts.bundle import bundle
from yardmaster.engines.hosts.inventory import Host
from yardmaster.engines.hosts.keys import HOST_KEY_CHANGED, HOST_KEY_UNKNOWN, Keys, fingerprint
from yardmaster.errors import Misconfigured, Unavailable, YardmasterError

_TIME_TO_CONNECT = 20.0
"""Seconds, in which a busy machine also compiles what was sent to it for the first time."""
_TIME_TO_ANSWER = 10.0
_SLOW = {"clean_up": 30.0, "submit": 30.0, "environment_install": 1800.0, "home_use": 30.0, "home_remove": 30.0}
"""Seconds that these may take: a busy machine ends processes, starts supervisors, installs packages, counts files."""
_ALIVE_EVERY, _ALIVE_MISSED = 5, 3
"""Seconds between questions whether the machine is there, and how many may have no answer."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 1.0, 15.0
_LATEST = 1 << 33
"""Of a clock, in seconds since 1970."""
_BOOTSTRAP = Path(__file__).with_name("bootstrap.py")


class Away(Unavailable):
    """A machine does not answer."""


K = TypeVar("K", bound=Hashable)
Call = tuple[Host, str, Mapping[str, Any]]
"""To which machine, which verb, with which arguments."""


@dataclass
class Link:
    """The connection to one machine, in the event loop."""

    host: Host
    ssh: asyncssh.SSHClientConnection | None = None
    process: asyncssh.SSHClientProcess[bytes] | None = None
    hello: Mapping[str, Any] | None = None
    offset: float = 0.0
    """Seconds that the machine's clock is ahead of ours."""
    failed_at: float = 0.0
    pause: float = 0.0
    error: YardmasterError | None = None


class Links:
    """`on_news(machine, message)` is called in the event loop with what agents say unasked; `on_link(machine)` when a
    machine was connected. Both must return at once."""

    def __init__(
        self,
        keys: Keys,
        on_news: Callable[[str, Mapping[str, Any]], None] = lambda machine, news: None,
        on_link: Callable[[str, Mapping[str, Any]], None] = lambda machine, hello: None,
    ) -> None:
        self._keys = keys
        self._on_news, self._on_link = on_news, on_link
        self._guard = threading.Lock()
        self._pid = 0
        self._begin()

    def _begin(self) -> None:
        self._links: dict[str, Link] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._waiting: dict[tuple[str, int], asyncio.Future[Any]] = {}
        self._readers: set[asyncio.Task[None]] = set()
        self._number = 0
        self._loop: asyncio.AbstractEventLoop | None = None

    # --- for threads -------------------------------------------------------------------------------------------------

    def call(self, host: Host, verb: str, **arguments: Any) -> Any:
        """What the agent answers. Raises `Away` where the machine does not, and what the agent raised."""
        found = self.call_all({host.name: (host, verb, arguments)})[host.name]
        if isinstance(found, YardmasterError):
            raise found
        return found

    def call_all(self, calls: Mapping[K, Call]) -> dict[K, Any]:
        """Several at once, also to one machine: the answer to each, or the error in its place."""
        if not calls:
            return {}
        return asyncio.run_coroutine_threadsafe(self._gather(calls), self._running_loop()).result()

    def is_connected(self, machine: str) -> bool:
        """Whether its agent answers now. An error that it answered is none of the connection's."""
        return self.link(machine) is not None

    def hello(self, host: Host) -> Mapping[str, Any]:
        """What the agent said of itself when it was connected."""
        found = asyncio.run_coroutine_threadsafe(self._linked(host), self._running_loop()).result()
        return found.hello or {}

    def send_files(self, host: Host, paths: Iterable[Path], folder: str) -> None:
        """Copy these files into a folder there, each in place when it is whole. Raises `Away`."""
        asyncio.run_coroutine_threadsafe(self._send(host, list(paths), folder), self._running_loop()).result()

    def link(self, machine: str) -> Link | None:
        """The connection to it, another one after each loss; None where there is none now."""
        found = self._links.get(machine)
        return found if found is not None and found.process is not None else None

    def offset(self, machine: str) -> float:
        """Seconds that its clock was ahead of ours when it was connected; 0 where that is not known."""
        link = self._links.get(machine)
        return 0.0 if link is None else link.offset

    def close(self) -> None:
        """End every connection. What runs on the machines runs on."""
        with self._guard:
            loop, self._loop = self._loop, None
        if loop is not None and self._pid == os.getpid():
            asyncio.run_coroutine_threadsafe(self._end_all(), loop).result(_TIME_TO_ANSWER)
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join(_TIME_TO_ANSWER)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        """After a fork there is no thread, and the connections are the parent's."""
        with self._guard:
            if self._loop is None or self._pid != os.getpid():
                self._begin()
                self._pid = os.getpid()
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=_run, args=(self._loop,), name="machines", daemon=True)
                self._thread.start()
            return self._loop

    # --- in the event loop -------------------------------------------------------------------------------------------

    async def _gather(self, calls: Mapping[K, Call]) -> dict[K, Any]:
        async def one(host: Host, verb: str, arguments: Mapping[str, Any]) -> Any:
            try:
                return await self._ask(host, verb, arguments)
            except YardmasterError as error:
                return error

        answers = await asyncio.gather(*(one(*call) for call in calls.values()))
        return dict(zip(calls, answers, strict=True))

    async def _ask(self, host: Host, verb: str, arguments: Mapping[str, Any]) -> Any:
        link = await self._linked(host)
        assert link.process is not None
        self._number += 1
        number = self._number
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[host.name, number] = answer
        try:
            link.process.stdin.write(wire.line({"id": number, "verb": verb, **arguments}))
            async with asyncio.timeout(_SLOW.get(verb, _TIME_TO_ANSWER)):
                await link.process.stdin.drain()
                return await answer
        except (TimeoutError, OSError, asyncssh.Error) as error:
            away = _away(host, _words(error))
            self._drop(host.name, link, away)
            raise away from error
        finally:
            self._waiting.pop((host.name, number), None)

    async def _send(self, host: Host, paths: list[Path], folder: str) -> None:
        link = await self._linked(host)
        assert link.ssh is not None
        for path in paths:
            place = f"{folder}/{path.name}"
            command = f"cat > {shlex.quote(place + '.part')} && mv {shlex.quote(place + '.part')} {shlex.quote(place)}"
            try:
                with open(path, "rb") as file:
                    done = await link.ssh.run(command, stdin=file, encoding=None)
            except (OSError, asyncssh.Error) as error:
                raise _away(host, _words(error)) from error
            if done.exit_status != 0:
                raise Unavailable(f"{host.name}: {path.name} could not be written: {_text(done.stderr)}")

    async def _linked(self, host: Host) -> Link:
        async with self._locks.setdefault(host.name, asyncio.Lock()):
            link = self._links.get(host.name)
            if link is not None and link.host != host:  # its entry in the list was changed
                self._drop(host.name, link)
                link = None
            if link is not None and link.process is not None:
                return link
            if link is not None and link.error is not None and time.monotonic() < link.failed_at + link.pause:
                raise link.error
            self._links[host.name] = found = Link(host, pause=0.0 if link is None else link.pause)
            try:
                await self._connect(found)
            except YardmasterError as error:
                self._drop(host.name, found, error)
                raise
            except BaseException:
                self._drop(host.name, found)
                raise
        self._on_link(host.name, found.hello or {})
        return found

    async def _connect(self, link: Link) -> None:
        host = link.host
        trusted = self._keys.trusted(host)
        if not trusted:
            raise Misconfigured(
                f"The machine {host.name} is not known yet.",
                code=HOST_KEY_UNKNOWN,
                remedy=f"Compare its host key, and accept it: python manage.py machines --accept {host.name}",
            )
        try:
            async with asyncio.timeout(_TIME_TO_CONNECT):
                link.ssh = await asyncssh.connect(
                    host.address,
                    host.port,
                    username=host.user,
                    client_keys=[self._keys.own()],
                    known_hosts=(trusted, [], []),
                    config=None,
                    agent_path=None,
                    preferred_auth="publickey",
                    keepalive_interval=_ALIVE_EVERY,
                    keepalive_count_max=_ALIVE_MISSED,
                    compression_algs=None,
                )
                await self._start_agent(link)
        except asyncssh.HostKeyNotVerifiable as error:
            raise self._other_key(host, trusted) from error
        except asyncssh.PermissionDenied as error:
            raise Misconfigured(
                f"The machine {host.name} refuses the portal's login as {host.user}.",
                remedy="Add the portal's key to ~/.ssh/authorized_keys there: python manage.py machines --key",
            ) from error
        except (TimeoutError, OSError, asyncssh.Error) as error:
            raise _away(host, _words(error)) from error

    def _other_key(self, host: Host, trusted: list[asyncssh.SSHKey]) -> Misconfigured:
        known = ", ".join(fingerprint(key) for key in trusted)
        return Misconfigured(
            f"The machine {host.name} shows a different host key than before ({known}): either it was "
            "reinstalled, or another machine answers at its address.",
            code=HOST_KEY_CHANGED,
            remedy=f"Find out which. Only then accept its new key: python manage.py machines --accept {host.name}",
        )

    async def _start_agent(self, link: Link) -> None:
        """The bootstrap, and through its pipes the archive where it is missing; then it is the agent."""
        assert link.ssh is not None
        packed = bundle()
        words = [link.host.python, "-c", _BOOTSTRAP.read_text(), link.host.folder, packed.digest, str(len(packed.data))]
        process = await link.ssh.create_process(shlex.join(words), encoding=None)
        said = await process.stdout.readline()
        if not said.strip():
            words_of_it = (await process.stderr.read(2000)).decode(errors="replace").strip()
            raise Misconfigured(
                f"{link.host.name}: {link.host.python} could not be started: {words_of_it[-500:] or 'it said nothing'}",
                remedy="Install Python 3.11 or newer there, or name it in the list of machines (`python`).",
            )
        found = _first_words(link.host, said)
        self._judge(link.host, found)
        if not found.get("has"):
            process.stdin.write(packed.data)
        before = time.time()
        process.stdin.write(wire.line({"id": 0, "verb": "hello"}))
        answer = await process.stdout.readline()
        if not answer:
            words_of_it = (await process.stderr.read(2000)).decode(errors="replace").strip()
            raise Unavailable(f"{link.host.name}: the agent ended at once: {words_of_it[-500:]}")
        hello = _first_words(link.host, answer)
        self._judge(link.host, hello)
        link.hello = hello.get("result")
        clock = link.hello.get("clock") if isinstance(link.hello, dict) else None
        if not isinstance(clock, int | float) or not 0 <= clock < _LATEST:
            raise Unavailable(f"{link.host.name}: the agent's first answer is not the expected one: {answer[:200]!s}")
        link.offset = clock - (before + time.time()) / 2
        link.process, link.pause = process, 0.0
        reader = asyncio.create_task(self._read(link, process))
        self._readers.add(reader)
        reader.add_done_callback(self._readers.discard)

    def _judge(self, host: Host, said: Mapping[str, Any]) -> None:
        if said.get("problem") == "python":
            raise Misconfigured(
                f"{host.name}: {host.python} is Python {str(said.get('version'))[:50]}, but at least 3.11 is required.",
                remedy="Install a newer Python there, and name it in the list of machines (`python`).",
            )
        if said.get("problem"):
            raise Misconfigured(
                wire.cut(f"{host.name}: the folder {said.get('folder')} cannot be used: {said.get('error')}"),
                remedy="Free space there, or name another folder in the list of machines (`folder`).",
            )

    async def _read(self, link: Link, process: asyncssh.SSHClientProcess[bytes]) -> None:
        """Pass on what the agent says until it ends."""
        name = link.host.name
        # What it says is not believed to be anything: whatever is wrong with it ends the connection, and no other.
        with contextlib.suppress(Exception):
            async for said in _lines(process):
                self._received(name, wire.message_in(said))
        self._drop(name, link)

    def _received(self, name: str, message: Mapping[str, Any]) -> None:
        if "id" not in message:
            return self._on_news(name, message)
        answer = self._waiting.get((name, message["id"]))
        if answer is None or answer.done():
            return None
        if "error" in message:
            return answer.set_exception(wire.error_in(message["error"], name))
        return answer.set_result(message.get("result"))

    def _drop(self, name: str, link: Link, error: YardmasterError | None = None) -> None:
        """The connection has ended: all that wait for it learn of it. With an error it is not tried again for a while,
        each time for longer."""
        link.process = None
        if link.ssh is not None:
            link.ssh.abort()
            link.ssh = None
        if self._links.get(name) is link:
            if error is None:
                del self._links[name]
            else:
                link.error, link.failed_at = error, time.monotonic()
                link.pause = min(_LONGEST_PAUSE, 2 * link.pause or _SHORTEST_PAUSE)
            for (machine, _), answer in list(self._waiting.items()):
                if machine == name and not answer.done():
                    answer.set_exception(_away(link.host, "the connection was lost"))

    async def _end_all(self) -> None:
        ending = [link.ssh for link in self._links.values() if link.ssh is not None]
        for name, link in list(self._links.items()):
            self._drop(name, link)
        await asyncio.gather(*(one.wait_closed() for one in ending), return_exceptions=True)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*others, return_exceptions=True)


async def _lines(process: asyncssh.SSHClientProcess[bytes]) -> AsyncIterator[bytes]:
    """Until the agent ends, or a line is longer than any that it sends."""
    parts, size = list[bytes](), 0
    while part := await process.stdout.read(1 << 16):
        first, *lines = part.split(b"\n")
        parts.append(first)
        size += len(first)
        if size > wire.LONGEST_LINE:
            return
        for one in lines:
            yield b"".join(parts)
            parts, size = [one], len(one)


def _words(error: Exception) -> str:
    """What was wrong, as people say it."""
    if isinstance(error, TimeoutError) and error.errno is None:
        return "it did not answer in time"
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number) if number else wire.cut(str(error)) or type(error).__name__


def _first_words(host: Host, said: bytes) -> dict[str, Any]:
    """A line of the bootstrap or of the agent. Whatever else is said there comes from the user's shell."""
    try:
        return wire.message_in(said)
    except (ValueError, RecursionError) as error:
        raise Misconfigured(
            f"{host.name}: the shell of {host.user} prints text of its own: {said[:200].decode(errors='replace')!r}",
            remedy="Change its start-up files so that they print nothing in sessions that are not interactive.",
        ) from error


def _text(data: object) -> str:
    return data.decode(errors="replace").strip() if isinstance(data, bytes) else ""


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.close()


def _away(host: Host, why: str) -> Away:
    return Away(
        f"The machine {host.name} does not answer: {why}.", remedy="Check that it is running, and check its network."
    )

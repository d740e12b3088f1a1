"""The two WebSockets of a terminal, and the bytes between them: `/ws/jobs/<job>/tasks/<task>/shell/` of the user, and
`/ws/task/shells/<id>/` of the task's runner (docs/protocols.md, section 7).

They may end at different web processes, so what one receives goes to the other over the message server. What is on its
way is bounded by the window that both sides keep to (`yardmaster_runner.shell_protocol`); who exceeds it is cut off.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from django.urls import URLPattern, path
from django.utils import timezone
from redis.exceptions import RedisError

from apps.accounts.models import User
from apps.accounts.socket_tasks import end_tasks
from apps.accounts.sockets import (
    BAD_QUERY,
    FINISHED,
    NOT_FOUND,
    NOT_SIGNED_IN,
    TRY_AGAIN_LATER,
    Receive,
    Refused,
    Scope,
    Send,
)
from apps.accounts.websocket_auth import still_signed_in
from apps.errors import Conflict, DomainError, Forbidden, NotFound
from apps.jobs import shells
from apps.jobs.state.task_auth import identity_of
from yardmaster.errors import YardmasterError
from yardmaster_runner.shell_protocol import (
    LEAST,
    LONGEST_MESSAGE,
    WINDOW,
    amount_read,
    command_in,
    cost,
    ends_input,
    is_size,
    read_json,
)

FORBIDDEN, CONFLICT = 4403, 4409
LOOK_EVERY = 20.0
JOIN_PATIENCE = 60.0
IDLE = 30 * 60.0
LONGEST = 12 * 3600.0

log = logging.getLogger(__name__)


class Over(Exception):
    """The terminal has ended. `by_task`: its task said so, and knows the exit code where the shell itself ended."""

    def __init__(self, why: str, code: int = FINISHED, exit_code: int | None = None) -> None:
        super().__init__(why)
        self.why, self.code, self.exit_code = why, code, exit_code


class End:
    """One socket, and the way to the other one. Messages are numbered: one that the message server lost ends it."""

    lost = shells.LOST
    left: Mapping[int | None, str] = {
        1000: "It was closed.", 1001: "It was closed.", 1005: "It was closed.",
        NOT_SIGNED_IN: "The sign-in that opened it has ended.",
    }  # fmt: skip
    """What the code means with which the socket was closed."""

    def __init__(self, receive: Receive, send: Send, *, is_command: bool = False) -> None:
        self._receive, self._send = receive, send
        self.is_command = is_command
        self.layer = get_channel_layer()
        self.other = ""
        self.channel = ""
        self.typed_at = time.monotonic()
        self._came: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._listener: asyncio.Task[None] | None = None
        self._sent_count = self._received_count = 0
        self._unread_here = self._unread_there = 0
        """What this side was sent and has not read, and what the other side was sent and has not read."""

    async def open(self) -> None:
        """Have a channel of its own."""
        self.channel = await self.layer.new_channel()
        self._listener = asyncio.create_task(self._listen())

    async def close(self) -> None:
        if self._listener is not None:
            await end_tasks(self._listener)

    async def _listen(self) -> None:
        while True:  # cancelled in `receive` alone, so that the layer forgets the channel
            self._came.put_nowait(await self.layer.receive(self.channel))

    async def next(self) -> dict[str, Any]:
        """The next message of the other end. Raises `Over` where one is missing."""
        message = await self._came.get()
        self._received_count += 1
        if message.get("number") != self._received_count:
            raise Over(shells.LOST, TRY_AGAIN_LATER)
        return message

    async def tell(self, **message: Any) -> None:
        """A message for the other end."""
        self._sent_count += 1
        await self.layer.send(self.other, {"type": "shell", "number": self._sent_count, **message})

    async def from_socket(self) -> None:
        """Take one message of this side's socket. Raises `Over` where the socket is gone, or does not keep to the
        protocol."""
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            raise Over(self.left.get(message.get("code"), self.lost), message.get("code") or TRY_AGAIN_LATER)
        received = message.get("bytes")
        content: bytes | str = str(message.get("text") or "") if received is None else bytes(received)
        if isinstance(content, bytes):
            await self._pass(content)
            return
        value = read_json(content)
        if amount := amount_read(value):
            self._unread_here -= amount
            if self._unread_here < 0:
                raise Over("More was read than was sent.", BAD_QUERY)
            await self.tell(read=amount)
        elif self.passes(value):
            await self._pass(content)
        elif isinstance(value.get("ended"), str):
            self.ended(value)
        else:
            raise Over("A message is not of the protocol.", BAD_QUERY)

    def passes(self, value: dict[str, Any]) -> bool:
        """Whether this side may say that to the other one."""
        return bool(command_in(value)) or ends_input(value) if self.is_command else is_size(value)

    async def until_gone(self) -> None:
        """Drop what comes. Raises `Over` when the socket is gone."""
        while (message := await self._receive())["type"] != "websocket.disconnect":
            pass
        raise Over(self.left.get(message.get("code"), self.lost), message.get("code") or TRY_AGAIN_LATER)

    def ended(self, value: dict[str, Any]) -> None:
        """This side says that it is over."""
        raise Over("A message is not of the protocol.", BAD_QUERY)

    async def _pass(self, content: bytes | str) -> None:
        self.typed_at = time.monotonic()
        if len(content) > LONGEST_MESSAGE or self._unread_there >= WINDOW + LEAST:
            raise Over("More was sent than may be on its way.", BAD_QUERY)
        self._unread_there += cost(content)
        await self.tell(content=content)

    async def to_socket(self) -> None:
        """Give this side's socket one message of the other end. Raises `Over` where that is the last."""
        message = await self.next()
        if "over" in message:
            raise Over(message["over"], message["code"], message["exit_code"])
        if "read" in message:
            self._unread_there -= message["read"]
            await self.say(json.dumps({"read": message["read"]}))
        elif "content" in message:
            self._unread_here += cost(message["content"])
            if self.is_command:
                self.typed_at = time.monotonic()
            await self.say(message["content"])

    async def say(self, content: bytes | str) -> None:
        kind = "bytes" if isinstance(content, bytes) else "text"
        with contextlib.suppress(OSError):  # it has gone: what it said last is still to be read
            await self._send({"type": "websocket.send", kind: content})


class RunnerEnd(End):
    """What a runner sends, which a hostile one may make up."""

    lost = "The connection to the task was lost."
    left: Mapping[int | None, str] = {}

    def passes(self, value: dict[str, Any]) -> bool:
        return is_size(value)

    def ended(self, value: dict[str, Any]) -> None:
        code = value.get("exit_code")
        raise Over(value["ended"][:200], FINISHED, code if type(code) is int and abs(code) < 2**31 else None)


async def user_shell(scope: Scope, receive: Receive, send: Send) -> None:
    """The socket of who types."""
    await receive()
    await send({"type": "websocket.accept"})
    end, shell_id = End(receive, send, is_command=_query(scope).get("command") == "1"), None
    over = Over(shells.LOST)
    try:
        await end.open()
        shell_id = await _opened(scope, end)
        await end.say(json.dumps({"state": "waiting"}))
        await _joined(end)
        await end.say(json.dumps({"state": "open"}))
        opened_at, opened = time.monotonic(), shell_id
        await _until_over(end, lambda: _look(scope, end, opened, opened_at))
    except Over as found:
        over = found
    except (RedisError, OSError):
        over = Over("The message server of the portal is unavailable.", TRY_AGAIN_LATER)
    finally:
        await end.close()
        if shell_id is not None:
            with contextlib.suppress(RedisError, OSError):
                if end.other:
                    await end.tell(over=over.why, code=over.code, exit_code=None)
            await database_sync_to_async(shells.shell_end)(shell_id, over.why)
        with contextlib.suppress(OSError, RuntimeError):  # the client has gone
            await end.say(json.dumps({"ended": over.why, "exit_code": over.exit_code}))
            await send({"type": "websocket.close", "code": over.code})


async def _opened(scope: Scope, end: End) -> uuid.UUID:
    def open_it() -> uuid.UUID:
        user = _acting(scope)
        kwargs = scope["url_route"]["kwargs"]
        role, index = shells.task_of(kwargs["task"])
        task = {"job_id": kwargs["job_id"], "role": role, "index": index}
        return shells.shell_open(user=user, **task, channel=end.channel, is_command=end.is_command).pk

    found: uuid.UUID = await _or_over(open_it)
    return found


async def _or_over(ask: Callable[[], Any]) -> Any:
    """Ask the database; a problem ends the terminal."""
    try:
        return await database_sync_to_async(ask)()
    except Refused as refused:
        raise Over("You are not signed in, or the token does not have the scope jobs.", refused.code) from refused
    except DomainError as problem:
        codes: dict[type[DomainError], int] = {NotFound: NOT_FOUND, Forbidden: FORBIDDEN, Conflict: CONFLICT}
        code = next((code for kind, code in codes.items() if isinstance(problem, kind)), CONFLICT)
        raise Over(" ".join(filter(None, [str(problem), problem.remedy])), code) from problem
    except YardmasterError as problem:  # an engine that is no longer in the settings
        raise Over(str(problem), CONFLICT) from problem


def _acting(scope: Scope) -> User:
    """Who is behind the socket, with a token (if any) that may change jobs. Raises `Refused`."""
    user = still_signed_in(scope) if scope["user"].is_authenticated else None
    scopes = getattr(scope.get("auth"), "scopes", None)
    if user is None or (scopes and "jobs" not in scopes):
        raise Refused(NOT_SIGNED_IN)
    return user


async def _joined(end: End) -> None:
    """Wait for the runner; what is typed before it has come is dropped."""
    came = asyncio.create_task(end.next())
    try:
        async with asyncio.timeout(JOIN_PATIENCE):
            gone = asyncio.create_task(end.until_gone())
            try:
                await asyncio.wait([gone, came], return_when=asyncio.FIRST_COMPLETED)
                if gone.done():
                    gone.result()
            finally:
                await end_tasks(gone)
        end.other = came.result()["channel"]
    except TimeoutError as error:
        raise Over("The task did not answer. It may be ending, or its runner is older than terminals.") from error
    finally:
        came.cancel()


async def _look(scope: Scope, end: End, shell_id: uuid.UUID, opened_at: float) -> None:
    """Whether the user may still type, and does."""
    now = time.monotonic()
    if now - end.typed_at > IDLE:
        did = "read or printed" if end.is_command else "typed"
        raise Over(f"Nothing was {did} for {int(IDLE // 60)} minutes.")
    if now - opened_at > LONGEST:
        raise Over(f"It was open for {int(LONGEST // 3600)} hours.")
    why = await _or_over(lambda: shells.shell_keep(_acting(scope), shell_id))
    if why:
        raise Over(why)


async def runner_shell(scope: Scope, receive: Receive, send: Send) -> None:
    """The socket of the task's runner. Refused before it is open where no user waits for it."""
    await receive()
    end = RunnerEnd(receive, send)
    try:
        found = await database_sync_to_async(_join)(scope)
    except DomainError:
        await send({"type": "websocket.close", "code": NOT_FOUND})
        return
    shell_id, end.other = found
    over = Over(RunnerEnd.lost)
    try:
        await end.open()
        await send({"type": "websocket.accept"})
        await end.tell(channel=end.channel)
        await _until_over(end, lambda: _serve(shell_id))
    except Over as found_over:
        over = found_over
    except (RedisError, OSError):
        over = Over(RunnerEnd.lost, TRY_AGAIN_LATER)
    finally:
        await end.close()
        with contextlib.suppress(RedisError, OSError):
            await end.tell(over=over.why, code=over.code, exit_code=over.exit_code)
        with contextlib.suppress(OSError, RuntimeError):  # the runner has gone
            await send({"type": "websocket.close", "code": over.code})


def _join(scope: Scope) -> tuple[uuid.UUID, str]:
    header = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
    kind, _, token = header.partition(" ")
    identity = identity_of(token.strip(), timezone.now()) if kind.lower() == "bearer" else None
    query = _query(scope)
    role, index = query.get("role", ""), query.get("index", "")
    if identity is None or not index.isascii() or not index.isdigit() or not identity.has_task(role, int(index[:9])):
        raise NotFound()
    shell_id, is_command = scope["url_route"]["kwargs"]["shell_id"], query.get("command") == "1"
    shell = shells.shell_join(identity, shell_id, role, int(index[:9]), is_command=is_command)
    return shell.pk, shell.channel


def _query(scope: Scope) -> dict[str, str]:
    return dict(parse_qsl(scope["query_string"].decode("latin-1")))


async def _serve(shell_id: uuid.UUID) -> None:
    if not await database_sync_to_async(shells.shell_serves)(shell_id):
        raise Over(shells.LOST)


async def _until_over(end: End, look: Callable[[], Awaitable[None]]) -> None:
    """Pass bytes in both directions. Returns by raising `Over`, or what the message server raises."""
    is_over = asyncio.Event()

    async def repeated(step: Callable[[], Awaitable[None]]) -> None:
        while not is_over.is_set():  # also where the cancellation was lost in the step (`end_tasks`)
            await step()

    async def look_again() -> None:
        await asyncio.sleep(LOOK_EVERY)
        await look()

    tasks = [asyncio.create_task(repeated(one)) for one in (end.from_socket, end.to_socket, look_again)]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        next(iter(done)).result()
    finally:
        is_over.set()
        await end_tasks(*tasks)


websocket_urlpatterns: list[URLPattern] = [
    path("ws/jobs/<uuid:job_id>/tasks/<str:task>/shell/", user_shell),  # type: ignore[arg-type]
    path("ws/task/shells/<uuid:shell_id>/", runner_shell),  # type: ignore[arg-type]
]

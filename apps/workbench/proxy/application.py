"""The second origin: each request and WebSocket is let through to the program of its session, or answered here.

Before a request is passed on it waits for `admit` and for its turn (`limits`), and for nothing else. Sessions share no
connections.
"""

from __future__ import annotations

import contextlib
import hashlib
import posixpath
import re
import secrets
import uuid
from collections.abc import Callable, Iterator
from urllib.parse import parse_qs, quote, unquote

from apps.workbench.proxy import answers, notices, refusals
from apps.workbench.proxy.asked import asked_by
from apps.workbench.proxy.contract import Admit, Admitted, Enter, Lost, Refusal, Used
from apps.workbench.proxy.headers import METHODS, Headers, is_foreign
from apps.workbench.proxy.http_passing import AGAIN, PATIENCE, HttpPassing, Message, Receive, Scope, Send
from apps.workbench.proxy.limits import Limits
from apps.workbench.proxy.origins import LENGTH_OF_PREFIX, RESERVED, Origins, prefix_of, session_in
from apps.workbench.proxy.socket_passing import SocketPassing
from apps.workbench.proxy.upstream import IdleConnections

HEALTH, AUTHORIZE = f"{RESERVED}healthz", f"{RESERVED}authorize"
BEGIN, ENTER = f"{RESERVED}begin", f"{RESERVED}enter"
"""A browser begins here and is sent to the portal, whose ticket lets in this browser alone: no one else can have it
let in as themselves."""
LONGEST_NEXT, MOST_KNOWN = 4 << 10, 1000
_NEXT = re.compile(r"[!-\[\]-~]+")
"""Visible ASCII without the backslash, which some browsers take for a slash."""


class Workbench:
    """The ASGI application. `address_of`: where a request comes from; `of_user`: requests and WebSockets of one user
    that may be under way at once; `patience` and `again`: see `HttpPassing` and `SocketPassing`."""

    def __init__(
        self,
        origins: Origins,
        admit: Admit,
        enter: Enter,
        used: Used,
        *,
        lost: Lost = lambda session_id: None,
        address_of: Callable[[Scope], str] = lambda scope: str(scope["client"][0]),
        of_user: int = 300,
        patience: float = PATIENCE,
        again: float = AGAIN,
    ) -> None:
        self._origins = origins
        self._admit, self._enter, self._used = admit, enter, used
        self._lost, self._address_of = lost, address_of
        self._limits = Limits(of_user)
        self._known: dict[tuple[bytes, bytes], uuid.UUID] = {}
        """The session that a host and the begin of a path name."""
        self._idle = IdleConnections()
        self._http = HttpPassing(origins, self._idle, patience, again)
        self._socket = SocketPassing(origins, again)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        headers = dict(scope["headers"])
        try:
            if scope["type"] == "websocket":
                await self._pass_socket(scope, headers, receive, send)
            elif _path_of(scope).startswith(RESERVED):
                await self._answer_itself(scope, headers, send)
            else:
                await self._pass(scope, headers, receive, send)
        except Refusal as refusal:
            await _refuse(scope, headers, send, refusal)

    async def _live(self, receive: Receive, send: Send) -> None:
        for step in ("startup", "shutdown"):
            await receive()
            if step == "shutdown":
                self._idle.close()
            await send({"type": f"lifespan.{step}.complete"})

    async def _pass(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive, send: Send) -> None:
        session_id = self._known.get(asked := (headers.get(b"host", b""), scope["raw_path"][:LENGTH_OF_PREFIX]))
        if session_id is None:
            if (place := self._place_below(scope, headers)) is not None:
                await _redirect(send, 307, place)
                return
            session_id = self._session(scope, headers)
            if _path_of(scope) + "/" == prefix_of(session_id):
                await _redirect(send, 308, prefix_of(session_id) + _query(scope))
                return
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[asked] = session_id
        if scope["method"] not in METHODS:
            raise refusals.not_allowed(scope["method"])
        if is_foreign(scope["method"], headers, self._origins.of(session_id)):
            raise refusals.foreign()
        if notices.is_script(scope["raw_path"]):
            await _answer(send, 200, *notices.script())
            return
        try:
            admitted = await self._admitted(session_id, scope, headers)
        except Refusal as refusal:
            if refusal.status != 401 or not answers.wants_page(scope["method"], headers):
                raise
            await _redirect(send, 303, self._at_the_portal(session_id, scope))
            return
        if notices.is_ours(scope["raw_path"]):
            await _answer(send, 200, *notices.notice(admitted.notice))
            return
        with self._limits.hold(admitted.user_id, session_id):
            if admitted.is_use(scope["method"], scope["path"]):
                self._used(session_id)
            async with self._limits.turn(admitted.user_id, session_id):
                with self._noting_loss(session_id):
                    await self._http(admitted, scope, receive, send, lambda: self._admitted(session_id, scope, headers))

    async def _pass_socket(self, scope: Scope, headers: dict[bytes, bytes], receive: Receive, send: Send) -> None:
        session_id = self._session(scope, headers)
        if headers.get(b"origin") != self._origins.of(session_id).encode():
            raise refusals.foreign()
        admitted = await self._admitted(session_id, scope, headers)
        with self._limits.hold(admitted.user_id, session_id), self._noting_loss(session_id):
            await self._socket(admitted, scope, receive, send, lambda: self._admitted(session_id, scope, headers))

    @contextlib.contextmanager
    def _noting_loss(self, session_id: uuid.UUID) -> Iterator[None]:
        try:
            yield
        except Refusal as refusal:
            if refusal.code == refusals.UNREACHABLE:
                self._lost(session_id)
            raise

    def _place_below(self, scope: Scope, headers: dict[bytes, bytes]) -> str | None:
        """On a session's own host, where a path that is not below its prefix leads: parts of TensorBoard know nothing
        of the prefix, such as its fonts."""
        session_id = self._origins.session_of_host(headers.get(b"host", b"").decode("latin-1"))
        path = _path_of(scope)
        if session_id is None or scope["method"] not in ("GET", "HEAD") or path.startswith("/w/"):
            return None
        return prefix_of(session_id) + path.lstrip("/") + _query(scope)

    def _session(self, scope: Scope, headers: dict[bytes, bytes]) -> uuid.UUID:
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._origins.is_ours(host):
            raise refusals.misdirected()
        session_id = self._origins.session_at(host, _path_of(scope))
        if session_id is None:
            raise refusals.not_found()
        return session_id

    async def _admitted(self, session_id: uuid.UUID, scope: Scope, headers: dict[bytes, bytes]) -> Admitted:
        cookies = self._origins.cookie(session_id).found_in(headers.get(b"cookie", b"").decode("latin-1"))
        refusal = None
        for cookie in cookies:
            try:
                return await self._admit(session_id, cookie, lambda: self._address_of(scope))
            except Refusal as error:
                refusal = error
                if error.status != 401:
                    break
        raise refusal or Refusal(
            401, "not_signed_in", "Not signed in", "The request has no cookie for this session.",
            "Open the session on the portal.", f"{self._origins.portal_url}/sessions/{session_id}/open/", "Open it",
        )  # fmt: skip

    def _at_the_portal(self, session_id: uuid.UUID, scope: Scope) -> str:
        place = _path_of(scope) + _query(scope)
        if len(place) > LONGEST_NEXT:
            place = prefix_of(session_id)
        return f"{self._origins.portal_url}/sessions/{session_id}/open/?next={quote(place, safe='/')}"

    async def _answer_itself(self, scope: Scope, headers: dict[bytes, bytes], send: Send) -> None:
        if scope["path"] == HEALTH:
            await _answer(send, 200, *answers.with_length(b"text/plain; charset=utf-8", b"ok\n"))
            return
        if scope["path"] == AUTHORIZE:
            await self._authorize(scope, headers, send)
            return
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._origins.is_ours(host):
            raise refusals.misdirected()
        if scope["path"] not in (BEGIN, ENTER) or scope["method"] != "GET":
            raise refusals.not_found()
        sent = parse_qs(scope["query_string"].decode("latin-1"), max_num_fields=10)
        place = sent.get("next", [""])[0]
        session_id = _session_of_next(place)
        if session_id is None or self._origins.session_at(host, prefix_of(session_id)) is None:
            raise Refusal(
                400,
                "next_not_valid",
                "Bad address",
                f"`next` must be a path below /w/<session>/, not {place[:100]!r}.",
                "Open the session on the portal.",
            )
        if scope["path"] == BEGIN:
            await self._begin_to_enter(session_id, place, send)
        else:
            await self._let_in(session_id, sent.get("ticket", [""])[0], place, headers, send)

    async def _begin_to_enter(self, session_id: uuid.UUID, place: str, send: Send) -> None:
        value = secrets.token_urlsafe(32)
        at_portal = f"{self._origins.portal_url}/sessions/{session_id}/open/?next={quote(place, safe='/')}"
        cookie = self._origins.entry_cookie().header(value).encode()
        await _redirect(send, 303, f"{at_portal}&entry={digest_of(value)}", [(b"set-cookie", cookie)])

    async def _let_in(
        self, session_id: uuid.UUID, ticket: str, place: str, headers: dict[bytes, bytes], send: Send
    ) -> None:
        known = self._origins.entry_cookie().found_in(headers.get(b"cookie", b"").decode("latin-1"))
        entered = await self._enter(session_id, ticket, [digest_of(one) for one in known])
        cookie = (b"set-cookie", self._origins.cookie(session_id).header(entered.cookie).encode())
        if not entered.preferences or not answers.wants_page("GET", headers):
            await _redirect(send, 303, place, [cookie])
            return
        sent, body = answers.entrance(place, entered.preferences)
        await _answer(send, 200, [*sent, cookie], body)

    async def _authorize(self, scope: Scope, headers: dict[bytes, bytes], send: Send) -> None:
        """For an ingress, before it passes a request on: 204 where that request may pass, or is answered by this proxy
        itself; else what this proxy would answer, as far as the ingress can understand it. The request is the one that
        `X-Original-*` or `X-Forwarded-*` describe; its other headers are sent as they came. A client that forges these
        headers learns only what its own cookie opens."""
        asked = asked_by(headers)
        scope, headers = {**scope, **asked.scope}, {**headers, b"host": asked.host.encode("latin-1")}
        try:
            if not self._is_answered_here(scope, headers):
                await self._check(scope, headers)
        except Refusal as refusal:
            if asked.only_yes_or_no:
                sent = answers.answer(refusal, as_page=False)
                await _answer(send, 401 if refusal.status == 401 else 403, *sent)
            elif refusal.status == 401 and answers.wants_page(asked.method, headers):
                await _redirect(send, 303, self._at_the_portal(self._session(scope, headers), scope))
            else:
                raise
            return
        await _answer(send, 204, [(b"cache-control", b"no-store")], b"")

    def _is_answered_here(self, scope: Scope, headers: dict[bytes, bytes]) -> bool:
        """Whether no program is asked for it: the way in, and redirects below a session's prefix."""
        if _path_of(scope).startswith(RESERVED):
            return self._origins.is_ours(headers[b"host"].decode("latin-1"))
        if self._place_below(scope, headers) is not None:
            return True
        return _path_of(scope) + "/" == prefix_of(self._session(scope, headers))

    async def _check(self, scope: Scope, headers: dict[bytes, bytes]) -> None:
        """Raises `Refusal` where the request does not pass to the program."""
        session_id = self._session(scope, headers)
        origin = self._origins.of(session_id)
        is_socket = headers.get(b"upgrade", b"").lower() == b"websocket"
        if scope["method"] not in METHODS:
            raise refusals.not_allowed(scope["method"])
        if is_foreign(scope["method"], headers, origin) or (is_socket and headers.get(b"origin") != origin.encode()):
            raise refusals.foreign()
        admitted = await self._admitted(session_id, scope, headers)
        if admitted.is_use(scope["method"], scope["path"]) and not notices.is_ours(scope["raw_path"]):
            self._used(session_id)


def digest_of(value: str) -> str:
    """What the portal learns of the value by which a browser is known again."""
    return hashlib.sha256(value.encode()).hexdigest()


def _session_of_next(place: str) -> uuid.UUID | None:
    """The session below whose prefix it is, however a browser may read it."""
    path = place.partition("?")[0].partition("#")[0]
    session_id = session_in(path)
    if session_id is None or not path.startswith(prefix_of(session_id)) or not _NEXT.fullmatch(place):
        return None
    is_below = posixpath.normpath(unquote(path)).startswith(prefix_of(session_id).rstrip("/"))
    return session_id if is_below and len(place) <= LONGEST_NEXT else None


def _path_of(scope: Scope) -> str:
    """As it was sent: what it means is for the program to say."""
    return str(scope["raw_path"].decode("latin-1"))


def _query(scope: Scope) -> str:
    return f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else ""


async def _redirect(send: Send, status: int, place: str, more: Headers | None = None) -> None:
    headers, body = answers.with_length(b"text/plain; charset=utf-8", b"")
    await _answer(send, status, [*headers, (b"location", place.encode("latin-1")), *(more or [])], body)


async def _refuse(scope: Scope, headers: dict[bytes, bytes], send: Send, refusal: Refusal) -> None:
    if scope["type"] == "http":
        sent = answers.answer(refusal, answers.wants_page(scope["method"], headers))
        await _answer(send, refusal.status, *sent)
    elif "websocket.http.response" in scope.get("extensions", {}):
        await _answer(send, refusal.status, *answers.answer(refusal, as_page=False), kind="websocket.http")
    else:
        await send({"type": "websocket.close", "code": 1008})


async def _answer(send: Send, status: int, headers: Headers, body: bytes, kind: str = "http") -> None:
    start: Message = {"type": f"{kind}.response.start", "status": status, "headers": headers}
    await send(start)
    await send({"type": f"{kind}.response.body", "body": body})

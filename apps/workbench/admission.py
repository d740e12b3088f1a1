"""Whom the proxy lets pass to which session: asked at each request, and answered from the tables.

An answer is kept for a second by each web process, since one page asks for dozens of files; a sign-out forgets the
user's at once in the process that it was sent to. Nothing here starts a session.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from channels.db import database_sync_to_async
from django.conf import settings
from django.dispatch import receiver
from django.utils import timezone

from apps.accounts.open_sockets import sign_ins_ended
from apps.errors import DomainError
from apps.hosting.addresses import address_of
from apps.hosting.services import NOTE_EVERY, use_note
from apps.hosting.state import State, lost, situation_of, token_for
from apps.namespaces.models import Role
from apps.namespaces.selectors import role_of
from apps.workbench.access import require_use
from apps.workbench.entrances import entrance_of, ticket_exchange
from apps.workbench.models import Entrance, Kind, WorkbenchSession
from apps.workbench.proxy.admission import MESSAGE, Admitted, Entered, Refusal
from apps.workbench.services import name_of
from yardmaster.errors import YardmasterError

LASTS = 1.0
MOST = 10_000
THREADS = 8
PREFERENCES = {Kind.TENSORBOARD.value: {"_tb_global_settings": {"autoReload": True}}}
"""By itself a TensorBoard shows what was there when its page was loaded."""
_READS = ("GET", "HEAD", "OPTIONS")
WAITING = {
    State.QUEUED: "It waits in the queue.",
    State.STARTING: "It is starting.",
    State.LOADING: "It is starting.",
    State.STOPPING: "It is being stopped.",
    State.STOPPED: "It was stopped. Opening this address does not start it.",
    State.FAILED: "It failed.",
}


@dataclass(frozen=True)
class _Kept:
    admitted: Admitted
    until: float


def _in_thread(function: Callable[..., Any]) -> Any:
    """Threads of its own: an engine that takes long to say where a task is holds up neither pages nor sockets."""
    return database_sync_to_async(function, thread_sensitive=False, executor=_threads)


_threads = ThreadPoolExecutor(THREADS, thread_name_prefix="admission")
_kept: dict[tuple[uuid.UUID, str], _Kept] = {}


async def admit(session_id: uuid.UUID, cookie: str) -> Admitted:
    """Raises `Refusal`: 401 without a cookie that counts, 403 where the user may not use the session (any more), 503
    while it does not run."""
    kept = _kept.get((session_id, cookie))
    if kept is not None and time.monotonic() < kept.until:
        return kept.admitted
    admitted: Admitted = await _in_thread(_admit)(session_id, cookie)
    return admitted


async def enter(session_id: uuid.UUID, ticket: str, entries: Sequence[str]) -> Entered:
    """What a browser gets for a ticket. Raises `Refusal` (403): it is forged, old, used, another session's or another
    browser's."""
    cookie, kind = await _in_thread(_exchanged)(session_id, ticket, entries)
    if cookie is None:
        message = "A ticket opens one session, once, within 30 seconds."
        raise Refusal(
            403, "bad_ticket", "This ticket is not valid", message, "Open the session again from its page.",
            _page_of(session_id), "Show the session",
        )  # fmt: skip
    return Entered(cookie, PREFERENCES.get(kind, {}))


def _exchanged(session_id: uuid.UUID, ticket: str, entries: Sequence[str]) -> tuple[str | None, str]:
    cookie = ticket_exchange(session_id, ticket, entries)
    return cookie, WorkbenchSession.objects.values_list("kind", flat=True).filter(pk=session_id).first() or ""


class Notes:
    """Writes down that sessions are used, and that they do not answer: each every few seconds at most, and never while
    a request waits for it."""

    def __init__(self) -> None:
        self._noted: dict[tuple[Any, uuid.UUID], float] = {}
        """Until when nothing of the kind is written of a session again."""
        self._under_way: set[asyncio.Task[None]] = set()

    def used(self, session_id: uuid.UUID) -> None:
        """Returns at once. For the event loop's thread."""
        self._note(_note_use, session_id)

    def lost(self, session_id: uuid.UUID) -> None:
        """The same. The session is looked at again before anything else is sent there."""
        for key in [key for key in _kept if key[0] == session_id]:
            del _kept[key]
        self._note(_note_loss, session_id)

    def _note(self, write: Callable[[uuid.UUID], None], session_id: uuid.UUID) -> None:
        now = time.monotonic()
        if now < self._noted.get((write, session_id), 0.0):
            return
        if len(self._noted) >= MOST:
            self._noted.clear()
        self._noted[write, session_id] = now + NOTE_EVERY.total_seconds()
        task = asyncio.get_running_loop().create_task(_in_thread(write)(session_id))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)


def _note_loss(session_id: uuid.UUID) -> None:
    session = WorkbenchSession.objects.select_related("job").filter(pk=session_id).first()
    if session is not None:
        lost(session)


def _note_use(session_id: uuid.UUID) -> None:
    session = WorkbenchSession.objects.filter(pk=session_id).first()
    if session is not None:
        use_note(session, timezone.now())


@receiver(sign_ins_ended)
def _forget(user_id: uuid.UUID, **facts: object) -> None:
    for key in [key for key, one in tuple(_kept.items()) if one.admitted.user_id == user_id]:
        _kept.pop(key, None)


def _admit(session_id: uuid.UUID, cookie: str) -> Admitted:
    until = time.monotonic() + LASTS
    entrance = entrance_of(session_id, cookie, timezone.now())
    if entrance is None:
        raise Refusal(
            401, "not_signed_in", "Sign in to open this session", "Your sign-in at the portal has ended.",
            "Open the session from its page.", _page_of(session_id), "Show the session",
        )  # fmt: skip
    admitted = _admitted(entrance)
    if len(_kept) >= MOST:
        _kept.clear()
    _kept[session_id, cookie] = _Kept(admitted, until)
    return admitted


def _admitted(entrance: Entrance) -> Admitted:
    session = entrance.session
    try:
        require_use(entrance.user, session)
    except DomainError as error:
        raise Refusal(403, "forbidden", "You may not open this session", error.detail, error.remedy) from error
    now = situation_of(session, timezone.now(), ask=False)
    try:
        address = address_of(session.job) if now.state is State.READY and session.job is not None else None
    except YardmasterError:
        address = None
    if address is None or session.job is None:
        state = State.LOADING if now.state is State.READY else now.state
        raise Refusal(
            503, f"session_{state.value}", name_of(session), f"{WAITING[state]} {now.message}".strip(), now.remedy,
            _page_of(session.pk), "Start it on its page" if not now.runs else "Show what it waits for",
        )  # fmt: skip
    caller = {"user": entrance.user, "session": SimpleNamespace(session_key=entrance.sign_in_id)}
    is_use = _use_of(session.kind, role_of(entrance.user, session.namespace))
    return Admitted(session.pk, entrance.user_id, address, token_for(session.job), caller, is_use)


def _use_of(kind: str, role: Role | None) -> Callable[[str, str], bool]:
    """What counts as use of a session, by one with this role in its namespace. Nothing of those who could not start it:
    a page that a viewer leaves open would hold the quota of others. Of a Jupyter not what its page asks by itself every
    few seconds, and no message: its kernels and terminals say themselves when they were used (`activity`)."""
    if role not in (Role.MEMBER, Role.MANAGER):
        return lambda method, path: False
    if kind == Kind.JUPYTER:
        return lambda method, path: method not in _READS and method != MESSAGE
    return lambda method, path: method != MESSAGE


def _page_of(session_id: uuid.UUID) -> str:
    return f"{settings.PUBLIC_URL}/sessions/{session_id}/"

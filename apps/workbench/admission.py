"""Whom the proxy lets pass to which session: asked at each request, and answered from the tables.

An answer is kept for a second by each web process, and equal questions at a time are asked once, since one page asks
for dozens of files; a sign-out forgets the user's at once in the process that it was sent to. Nothing here starts a
session.

An engine may have to be asked where a task is, and may hang. Each has a few threads of its own for it, so that it holds
up the sessions on it alone, and these for seconds.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeVar

from channels.db import database_sync_to_async
from django.conf import settings
from django.dispatch import receiver
from django.utils import timezone

from apps.accounts.open_sockets import sign_ins_ended
from apps.errors import DomainError
from apps.hosting.addresses import address_known, address_of
from apps.hosting.services import NOTE_EVERY, use_note
from apps.hosting.state import Situation, State, lost, situation_of, token_for
from apps.jobs.models import Job
from apps.namespaces.models import Role
from apps.namespaces.selectors import role_of
from apps.workbench.access import require_use
from apps.workbench.entrances import entrance_of, entrance_renew, ticket_exchange
from apps.workbench.kept import Kept
from apps.workbench.last_minutes import notice_of
from apps.workbench.models import Kind, WorkbenchSession
from apps.workbench.proxy.contract import Admitted, Entered, Refusal, Unknown
from apps.workbench.services import name_of
from apps.workbench.strangers import looked_up
from yardmaster.engines.base import Address
from yardmaster.errors import YardmasterError

T = TypeVar("T")
_Key = tuple[uuid.UUID, str]
"""A session, and the value of a cookie."""
log = logging.getLogger(__name__)

LASTS = 1.0
MOST = 10_000
THREADS = 8
"""For the tables."""
THREADS_OF_ENGINE = 2
PATIENCE_WITH_TABLES = PATIENCE_WITH_ENGINE = 10.0
"""Seconds in which they have to answer."""
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
class _Question:
    """Who may pass to a session with a cookie: asked once for all who want to know it at the time."""

    begun: float
    answer: asyncio.Task[Admitted]


@dataclass(frozen=True)
class _Allowed:
    """What the tables say of one who may pass. `address` None: the engine has to be asked."""

    session: WorkbenchSession
    job: Job
    address: Address | None
    at: Callable[[Address], Admitted]


async def _in_thread(patience: float, threads: ThreadPoolExecutor, function: Callable[..., T], *given: object) -> T:
    """Not in the threads of pages and sockets. Raises TimeoutError where it takes too long; its thread continues."""
    async with asyncio.timeout(patience):
        found: T = await database_sync_to_async(function, thread_sensitive=False, executor=threads)(*given)
        return found


async def _looked_up(function: Callable[..., T], *given: object) -> T:
    """From the tables. Raises `Unknown` where they do not answer in time."""
    try:
        return await _in_thread(PATIENCE_WITH_TABLES, _threads, function, *given)
    except TimeoutError as error:
        raise Unknown(
            503, "portal_busy", "The portal is busy",
            f"It could not look up within {PATIENCE_WITH_TABLES:g} s whether you may open this session.",
            "Load the page again.",
        ) from error  # fmt: skip


async def _address_at_engine(job: Job) -> Address | None:
    """Raises `Unknown` where the engine does not answer in time."""
    threads = _of_engine.get(job.engine)
    if threads is None:
        threads = _of_engine[job.engine] = ThreadPoolExecutor(THREADS_OF_ENGINE, thread_name_prefix="engine-address")
    try:
        return await _in_thread(PATIENCE_WITH_ENGINE, threads, address_of, job)
    except YardmasterError:
        return None
    except TimeoutError as error:
        raise Unknown(
            503, "engine_does_not_answer", "The engine does not answer",
            f"The engine {job.engine} did not say within {PATIENCE_WITH_ENGINE:g} s where this session runs.",
            "Load the page again in a minute. If that does not help, ask an administrator.",
        ) from error  # fmt: skip


_threads = ThreadPoolExecutor(THREADS, thread_name_prefix="admission")
_of_engine: dict[str, ThreadPoolExecutor] = {}
_admitted: Kept[_Key, Admitted] = Kept(MOST)
_refused: Kept[_Key, Refusal] = Kept(MOST)
"""Apart from those who may pass: strangers have as many cookies as they like."""
_ended: Kept[uuid.UUID, float] = Kept(MOST)
"""When a sign-in of a user has ended last, for as long as a question from before may be under way."""
_asked: dict[tuple[asyncio.AbstractEventLoop, _Key], _Question] = {}


async def admit(session_id: uuid.UUID, cookie: str, whence: Callable[[], str] = str) -> Admitted:
    """Raises `Refusal`: 401 without a cookie that counts, 403 where the user may not use the session (any more), 429 at
    an address that sends too many such cookies, 503 while it does not run. An answer is at most `LASTS` older than the
    call. `whence`: the address of the caller."""
    came, key = time.monotonic(), (session_id, cookie)
    while True:
        if (admitted := _admitted.get(key)) is not None:
            return admitted
        if (refusal := _refused.get(key)) is not None:
            raise refusal.with_traceback(None)
        question = _question(key, whence)
        await asyncio.wait([question.answer])
        if question.begun >= came - LASTS:
            admitted = question.answer.result()
            if not _is_over(admitted, question.begun):
                return admitted


def _question(key: _Key, whence: Callable[[], str]) -> _Question:
    """The one that is being asked, or that is asked now."""
    asked = (asyncio.get_running_loop(), key)
    if (found := _asked.get(asked)) is None:
        begun = time.monotonic()
        found = _asked[asked] = _Question(begun, asyncio.create_task(_ask(key, whence, begun + LASTS)))
        found.answer.add_done_callback(lambda task: _answered(asked, task))
    return found


def _answered(asked: tuple[asyncio.AbstractEventLoop, _Key], task: asyncio.Task[Admitted]) -> None:
    del _asked[asked]
    if not task.cancelled():
        task.exception()  # all who waited for it may have gone


async def _ask(key: _Key, whence: Callable[[], str], until: float) -> Admitted:
    try:
        admitted = await _found_out(*key, whence)
    except Refusal as refusal:
        _refused.put(key, refusal, until)
        raise
    if not _is_over(admitted, until - LASTS):
        _admitted.put(key, admitted, until)
    return admitted


def _is_over(admitted: Admitted, begun: float) -> bool:
    """Whether a sign-in of the caller has ended since this was asked: it may be the one that the answer rests on."""
    ended = _ended.get(admitted.user_id)
    return ended is not None and begun <= ended


async def _found_out(session_id: uuid.UUID, cookie: str, whence: Callable[[], str]) -> Admitted:
    look = partial(_looked_up, _allowed, session_id, cookie)
    allowed = await looked_up((session_id, cookie), whence(), look)
    address = allowed.address or await _address_at_engine(allowed.job)
    if address is None:
        raise await _looked_up(_not_there, allowed.session, State.LOADING)
    return allowed.at(address)


async def enter(session_id: uuid.UUID, ticket: str, entries: Sequence[str]) -> Entered:
    """What a browser gets for a ticket. Raises `Refusal` (403): it is forged, old, used, another session's or another
    browser's."""
    cookie, kind = await _looked_up(_exchanged, session_id, ticket, entries)
    if cookie is None:
        message = "A ticket opens one session, once, within 30 seconds."
        raise Refusal(
            403, "bad_ticket", "This ticket is not valid", message, "Open the session again from its page.",
            _page_of(session_id), "Show the session",
        )  # fmt: skip
    return Entered(cookie, PREFERENCES.get(kind, {}))


def _exchanged(session_id: uuid.UUID, ticket: str, entries: Sequence[str]) -> tuple[str | None, str]:
    cookie = ticket_exchange(session_id, ticket, entries)
    if cookie is None:
        return None, ""
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
        for kept in (_admitted, _refused):
            kept.drop(lambda key, _: key[0] == session_id)
        self._note(_note_loss, session_id)

    def _note(self, write: Callable[[uuid.UUID], None], session_id: uuid.UUID) -> None:
        now = time.monotonic()
        if now < self._noted.get((write, session_id), 0.0):
            return
        if len(self._noted) >= MOST:
            self._noted.clear()
        self._noted[write, session_id] = now + NOTE_EVERY.total_seconds()
        task = asyncio.get_running_loop().create_task(_write(write, session_id))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)


async def _write(write: Callable[[uuid.UUID], None], session_id: uuid.UUID) -> None:
    try:
        await _in_thread(PATIENCE_WITH_TABLES, _threads, write, session_id)
    except TimeoutError:
        log.warning("That session %s is used, or does not answer, could not be noted in time", session_id)


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
    now = time.monotonic()
    _ended.put(user_id, now, now + PATIENCE_WITH_TABLES + PATIENCE_WITH_ENGINE)
    _admitted.drop(lambda _, admitted: admitted.user_id == user_id)


def _allowed(session_id: uuid.UUID, cookie: str) -> _Allowed:
    at = timezone.now()
    entrance = entrance_of(session_id, cookie, at)
    if entrance is None:
        raise Refusal(
            401, "not_signed_in", "Sign in to open this session", "Your sign-in at the portal has ended.",
            "Open the session from its page.", _page_of(session_id), "Show the session",
        )  # fmt: skip
    session, user = entrance.session, entrance.user
    try:
        require_use(user, session)
    except DomainError as error:
        raise Refusal(403, "forbidden", "You may not open this session", error.detail, error.remedy) from error
    now = situation_of(session, at, ask=False)
    job = session.job
    if now.state is not State.READY or job is None:
        raise _not_there(session, now.state, now)
    entrance_renew(entrance, at)
    role = role_of(user, session.namespace)
    caller = {"user": user, "session": SimpleNamespace(session_key=entrance.sign_in_id)}
    found = partial(
        Admitted, session.pk, user.pk, key=token_for(job), caller=caller, is_use=_use_of(session.kind, role),
        notice=notice_of(now, at, session.is_personal, _page_of(session.pk)),
    )  # fmt: skip
    return _Allowed(session, job, address_known(job), lambda address: found(address=address))


def _not_there(session: WorkbenchSession, state: State, now: Situation | None = None) -> Refusal:
    """What is said of a session that no one can be let into now. One whose task runs may have been taken for lost: what
    is under way to it stays."""
    message, remedy, runs = (now.message, now.remedy, now.runs) if now is not None else ("", "", True)
    kind = Unknown if state is State.LOADING else Refusal
    return kind(
        503, f"session_{state.value}", name_of(session), f"{WAITING[state]} {message}".strip(), remedy,
        _page_of(session.pk), "Show what it waits for" if runs else "Show the session",
    )  # fmt: skip


def _use_of(kind: str, role: Role | None) -> Callable[[str, str], bool]:
    """What counts as use of a session, by one with this role in its namespace. Nothing of those who could not start it:
    a page that a viewer leaves open would hold the quota of others. Of a Jupyter not what its page asks by itself every
    few seconds: its kernels and terminals say themselves when they were used (`activity`)."""
    if role not in (Role.MEMBER, Role.MANAGER):
        return lambda method, path: False
    if kind == Kind.JUPYTER:
        return lambda method, path: method not in _READS
    return lambda method, path: True


def _page_of(session_id: uuid.UUID) -> str:
    return f"{settings.PUBLIC_URL}/sessions/{session_id}/"

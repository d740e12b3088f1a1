"""How far the streams of an attempt have come, watched once per process for all who follow it.

A nudge makes the tail look at once, a slow poll heals lost nudges and a message server that is away. Looking is one
small read per stream. Not here: reading lines (`frames`), who follows (`followers`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from channels.layers import get_channel_layer
from redis.exceptions import RedisError

from apps.accounts.socket_tasks import end_tasks, first_of
from apps.api.nudging import PAUSE
from apps.jobs.selectors import attempt_is_over
from apps.logs.frames import Frames
from apps.stores import group_of, log_store
from yardmaster.job.spec import Role
from yardmaster.logs.followed import FRESH, forget_followed, note_followed
from yardmaster.logs.keys import StreamKey
from yardmaster.logs.reading import Head
from yardmaster.logs.store import LogStore

log = logging.getLogger(__name__)

POLL = 1.0
SELDOM = 10.0
DEAF = 5.0
"""Seconds until a message server that was away is tried again."""


SHOWN_EVERY = 0.4
"""Seconds between two pictures of one unfinished line."""


@dataclass(frozen=True, slots=True)
class OpenLine:
    """What a task has written of its line `line`, seen at this time of the loop."""

    line: int
    text: str
    at: float


class Tail:
    """The heads of all streams of one attempt. `changed` is set, and replaced by a new one, when any has moved."""

    def __init__(self, store: LogStore, job_id: uuid.UUID, attempt: int) -> None:
        self.job_id, self.attempt = job_id, attempt
        self.heads: dict[StreamKey, Head] = {}
        self.open: dict[StreamKey, OpenLine] = {}
        """The newest picture of each stream's unfinished line."""
        self.is_over = False
        """The attempt is over for good: `heads` holds all that will ever be there."""
        self.changed = asyncio.Event()
        self.followers = 0
        self._store = store
        self._nudged: set[StreamKey] = set()
        self._wake = asyncio.Event()
        self._asked = 0.0
        self._noted = -FRESH

    async def run(self) -> None:
        """Watch until cancelled."""
        await first_of(self._listen(), self._watch())

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        moved: set[StreamKey] = set()
        next_poll = loop.time()
        while True:
            nudged, self._nudged = self._nudged, set()
            self._wake.clear()
            is_poll = loop.time() >= next_poll or not nudged <= self.heads.keys()
            try:
                moved = await self._look(None if is_poll else nudged | moved)
            except Exception:  # a broken disk or database: followers wait, and continue when it is well again
                log.exception("The logs of job %s cannot be looked at.", self.job_id)
                moved = set()
            if is_poll:
                next_poll = loop.time() + POLL
                await self._note_followed()
            # Nudges are thinned out, so what moved is looked at again, for the one that was left out.
            patience = PAUSE if moved else next_poll - loop.time()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, patience)):
                    await self._wake.wait()
            await asyncio.sleep(PAUSE / 5)  # lines come in bursts: fewer and fuller frames

    async def _look(self, streams: Collection[StreamKey] | None) -> set[StreamKey]:
        """Look at these streams, or at all there are; returns those that have moved."""
        is_over = streams is None and await self._asks_whether_over()
        heads = await asyncio.to_thread(self._heads_of, streams)
        moved = {stream for stream, head in heads.items() if self.heads.get(stream) != head}
        if moved or is_over != self.is_over:
            self.heads |= heads
            self.is_over = is_over or (self.is_over and not moved)
            changed, self.changed = self.changed, asyncio.Event()
            changed.set()
        return moved

    def _heads_of(self, streams: Collection[StreamKey] | None) -> dict[StreamKey, Head]:
        if streams is None:
            streams = self._store.keys(self.job_id, self.attempt)
        return {stream: self._store.head(stream) for stream in streams}

    async def _asks_whether_over(self) -> bool:
        """Asked before the heads are read, so that they are complete when it says yes. Seldom while streams are open:
        all of them end before an attempt is over, unless the disk was full just then."""
        now = asyncio.get_running_loop().time()
        if not all(head.ended for head in self.heads.values()) and now - self._asked < SELDOM:
            return self.is_over
        self._asked = now
        is_over: bool = await database_sync_to_async(attempt_is_over)(self.job_id, self.attempt)
        return is_over

    async def _listen(self) -> None:
        while True:
            try:
                await self._hear()
            except (RedisError, OSError, TimeoutError) as error:
                log.warning("New lines of job %s are seen by looking, not by being told: %s", self.job_id, error)
            await asyncio.sleep(DEAF)

    async def _hear(self) -> None:
        layer = get_channel_layer()
        if layer is None:
            return
        channel = await layer.new_channel()
        await layer.group_add(group_of(self.job_id), channel)
        try:
            while True:
                message = await layer.receive(channel)
                if message["type"] == "log.open":
                    self._show(message)
                    continue
                self._nudged.add(StreamKey(self.job_id, self.attempt, Role(message["role"]), message["index"]))
                self._wake.set()
        finally:
            with contextlib.suppress(RedisError, OSError):
                await layer.group_discard(group_of(self.job_id), channel)

    def _show(self, message: dict[str, Any]) -> None:
        """Pass on a picture of an unfinished line, not more often than readers can see it."""
        stream = StreamKey(self.job_id, message["attempt"], Role(message["role"]), message["index"])
        now = asyncio.get_running_loop().time()
        known = self.open.get(stream)
        if message["attempt"] != self.attempt or (known is not None and now - known.at < SHOWN_EVERY):
            return
        self.open[stream] = OpenLine(message["line"], message["text"], now)
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()

    async def _note_followed(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._noted >= FRESH / 3:
            self._noted = now
            await asyncio.to_thread(note_followed, self._store.root, self.job_id)


class Following:
    """Everything that followers share. One per event loop."""

    def __init__(self) -> None:
        self.frames = Frames(log_store())
        self._tails: dict[tuple[uuid.UUID, int], tuple[Tail, asyncio.Task[None]]] = {}

    @asynccontextmanager
    async def tail(self, job_id: uuid.UUID, attempt: int) -> AsyncIterator[Tail]:
        """The attempt's tail, shared; it is watched as long as anybody holds it."""
        key = job_id, attempt
        if key not in self._tails:
            tail = Tail(log_store(), job_id, attempt)
            self._tails[key] = tail, asyncio.create_task(tail.run())
        tail, task = self._tails[key]
        tail.followers += 1
        try:
            yield tail
        finally:
            tail.followers -= 1
            if not tail.followers:
                del self._tails[key]
                await end_tasks(task)
                if not any(job == job_id for job, _ in self._tails):
                    await asyncio.to_thread(forget_followed, self.frames.root, job_id)


_by_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Following] = WeakKeyDictionary()


def following() -> Following:
    """What is shared by the followers of the running event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _by_loop:
        _by_loop[loop] = Following()
    return _by_loop[loop]

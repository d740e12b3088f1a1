"""The watches of one process: one per kind, each in a thread of its own, for ever. They fill the store that is read
instead of the server, and tell which runs have changed. Where capacity is asked for, two more fill what is known of
that: of the nodes, and of the pods that are not ours.

A watch begins with a list and continues from the last version that the server has vouched for (a list's, a bookmark's):
what came after it is sent again after a break, and is known. Where the server no longer remembers that version (410),
or its history went back, and now and then anyway, everything is listed again and every run counts as changed. After a
failure a watch waits, longer each time, or as long as the server asks. Not here: what may be believed (`basis`).
"""

from __future__ import annotations

import logging
import queue
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from yardmaster.backoff import delay
from yardmaster.engines.kubernetes.capacity.store import SELECTORS, CapacityStore
from yardmaster.engines.kubernetes.client.api import Api, Stream
from yardmaster.engines.kubernetes.client.errors import Busy, Expired, trouble_of
from yardmaster.engines.kubernetes.client.objects import Raw
from yardmaster.engines.kubernetes.observe.store import KINDS, RunStore
from yardmaster.engines.kubernetes.render import names
from yardmaster.errors import YardmasterError
from yardmaster.ids import JobKey

log = logging.getLogger(__name__)

_TO_CLOSE = 2.0
"""Seconds."""

Clock = Callable[[], float]


@dataclass(frozen=True)
class Pace:
    """The clockwork of a watch, in seconds."""

    lasts: int = 75
    """After which the server is asked to end it. Less than `quiet`: of a kind of which nothing has happened since it
    began, a server sends no bookmark either, and such a watch is not dead."""
    quiet: float = 90.0
    """After which one that says nothing, and has not ended, is taken for dead."""
    stale_after: float = 4.0
    """How long after an interruption what it delivered is still used."""
    list_again: float = 1800.0
    """After which everything is listed again, in case an event was missed."""
    shortest_pause: float = 0.5
    longest_pause: float = 30.0


class Kept(Protocol):
    """What a watch fills."""

    def replace(self, kind: str, found: Iterable[Raw], version: str) -> set[JobKey]: ...
    def take(self, kind: str, happened: str, found: Raw) -> JobKey | None: ...
    def vouch(self, kind: str, version: str) -> None: ...
    def mark(self, kind: str) -> int: ...


class KindWatch:
    """The watch of one kind. `once` is one stream from its begin to its end, to be called again and again."""

    def __init__(
        self,
        api: Api,
        kind: str,
        store: Kept,
        tell: Callable[[JobKey], None],
        pace: Pace,
        clock: Clock,
        selectors: tuple[str, str] = (names.ours(), ""),
    ) -> None:
        self.kind = kind
        self._labels, self._fields = selectors
        self._api, self._store, self._tell, self._pace, self._clock = api, store, tell, pace, clock
        self._is_listed, self._must_list = False, True
        self._list_at = 0.0
        self._stream: Stream | None = None
        """The one that is open."""
        self._is_closed, self._broken_at = False, 0.0
        self.has_connected = False
        """Whether the last stream stood for longer than any pause lasts."""
        self.has_listed = False
        """Whether the last stream began with a list."""

    def is_live(self) -> bool:
        """Whether what it delivered is complete, and not older than a moment."""
        if self._must_list or not self._is_listed:
            return False
        return self._stream is not None or self._clock() - self._broken_at < self._pace.stale_after

    def relist(self) -> None:
        """Believe nothing of what was reported before, from now on."""
        self._must_list = True

    def close(self) -> None:
        """End the stream, from another thread."""
        self._is_closed = True
        stream = self._stream
        if stream is not None:
            stream.cut()

    def once(self) -> None:
        """List where that is due, then follow. Returns when the server ends the stream; raises where it breaks."""
        self.has_received = self.has_connected = False
        self.has_listed = self._must_list or not self._is_listed or self._clock() >= self._list_at
        if self.has_listed:
            self._list()
        version, opened_at = str(self._store.mark(self.kind)), self._clock()
        try:
            with self._api.watch(
                self.kind, self._labels, version, self._pace.lasts, self._pace.quiet, self._fields
            ) as stream:
                self._stream = stream
                if self._is_closed:
                    return
                for event in stream:
                    self._take(event)
                    self.has_received = True
                    if self._must_list:
                        return
        except Expired:
            self._must_list = True
            raise
        finally:
            if self._stream is not None:
                self._stream, self._broken_at = None, self._clock()
                self.has_connected = self._broken_at - opened_at > self._pace.longest_pause

    def _list(self) -> None:
        self._is_listed = self._must_list = False  # asked to list again from now on: this list does not count
        found, version = self._api.find_paged(self.kind, labels=self._labels, fields=self._fields)
        changed = self._store.replace(self.kind, found, version)
        self._list_at = self._clock() + self._pace.list_again * random.uniform(0.8, 1.0)
        self._is_listed, self._broken_at = True, self._clock()
        for key in changed:
            self._tell(key)

    def _take(self, event: dict[str, Any]) -> None:
        happened, found = event.get("type", ""), event.get("object") or {}
        if happened == "ERROR":
            self._must_list = True
            raise trouble_of(int(found.get("code") or 500), str(found.get("message", "")).encode(), "watch")
        if happened == "BOOKMARK":
            self._store.vouch(self.kind, found["metadata"]["resourceVersion"])
            return
        key = self._store.take(self.kind, happened, found)
        if key is not None:
            self._tell(key)


class Watching:
    """All watches of one process, from `start` to `close`. May be shared by threads."""

    def __init__(
        self, api: Api, namespace_prefix: str, pace: Pace | None = None, clock: Clock = time.monotonic
    ) -> None:
        self._pace = pace or Pace()
        self._lock = threading.Lock()
        self._closed, self._threads = threading.Event(), dict[KindWatch, threading.Thread]()
        self._readers: list[queue.SimpleQueue[JobKey | None]] = []
        self.store = RunStore(namespace_prefix)
        self.watches = tuple(KindWatch(api, kind, self.store, self._tell, self._pace, clock) for kind in KINDS)
        self.capacity = CapacityStore()
        self.capacity_watches = tuple(
            KindWatch(api, kind, self.capacity, self._tell, self._pace, clock, selectors)
            for kind, selectors in SELECTORS.items()
        )

    def start(self) -> None:
        """Begin, unless that was done."""
        self._start(self.watches)

    def start_capacity(self) -> None:
        """Begin to watch nodes and the pods on them as well, unless that was done: for those who ask about capacity."""
        self._start(self.capacity_watches)

    def is_live(self) -> bool:
        """Whether the store may be read: every watch has begun, and none has been broken for long."""
        return all(watch.is_live() for watch in self.watches)

    def knows_capacity(self) -> bool:
        """Whether `capacity` may be read."""
        return all(watch.is_live() for watch in self.capacity_watches)

    def relist(self) -> None:
        """Something does not fit: the store is not read again before everything has been listed."""
        for watch in self.watches:
            watch.relist()

    def keys(self) -> Iterator[JobKey]:
        """Runs that may have changed, from this call on, those that are known first. Blocks between them; ends with
        `close`."""
        mine: queue.SimpleQueue[JobKey | None] = queue.SimpleQueue()
        self.start()
        with self._lock:
            self._readers.append(mine)
        for key in self.store.runs():
            mine.put(key)
        if self._closed.is_set():
            mine.put(None)
        return self._read(mine)

    def close(self) -> None:
        """Readers and open streams end at once. What is being listed is waited for, a moment."""
        self._closed.set()
        with self._lock:
            threads = [*self._threads.items()]
            for reader in self._readers:
                reader.put(None)
        for watch, _ in threads:
            watch.close()
        deadline = time.monotonic() + _TO_CLOSE
        for _, thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _start(self, watches: Iterable[KindWatch]) -> None:
        with self._lock:
            for watch in watches:
                if watch not in self._threads and not self._closed.is_set():
                    thread = threading.Thread(
                        target=self._follow, args=(watch,), name=f"watch-{watch.kind}", daemon=True
                    )
                    self._threads[watch] = thread
                    thread.start()

    def _read(self, mine: queue.SimpleQueue[JobKey | None]) -> Iterator[JobKey]:
        try:
            yield from iter(mine.get, None)
        finally:
            with self._lock:
                self._readers.remove(mine)

    def _tell(self, key: JobKey) -> None:
        with self._lock:
            for reader in self._readers:
                reader.put(key)

    def _follow(self, watch: KindWatch) -> None:
        shortest, longest = timedelta(seconds=self._pace.shortest_pause), timedelta(seconds=self._pace.longest_pause)
        failures = 0
        while not self._closed.is_set():
            rest = self._one_stream(watch)
            failures = 0 if rest is None else failures + 1
            if rest is not None:
                pause = delay(failures, shortest, longest).total_seconds()
                self._closed.wait(max(rest, pause * random.uniform(0.5, 1.0)))

    def _one_stream(self, watch: KindWatch) -> float | None:
        """None where it went well: the next may begin at once. Else how long the server wants to be left alone."""
        try:
            watch.once()
        except Exception as error:  # noqa: BLE001 - the top of the loop: the caller reports what it is
            return 0.0 if self._closed.is_set() else _after_trouble(watch, error)
        # After one that ended without a word, and soon, comes a pause: neither watches nor lists shall come as a storm.
        return None if watch.has_received or watch.has_connected else 0.0


def _after_trouble(watch: KindWatch, error: Exception) -> float | None:
    """The same after a stream that broke. An odd event must not end the watching."""
    if isinstance(error, Expired):
        log.info("The watch of %s restarts: %s", watch.kind, error)
        return None if watch.has_received or not watch.has_listed else 0.0
    if isinstance(error, YardmasterError):
        log.warning("The watch of %s broke: %s", watch.kind, error)
        return error.seconds if isinstance(error, Busy) else 0.0
    log.error("Watching %s failed", watch.kind, exc_info=error)
    watch.relist()
    return 0.0

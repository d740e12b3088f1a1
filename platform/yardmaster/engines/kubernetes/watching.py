"""Which runs have changed: one watch per kind, each in a thread of its own, for ever.

A watch goes on from the version that it has heard of last (bookmarks move it along in quiet times); where the server no
longer remembers that one (410), everything is listed anew and every run counts as changed. After a failure a watch
waits, longer each time. Not here: what has changed. Only labels are read, and an event is a reason to look.
"""

from __future__ import annotations

import logging
import queue
import random
import threading
import time
from collections.abc import Iterator
from typing import Any

from yardmaster.engines.kubernetes import names
from yardmaster.engines.kubernetes.api import Api
from yardmaster.engines.kubernetes.troubles import Expired, trouble_of
from yardmaster.errors import YardmasterError
from yardmaster.ids import JobKey

log = logging.getLogger(__name__)

KINDS = ("Pod", "Job", "StatefulSet")
LASTS = 300
"""Seconds after which the server is asked to end a watch."""
SHORTEST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
_TOO_SHORT = 1.0


class Watching:
    """The watches of one reader. They begin at once, and end with `close`."""

    def __init__(self, api: Api, namespace_prefix: str, longest_pause: float = LONGEST_PAUSE) -> None:
        self._api, self._prefix, self._longest = api, namespace_prefix, longest_pause
        self._changed: queue.SimpleQueue[JobKey | None] = queue.SimpleQueue()
        self._closed = threading.Event()
        for kind in KINDS:
            threading.Thread(target=self._follow, args=(kind,), name=f"watch-{kind}", daemon=True).start()

    def keys(self) -> Iterator[JobKey]:
        """Until somebody closes; blocks between them."""
        try:
            yield from iter(self._changed.get, None)
        finally:
            self.close()

    def close(self) -> None:
        """Each watch ends when it next hears of something, or by itself."""
        self._closed.set()
        self._changed.put(None)

    def _follow(self, kind: str) -> None:
        watch, pause = _Watch(kind), SHORTEST_PAUSE
        while not self._closed.is_set():
            begun = time.monotonic()
            try:
                self._once(watch)
                failed = time.monotonic() - begun < _TOO_SHORT and not watch.heard
            except Expired:
                watch.version, failed = "", watch.relisted_for_nothing
            except YardmasterError as error:
                log.warning("The watch of %s broke: %s", kind, error)
                failed = True
            except Exception:  # the top of the loop: an odd event must not end the watching
                log.exception("Watching %s failed", kind)
                watch.version, failed = "", True
            pause = min(self._longest, pause * 2) if failed else SHORTEST_PAUSE
            if failed:
                self._closed.wait(pause * random.uniform(0.5, 1.0))

    def _once(self, watch: _Watch) -> None:
        """One stream, from its begin to its end."""
        watch.heard = False
        watch.relisted_for_nothing = not watch.version
        if not watch.version:
            found, watch.version = self._api.list_metadata(watch.kind, names.ours())
            for one in found:
                self._note(one)
        for event in self._api.watch(watch.kind, names.ours(), watch.version, LASTS):
            if self._closed.is_set():
                return
            watch.heard = True
            self._take(watch, event)

    def _take(self, watch: _Watch, event: dict[str, Any]) -> None:
        found = event.get("object") or {}
        if event.get("type") == "ERROR":
            watch.version = ""
            raise trouble_of(int(found.get("code") or 500), str(found.get("message", "")).encode(), "watch")
        watch.relisted_for_nothing = False
        watch.version = found["metadata"]["resourceVersion"]
        if event.get("type") != "BOOKMARK":
            self._note(found)

    def _note(self, found: dict[str, Any]) -> None:
        metadata = found["metadata"]
        key = names.key_from_labels(metadata.get("labels") or {})
        if key is not None and str(metadata.get("namespace", "")).startswith(self._prefix):
            self._changed.put(key)


class _Watch:
    """How far one watch has come."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.version = ""
        self.heard = False
        self.relisted_for_nothing = False
        """It began with a list and was refused before the first event: listing again at once would be a storm."""

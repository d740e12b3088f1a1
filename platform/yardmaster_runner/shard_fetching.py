"""Shards on their way into the folder: several at a time, those that a reader waits for before those fetched ahead."""

from __future__ import annotations

import threading
import time
from typing import Callable, Dict, List, Optional, Tuple

from yardmaster_runner.exits import STAGE_IN_FAILED, CannotRun
from yardmaster_runner.order import Bundle, RemoteFile
from yardmaster_runner.shard_folder import Busy, NoSpace, ShardFolder

THREADS = 8
POLL = 0.05
SPACE_PATIENCE = 60.0
"""Seconds that a reader waits for others to close what they have open."""

Fetch = Callable[[Bundle, RemoteFile, str, str], None]
"""Fetches a file of a version to a path, by way of a folder for what is incomplete. Raises `CannotRun`."""


class Coming:
    """One shard on its way."""

    def __init__(self, bundle: Bundle, file: RemoteFile, is_urgent: bool) -> None:
        self.bundle = bundle
        self.file = file
        self.is_urgent = is_urgent
        self.is_taken = False
        self.error: Optional[Exception] = None
        self.over = threading.Event()


class ShardFetching:
    """Its threads are daemons: they end with the runner."""

    def __init__(
        self, folder: ShardFolder, fetch: Fetch, threads: int = THREADS, space_patience: float = SPACE_PATIENCE
    ) -> None:
        self._folder = folder
        self._fetch = fetch
        self._threads = threads
        self._space_patience = space_patience
        self._changed = threading.Condition()
        self._coming: Dict[Tuple[str, str], Coming] = {}
        self._started = 0

    def ahead(self, bundle: Bundle, files: List[RemoteFile]) -> None:
        """These will be wanted soon, in this order. Those for which there is no space are passed over."""
        for file in files:
            if not self._folder.keep_for_soon(bundle.version, file):
                self._add(bundle, file, is_urgent=False)

    def now(self, bundle: Bundle, file: RemoteFile) -> "Coming":
        """A reader waits for this one. When it is over, the shard is here for a moment, or `error` says why not."""
        return self._add(bundle, file, is_urgent=True)

    def _add(self, bundle: Bundle, file: RemoteFile, *, is_urgent: bool) -> Coming:
        key = (bundle.version, file.path)
        with self._changed:
            one = self._coming.get(key)
            if one is None:
                one = self._coming[key] = Coming(bundle, file, is_urgent)
                if self._started < self._threads:
                    self._started += 1
                    threading.Thread(target=self._work, daemon=True).start()
                self._changed.notify()
            one.is_urgent = one.is_urgent or is_urgent
            return one

    def _work(self) -> None:
        while True:
            one = self._take()
            try:
                self._bring(one)
            except Exception as error:  # noqa: BLE001 - handed to the reader that waits, which raises it
                one.error = error
            with self._changed:
                del self._coming[(one.bundle.version, one.file.path)]
            one.over.set()

    def _take(self) -> Coming:
        with self._changed:
            while True:
                free = [one for one in self._coming.values() if not one.is_taken]
                if free:
                    one = next((one for one in free if one.is_urgent), free[0])
                    one.is_taken = True
                    return one
                self._changed.wait()

    def _bring(self, one: Coming) -> None:
        """Afterwards it is here, unless it was only to be fetched ahead and that cannot be now."""
        until = time.monotonic() + self._space_patience
        while True:
            try:
                reservation = self._folder.reserve(one.bundle.version, one.file, is_urgent=one.is_urgent)
                break
            except Busy:
                if not one.is_urgent:
                    return
            except NoSpace as error:
                if not one.is_urgent:
                    return
                if time.monotonic() > until:
                    message = "%s of %d bytes are full of shards that readers have open: %s"
                    message = message % (self._folder.folder, self._folder.limit, error)
                    raise CannotRun(STAGE_IN_FAILED, "StageInFailed", message) from error
            time.sleep(POLL)
        if reservation is None:
            return
        try:
            self._fetch(one.bundle, one.file, reservation.path, self._folder.incoming)
        finally:
            reservation.end(is_ahead=not one.is_urgent)

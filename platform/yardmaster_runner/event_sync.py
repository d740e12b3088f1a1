"""Brings the event files of the jobs that a TensorBoard or a Spark history shows into its data folder, and keeps them
up to date.

A thread of the runner, which has the token, asks the portal every two seconds what changed, and appends what is new.
Bytes are fetched into a file beside the folder first, so that a file there only ever grows by bytes that have all come.
The portal and its store may be away for as long as they like: nothing of it ends the task. What is held is bounded.

Not here: what a listing means (`board_files`), and reading the files (`workbench.event_reading`).
"""

from __future__ import annotations

import contextlib
import errno
import http.client
import os
import queue
import shutil
import threading
import time
import traceback
from typing import Callable, Dict, FrozenSet, List, Optional, Sequence, Tuple
from urllib.parse import urljoin

from yardmaster_runner.answers import LATER_STATUSES, PortalAway, PortalRefused, PortalRejected
from yardmaster_runner.board_files import BoardFile, Listing, Segment, chosen, newest, read_listing, without
from yardmaster_runner.download import REDIRECTS, TIMEOUT, AddressRefused
from yardmaster_runner.exits import note
from yardmaster_runner.http_hosts import Hosts, NetworkTrouble
from yardmaster_runner.patience import Backoff
from yardmaster_runner.task_api import TaskApi

READERS = ("tensorboard", "spark_history")
"""The programs that this is for."""
THREADS = 6
MOST_FILES = 50_000
"""That are held, or wanted. While pages are read, some more."""
SURPLUS = 5_000
FOLDERS_AT_ONCE = 20
"""That are new, and whose files one request asks for."""
ROUND = 5.0
"""Seconds of fetching after which the portal is asked again, so that a long first sync holds up no new step."""
PIECE = 256 << 10
TRIES = 3
"""Rounds in which a file is refused before it is given up, until it changes."""
ADDRESSES_LAST = 300.0
"""Seconds for which the portal's addresses of files are good at least."""
FIRST_PAUSE = 1.0
_OF_NAMES = (errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.EINVAL, errno.ELOOP)
MB = 1e6


class EventSync(threading.Thread):
    """Runs until told to finish. `say` writes a line into the task's log. `most` bounds the bytes held."""

    def __init__(self, api: TaskApi, folder: str, scratch: str, most: int, say: Callable[[str], None]) -> None:
        super().__init__(name="event-sync", daemon=True)
        self._api = api
        self._folder = folder
        self._scratch = scratch
        self._most = most
        self._say = say
        self._cursor = ""
        self._shown: FrozenSet[str] = frozenset()
        self._wanted: Dict[str, BoardFile] = {}
        """Listed, and not yet held in full."""
        self._held = held_below(folder)
        self._refusals: Dict[Tuple[str, int], int] = {}
        self._listed_at = time.monotonic()
        """When the oldest of the addresses in `_wanted` may have been made."""
        self._has_left_out = self._said_first = self._said_full = self._said_selection = False
        self._too_many = 0
        """Files of this round that are more than `MOST_FILES`."""
        self._trouble = ""
        self._backoff = Backoff(first=FIRST_PAUSE)
        self._finishing = threading.Event()
        self._tasks: "queue.Queue[Optional[Callable[[], None]]]" = queue.Queue()
        self._threads: List[threading.Thread] = []

    def finish(self) -> None:
        """Ask for nothing any more. Returns at once."""
        self._finishing.set()
        for _ in self._threads:
            self._tasks.put(None)

    def run(self) -> None:
        while not self._finishing.is_set():
            try:
                pause = self.sync_once()
            except (PortalAway, PortalRefused, PortalRejected, NetworkTrouble, AddressRefused, ValueError) as error:
                pause = self._failed(str(error))
            except OSError as error:
                pause = self._failed("the event files cannot be written: %s" % error)
            except Exception:  # noqa: BLE001 - TensorBoard shows what is there, and the next round may go better
                note("fetching event files failed:\n" + traceback.format_exc())
                pause = self._failed("fetching event files failed")
            self._finishing.wait(pause)

    def sync_once(self) -> float:
        """Ask what changed and fetch it, or some of it where it takes long. Seconds until the next round. Raises what
        stood in the way of the first thing that failed; all else was fetched."""
        listing = self._list()
        wanted = [one for one in self._wanted.values() if self._refusals.get((one.path, one.size), 0) < TRIES]
        choice = chosen(wanted, self._held, self._most, MOST_FILES)
        self._remove(choice.removed)
        is_done = self._fetch_all(choice.fetched)
        self._wanted = {one.path: one for one in choice.fetched if self._held.get(one.path, 0) != one.size}
        self._tell(listing, len({one.path for one in choice.left_out}.union(choice.removed)), is_done)
        self._backoff.reset()
        self._trouble = ""
        return listing.wait if is_done else 0.0

    def _list(self) -> Listing:
        """All pages of what changed: into `_wanted`. Folders that are shown no more are removed."""
        lists_all, self._too_many = not self._cursor, 0
        if not self._wanted:
            self._listed_at = time.monotonic()
        listing = self._read(self._cursor)
        self._cursor = listing.cursor
        # What is shown since now may have files that did not change since the last answer.
        new = () if lists_all else tuple(sorted(listing.folders - self._shown))
        for begin in range(0, len(new), FOLDERS_AT_ONCE):
            self._read("", new[begin : begin + FOLDERS_AT_ONCE])
        self._shown = listing.folders
        self._wanted = without(self._wanted, listing.folders)
        self._remove_all_but(listing.folders)
        return listing

    def _read(self, cursor: str, only: Sequence[str] = ()) -> Listing:
        """All pages from a cursor on, of all folders or of these, into `_wanted`; the last one."""
        while True:
            listing = read_listing(self._api.board(cursor, only))
            cursor = listing.cursor
            self._say_selection(listing.selection)
            for one in listing.files:
                self._wanted.pop(one.path, None)
                if self._held.get(one.path) != one.size:
                    self._wanted[one.path] = one
            if not listing.more or len(self._wanted) >= MOST_FILES + SURPLUS:
                self._leave_out_the_oldest()
            if not listing.more or self._finishing.is_set():
                return listing

    def _leave_out_the_oldest(self) -> None:
        kept = newest(self._wanted, MOST_FILES)
        self._too_many += len(self._wanted) - len(kept)
        self._wanted = kept

    def _remove_all_but(self, folders: FrozenSet[str]) -> None:
        with os.scandir(self._folder) as entries:
            gone = [one.path for one in entries if one.is_dir(follow_symlinks=False) and one.name not in folders]
        for path in gone:
            shutil.rmtree(path, ignore_errors=True)
        if gone:
            self._held = held_below(self._folder)
            if self._has_left_out:
                self._has_left_out, self._cursor = False, ""  # there may be space now: all are listed again

    def _remove(self, paths: Sequence[str]) -> None:
        """Make space: TensorBoard shows no more of a run whose folder is gone."""
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self._folder, *path.split("/")))
            self._held.pop(path, None)
            folder = os.path.dirname(path)
            with contextlib.suppress(OSError):  # others are in it
                while folder:
                    os.rmdir(os.path.join(self._folder, folder))
                    folder = os.path.dirname(folder)

    def _fetch_all(self, files: Sequence[BoardFile]) -> bool:
        """Several at once, for a while. Whether that was all; raises the first error."""
        until = time.monotonic() + ROUND
        errors: List[Exception] = []
        waiting = list(reversed(files))
        lock = threading.Lock()

        def work() -> None:
            while not self._finishing.is_set() and time.monotonic() < until:
                with lock:
                    if not waiting:
                        return
                    file = waiting.pop()
                try:
                    self._fetch(file, lock)
                except Exception as error:  # noqa: BLE001 - it is raised below, in the thread that waits
                    if not self._is_given_up(file, error):
                        errors.append(error)

        if len(files) <= 1:
            work()
        else:
            self._in_threads(work)
        if errors:
            raise errors[0]
        return not waiting

    def _is_given_up(self, file: BoardFile, error: Exception) -> bool:
        """Whether the file cannot be had, so that it does not hold up the others: its object is gone, or its name is
        none here. Of a network or a disk, which all files share, nothing is given up."""
        if isinstance(error, OSError) and error.errno not in _OF_NAMES:
            return False
        if not isinstance(error, (AddressRefused, OSError)):
            return False
        if isinstance(error, AddressRefused) and time.monotonic() - self._listed_at > ADDRESSES_LAST:
            return False  # it may have expired: all is listed again, with new ones
        key = (file.path, file.size)
        self._refusals[key] = self._refusals.get(key, 0) + 1
        if self._refusals[key] < TRIES:
            return False
        note("the event file %s is not shown: %s" % (file.path, error))
        return True

    def _in_threads(self, work: Callable[[], None]) -> None:
        """Call it in each of the threads, which stay for the next round with their connections; wait for all."""
        ended = threading.Semaphore(0)

        def once() -> None:
            try:
                work()
            finally:
                ended.release()

        while len(self._threads) < THREADS:
            thread = threading.Thread(target=self._perform, daemon=True, name="event-sync-%d" % len(self._threads))
            self._threads.append(thread)
            thread.start()
        for _ in self._threads:
            self._tasks.put(once)
        for _ in self._threads:
            while not ended.acquire(timeout=1.0):
                if self._finishing.is_set():
                    return

    def _perform(self) -> None:
        while True:
            task = self._tasks.get()
            if task is None:
                return
            task()

    def _fetch(self, file: BoardFile, lock: threading.Lock) -> None:
        """Append what the file lacks, segment by segment."""
        path = os.path.join(self._folder, *file.path.split("/"))
        held = self._held.get(file.path, 0)
        if held > file.size:
            with contextlib.suppress(FileNotFoundError):
                os.truncate(path, 0)
            held = 0
        temporary = os.path.join(self._scratch, "%d" % threading.get_ident())
        os.makedirs(self._scratch, exist_ok=True)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        for segment in file.segments:
            if segment.start + segment.size <= held:
                continue
            try:
                fetch(self._api.portal.hosts, segment, held - segment.start, temporary)
                append(temporary, path)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(temporary)
            held = segment.start + segment.size
            with lock:
                self._held[file.path] = held

    def _tell(self, listing: Listing, left_out: int, is_done: bool) -> None:
        left_out += self._too_many
        self._has_left_out = self._has_left_out or left_out > 0
        if is_done and not self._said_first:
            self._said_first = True
            size = sum(self._held.values()) / MB
            self._say("%d event files (%.1f MB) of %d jobs are here" % (len(self._held), size, len(listing.folders)))
        if left_out and not self._said_full:
            self._said_full = True
            most = "at most %d files and %.0f MB, those that were begun last" % (MOST_FILES, self._most / MB)
            self._say("%d event files are left out: this session holds %s" % (left_out, most))

    def _say_selection(self, words: str) -> None:
        """Once: the numbers change with each job, and are on the session's page."""
        if words and not self._said_selection:
            self._said_selection = True
            self._say(words)

    def _failed(self, trouble: str) -> float:
        """How long to wait. What was listed is listed again: addresses may have expired."""
        self._cursor, self._wanted = "", {}
        self._held = held_below(self._folder)
        if trouble != self._trouble:
            self._trouble = trouble
            self._say("event files are not up to date: %s" % trouble)
        return self._backoff.next()


def held_below(folder: str) -> Dict[str, int]:
    """The size of each file, by its path in the folder."""
    found = {}
    for below, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(below, name)
            with contextlib.suppress(OSError):
                found[os.path.relpath(path, folder).replace(os.sep, "/")] = os.lstat(path).st_size
    return found


def fetch(hosts: Hosts, segment: Segment, skipped: int, target: str) -> None:
    """The bytes of the segment behind the first `skipped`, into the file `target`. Raises `NetworkTrouble`, and
    `AddressRefused` where the store does not serve the address any more."""
    skipped = max(0, skipped)
    response, url = _open(hosts, segment, skipped)
    try:
        if response.status == 200:  # a store that knows no ranges
            _discard(response, skipped)
        with open(target, "wb") as file:
            left = segment.size - skipped
            while left:
                data = response.read(min(PIECE, left))
                if not data:
                    raise NetworkTrouble("%d bytes are missing" % left)
                file.write(data)
                left -= len(data)
        if response.read(1):
            raise NetworkTrouble("there are more bytes than were listed")
    except (OSError, http.client.HTTPException, NetworkTrouble) as error:
        response.close()
        hosts.forget(url)
        raise NetworkTrouble("an event file was interrupted: %s" % (error or type(error).__name__)) from error


def append(source: str, target: str) -> None:
    """The bytes of one file behind those of another, which is made where it is not there."""
    with open(source, "rb") as read, open(target, "ab") as written:
        shutil.copyfileobj(read, written, PIECE)


def _open(hosts: Hosts, segment: Segment, skipped: int) -> Tuple[http.client.HTTPResponse, str]:
    headers = {"Accept-Encoding": "identity"}
    if skipped:
        headers["Range"] = "bytes=%d-%d" % (skipped, segment.size - 1)
    url = segment.url
    for _ in range(REDIRECTS):
        response = hosts.request("GET", url, headers, None, TIMEOUT)
        status, where = response.status, response.headers.get("Location")
        if status in (200, 206) and (status == 200 or skipped):
            return response, url
        response.close()
        hosts.forget(url)
        if status in (301, 302, 303, 307, 308) and where:
            url = urljoin(url, where)
        elif 400 <= status < 500 and status not in LATER_STATUSES:
            raise AddressRefused("the store answered %d to a request for an event file" % status)
        else:
            raise NetworkTrouble("the store answered %d to a request for an event file" % status)
    raise NetworkTrouble("too many redirects")


def _discard(response: http.client.HTTPResponse, size: int) -> None:
    while size:
        data = response.read(min(PIECE, size))
        if not data:
            raise NetworkTrouble("%d bytes are missing" % size)
        size -= len(data)

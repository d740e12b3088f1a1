"""Bring code and inputs to the task: fetch what the cache lacks, several files at a time, then put them in place.

Data is hard-linked out of the cache (where that cannot be, symbolically), code is copied, since scripts write beside
themselves. A file that does not match its checksum is fetched once more, then the task ends with `CorruptInput`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import queue
import shutil
import threading
import time
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from yardmaster_runner.cache import CachedVersion, inside
from yardmaster_runner.download import AddressRefused, Changed, Corrupt, DiskFull, download
from yardmaster_runner.exits import PORTAL_UNREACHABLE, STAGE_IN_FAILED, CannotRun
from yardmaster_runner.http_hosts import Hosts, NetworkTrouble
from yardmaster_runner.order import Bundle, FilesPage, Order, RemoteFile
from yardmaster_runner.patience import Backoff

THREADS = 6
PATIENCE = 600.0
"""How long a store may be away before we give up."""
NEW_ADDRESS_TRIES = 3
MOST_FOLDERS = 1_000
"""That are known to be there: a list of a million files is never here as a whole, and neither are their folders."""


def everything(file: RemoteFile) -> bool:
    """Wanted is each file."""
    return True


class Stager:
    """Fetches bundles into the cache and puts them in place, page by page. `renew` gives the order again, with fresh
    read URLs; `more` the files of a version behind a path."""

    def __init__(
        self,
        hosts: Hosts,
        cache_dir: str,
        renew: Callable[[], Order],
        more: Callable[[str, str], FilesPage],
        patience: float = PATIENCE,
    ) -> None:
        self._hosts = hosts
        self._cache_dir = cache_dir
        self._renew = renew
        self._more = more
        self._after: Optional[str] = None
        """Of the page that is being put in place, the path that it stands behind."""
        self._patience = patience
        self._renewing = threading.Lock()
        self._fresh: Dict[Tuple[str, str], str] = {}
        self._renewed = 0

    def place(
        self, bundle: Bundle, folder: str, *, is_copied: bool, wanted: Callable[[RemoteFile], bool] = everything
    ) -> None:
        """What is `wanted` of `bundle` is in `folder` afterwards; each file is asked about once, in their order. Files
        of the same content already there are left alone."""
        version = CachedVersion(self._cache_dir, bundle)
        with version.locked():
            os.makedirs(folder, exist_ok=True)
            made: Set[str] = set()
            for number, page in enumerate(self.pages(bundle)):
                files = [file for file in page if wanted(file)]
                version.turn_to(number, files)
                self._fill(version, bundle)
                for file in files:
                    target = inside(folder, file.path)
                    _make_folder_of(target, made)
                    _put(version.path_of(file), target, is_copied=is_copied)

    def pages(self, bundle: Bundle) -> Iterator[Sequence[RemoteFile]]:
        """All files, some at a time: of many, the list is never here as a whole."""
        if not bundle.next:
            yield bundle.files
            return
        page, self._after = FilesPage(bundle.files, bundle.next), ""
        try:
            yield page.files
            while page.next:
                self._after = page.next
                page, self._fresh = self._more(bundle.version, page.next), {}
                yield page.files
        finally:
            self._after = None

    def _fill(self, version: CachedVersion, bundle: Bundle) -> None:
        missing = version.missing()
        if not missing:
            return
        self._require_space(missing)
        version.prepare()
        failure = self._fetch_all(version, bundle, missing)
        if failure is not None:
            raise failure
        version.keep(missing)

    def _require_space(self, missing: List[RemoteFile]) -> None:
        needed, free = sum(file.size for file in missing), shutil.disk_usage(self._cache_dir).free
        if needed > free:
            message = "the inputs need %d bytes in %s, only %d are free" % (needed, self._cache_dir, free)
            raise CannotRun(STAGE_IN_FAILED, "DiskFull", message)

    def _fetch_all(self, version: CachedVersion, bundle: Bundle, missing: List[RemoteFile]) -> Optional[Exception]:
        """Fetch with a few threads; the first failure ends all. They are daemons, so that a signal can end us."""
        waiting: "queue.SimpleQueue[RemoteFile]" = queue.SimpleQueue()
        for file in missing:
            waiting.put(file)
        failures: List[Exception] = []

        def work() -> None:
            while not failures:
                try:
                    file = waiting.get_nowait()
                except queue.Empty:
                    return
                try:
                    self._fetch(version, bundle, file)
                except Exception as error:  # noqa: BLE001 - handed to the thread that waits, which raises it
                    failures.append(error)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(min(THREADS, len(missing)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return failures[0] if failures else None

    def _fetch(self, version: CachedVersion, bundle: Bundle, file: RemoteFile) -> None:
        self.fetch(bundle, file, version.path_of(file), version.incoming)

    def fetch(self, bundle: Bundle, file: RemoteFile, destination: str, incoming: str) -> None:
        """One file of `bundle`, checked, at `destination`. Raises `CannotRun` where trying again will not help."""
        backoff, until = Backoff(), time.monotonic() + self._patience
        was_corrupt, refusals = False, 0
        while True:
            url = self._fresh.get((bundle.version, file.path), file.url)
            generation = self._renewed
            try:
                return download(self._hosts, file, url, destination, incoming)
            except DiskFull as error:
                raise CannotRun(STAGE_IN_FAILED, "DiskFull", str(error)) from error
            except Changed as error:
                message = "%s: %s. Scan the dataset again and use its new version" % (_name(bundle, file), error)
                raise CannotRun(STAGE_IN_FAILED, "InputChanged", message) from error
            except Corrupt as error:
                if was_corrupt:
                    message = "%s is corrupt, twice: %s" % (_name(bundle, file), error)
                    raise CannotRun(STAGE_IN_FAILED, "CorruptInput", message) from error
                was_corrupt = True
            except AddressRefused as error:
                refusals += 1
                if refusals >= NEW_ADDRESS_TRIES:
                    message = "%s cannot be fetched: %s" % (_name(bundle, file), error)
                    raise CannotRun(STAGE_IN_FAILED, "StageInFailed", message) from error
                self._renew_addresses(bundle, file, generation)
            except NetworkTrouble as error:
                if time.monotonic() > until:
                    message = "%s cannot be fetched: %s" % (_name(bundle, file), error)
                    raise CannotRun(PORTAL_UNREACHABLE, "PortalUnreachable", message) from error
                time.sleep(backoff.next())

    def page_behind(self, bundle: Bundle, path: str) -> Tuple[RemoteFile, ...]:
        """The first files of the version that stand behind this path."""
        return self._more(bundle.version, path).files

    def _renew_addresses(self, bundle: Bundle, file: RemoteFile, generation: int) -> None:
        """Ask for the order or the page again, once for all threads that were refused with the same addresses."""
        with self._renewing:
            if self._renewed != generation:
                return
            if bundle.next:
                page = self._more(bundle.version, just_before(file.path) if self._after is None else self._after)
                self._fresh.update({(bundle.version, one.path): one.url for one in page.files})
            else:
                order = self._renew()
                bundles = [one for one in (order.code, *order.inputs, order.checkpoint) if one is not None]
                self._fresh = {(one.version, file.path): file.url for one in bundles for file in one.files}
            self._renewed += 1


def just_before(path: str) -> str:
    """A text that stands before this path and behind the one before it, in the order of characters; or some before."""
    last = ord(path[-1]) - 1
    return path[:-1] + ("" if last < 1 or 0xD800 <= last <= 0xDFFF else chr(last) + chr(0x10FFFF))


def _name(bundle: Bundle, file: RemoteFile) -> str:
    return "%s (of %s)" % (file.path, bundle.name or "version " + bundle.version)


def _make_folder_of(target: str, made: Set[str]) -> None:
    """Once for all files of a folder: to ask the disk for each of many costs more than to link it."""
    folder = os.path.dirname(target)
    if folder not in made:
        os.makedirs(folder, exist_ok=True)
        if len(made) == MOST_FOLDERS:
            made.clear()
        made.add(folder)


def _put(source: str, target: str, *, is_copied: bool) -> None:
    """Put one file in place of whatever a predecessor left there."""
    temporary = target + ".yardmaster-new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    if is_copied:
        shutil.copyfile(source, temporary)
    else:
        try:
            if os.path.lexists(target) and os.path.samefile(source, target):
                return
            os.link(source, temporary)
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOENT):
                raise
            os.symlink(source, temporary)
    os.replace(temporary, target)

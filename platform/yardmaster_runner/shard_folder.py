"""A bounded folder of shards that the tasks of a machine share: each is fetched once and kept while it fits.

What is there is kept for later epochs. Where space is needed, the shards that were read the longest ago go first; one
that a reader has open stays. A shard that was fetched ahead and not read yet goes only for a reader that waits, so that
no task can hold up another with what it does not need yet.

Locks are `flock`: a reader holds a shared one on the shard, a task that fetches holds one on a sparse file of the same
size beside it, which counts as used. Both end with their process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from typing import Dict, Iterator, List, Optional, Tuple

from yardmaster_runner.cache import SAFE_VERSION, inside
from yardmaster_runner.exits import STAGE_IN_FAILED, CannotRun, note
from yardmaster_runner.order import RemoteFile

AHEAD_FOR = 600.0
"""Seconds that a shard fetched ahead counts as just used."""
INTERRUPTED_AFTER = 600.0
"""Seconds after which a file that no download has written to is left over from one that was killed."""
FETCHING = ".fetching"
KEPT_FREE = 64 << 20
"""Bytes of the disk that are left to others."""


class NoSpace(Exception):
    """Nothing more can go: readers have open what is there."""


class Busy(Exception):
    """Another task is fetching the same shard."""


class ShardFolder:
    """`limit` bytes at most, all versions together. Every method may be called from any thread."""

    def __init__(self, folder: str, limit: int) -> None:
        self.folder = folder
        self.limit = limit
        self.incoming = os.path.join(folder, ".incoming")
        os.makedirs(self.incoming, exist_ok=True)
        with self._locked():
            self._clean_up()

    def path_of(self, version: str, file: RemoteFile) -> str:
        """Where this shard is, or will be."""
        if not SAFE_VERSION.fullmatch(version):
            raise CannotRun(STAGE_IN_FAILED, "StageInFailed", "%r is no version's id" % version)
        return inside(os.path.join(self.folder, version), file.path)

    def has(self, version: str, file: RemoteFile) -> bool:
        with contextlib.suppress(OSError):
            return os.stat(self.path_of(version, file)).st_size == file.size
        return False

    def keep_for_soon(self, version: str, file: RemoteFile) -> bool:
        """Whether the shard is here; it then counts as fetched ahead."""
        is_here = self.has(version, file)
        if is_here:
            soon = time.time() + AHEAD_FOR
            with contextlib.suppress(OSError):
                os.utime(self.path_of(version, file), (soon, soon))
        return is_here

    def pin(self, version: str, file: RemoteFile) -> Optional[int]:
        """A descriptor that keeps the shard here until `release`; None where the shard is not here."""
        path = self.path_of(version, file)
        try:
            pinned = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            _lock(pinned, fcntl.LOCK_SH)
            if os.path.samestat(os.fstat(pinned), os.stat(path)) and os.fstat(pinned).st_size == file.size:
                os.utime(pinned)
                return pinned
        except OSError:
            pass  # it has gone meanwhile
        os.close(pinned)
        return None

    def release(self, pinned: int) -> None:
        with contextlib.suppress(OSError):
            os.utime(pinned)
        os.close(pinned)

    def reserve(self, version: str, file: RemoteFile, *, is_urgent: bool) -> Optional["Reservation"]:
        """The right to fetch this shard, with space for it; None where it is here already. Raises `Busy`, `NoSpace`,
        and `CannotRun` where it never fits. `is_urgent`: a reader waits for it."""
        path = self.path_of(version, file)
        if file.size > self.limit:
            message = "%s has %d bytes, and the folder for shards holds %d (YARDMASTER_STREAM_CACHE of the portal)"
            raise CannotRun(STAGE_IN_FAILED, "StageInFailed", message % (file.path, file.size, self.limit))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with self._locked():
            if self.has(version, file):
                return None
            held = os.open(path + FETCHING, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                if not _lock(held, fcntl.LOCK_EX | fcntl.LOCK_NB):
                    raise Busy(file.path)
                os.ftruncate(held, 0)
                self._make_space(file, is_urgent)
                os.ftruncate(held, file.size)
            except BaseException as error:
                if not isinstance(error, Busy):
                    os.unlink(path + FETCHING)
                os.close(held)
                raise
        return Reservation(self, path, held)

    def end(self, path: str, held: int, *, is_ahead: bool) -> None:
        """What was reserved is fetched, or will not be."""
        with self._locked():
            with contextlib.suppress(OSError):
                os.chmod(path, 0o444)
                used = time.time() + (AHEAD_FOR if is_ahead else 0)
                os.utime(path, (used, used))
            with contextlib.suppress(OSError):
                os.unlink(path + FETCHING)
            os.close(held)

    def used(self) -> int:
        """Bytes, with those that are being fetched."""
        return sum(size for _, size in self._files().values())

    def _make_space(self, file: RemoteFile, is_urgent: bool) -> None:
        files = self._files()
        used = sum(size for _, size in files.values())
        pending = sum(size for path, (_, size) in files.items() if path.endswith(FETCHING))
        free = shutil.disk_usage(self.folder).free - KEPT_FREE - pending
        excess = max(used + file.size - self.limit, file.size - free)
        if excess <= 0:
            return
        newest = float("inf") if is_urgent else time.time()
        oldest_first: List[Tuple[float, int, str]] = sorted(
            (stamp, size, path) for path, (stamp, size) in files.items() if not path.endswith(FETCHING)
        )
        for stamp, size, path in oldest_first:
            if excess <= 0 or stamp > newest:
                break
            if _removed(path):
                excess -= size
        if excess > 0:
            raise NoSpace("%s needs %d bytes more than can be made free" % (file.path, excess))

    def _files(self) -> Dict[str, Tuple[float, int]]:
        """When each was last used, and its size, by path."""
        found = {}
        for folder, folders, names in os.walk(self.folder):
            folders[:] = [one for one in folders if not one.startswith(".")]
            for name in names:
                path = os.path.join(folder, name)
                with contextlib.suppress(OSError):
                    state = os.stat(path)
                    if not name.startswith("."):
                        found[path] = (state.st_mtime, state.st_size)
        return found

    def _clean_up(self) -> None:
        """What tasks that were killed have left: downloads that nothing writes to, reservations that nothing holds."""
        for name in os.listdir(self.incoming):
            path = os.path.join(self.incoming, name)
            with contextlib.suppress(OSError):
                if time.time() - os.stat(path).st_mtime > INTERRUPTED_AFTER:
                    os.unlink(path)
        for path in self._files():
            if path.endswith(FETCHING):
                _removed(path)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        guard = os.open(os.path.join(self.folder, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            _lock(guard, fcntl.LOCK_EX)
            yield
        finally:
            os.close(guard)


class Reservation:
    """Space for one shard. `end` it, whatever came of it."""

    def __init__(self, folder: ShardFolder, path: str, held: int) -> None:
        self.path = path
        self._folder = folder
        self._held = held

    def end(self, *, is_ahead: bool) -> None:
        self._folder.end(self.path, self._held, is_ahead=is_ahead)


def _removed(path: str) -> bool:
    """Whether the file is gone: not while another holds it."""
    try:
        held = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        if not _lock(held, fcntl.LOCK_EX | fcntl.LOCK_NB):
            return False
        os.unlink(path)
    except OSError:
        return False
    finally:
        os.close(held)
    return True


def _lock(descriptor: int, how: int) -> bool:
    """False where another holds it. Where the file system has no locks, all is as if it was held: at worst a shard is
    fetched twice, or goes while it is open, which does not disturb its reader."""
    try:
        fcntl.flock(descriptor, how)
    except BlockingIOError:
        return False
    except OSError as error:
        note("shards cannot be locked: %s" % error)
    return True

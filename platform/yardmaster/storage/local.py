"""Objects in a folder, for one machine or a shared file system. The portal serves its signed addresses itself.

Below the root: `objects/<key>` are plain files, `parts/` holds open uploads (`local_parts`), `new/` and `old/` what is
just being written and removed. All on one file system, so that every change is one rename. Only one thing is weaker
than S3: an object `a` and an object `a/b` cannot both exist.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from yardmaster.storage.base import (
    Audience,
    ByteStream,
    ObjectMissing,
    ObjectStat,
    Part,
    PartsRefused,
    PortalServed,
    Readable,
    SignedRequest,
    UploadMissing,
)
from yardmaster.storage.folder import (
    errors_translated,
    move_into,
    place_of,
    prune,
    remove_older,
    unused_name,
    write_new,
)
from yardmaster.storage.local_parts import PartFolder
from yardmaster.storage.signing import AddressBook, PartGrant, ReadGrant


class LocalStorage:
    """`Storage` in the folder `root`. `base_url` is the portal's address, `task_url` that which tasks use where it is
    another, `signing_key` a secret of its own."""

    def __init__(
        self,
        root: Path | str,
        *,
        base_url: str,
        signing_key: str,
        task_url: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._root = Path(os.path.realpath(root))
        self._objects = self._root / "objects"
        self._uploads = PartFolder(self._root / "parts")
        self._seen_from = {
            Audience.PEOPLE: base_url.rstrip("/"),
            Audience.TASKS: (task_url or base_url).rstrip("/"),
        }
        self.addresses = AddressBook(signing_key, clock)

    # --- Objects ---------------------------------------------------------------------------------------------------

    def put(self, key: str, data: bytes | Readable) -> ObjectStat:
        target = place_of(self._objects, key)
        with errors_translated("Writing an object"):
            new = self._aside("new")
            try:
                write_new(new, data)
                move_into(new, target)
            finally:
                new.unlink(missing_ok=True)
        return self.stat(key)

    def open_range(self, key: str, start: int = 0, length: int | None = None) -> ByteStream:
        if start < 0 or (length is not None and length < 0):
            raise ValueError("a range begins at 0 or later and has 0 or more bytes")
        file = self._open(key)
        file.seek(start)
        return file if length is None else _Range(file, length)

    def stat(self, key: str) -> ObjectStat:
        with errors_translated("Looking at an object"):
            try:
                return _stat(key, place_of(self._objects, key).lstat())
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
                raise _missing(key) from error

    def copy(self, source: str, target: str) -> ObjectStat:
        with self._open(source) as file:
            return self.put(target, file)

    def move(self, source: str, target: str) -> ObjectStat:
        old, new = place_of(self._objects, source), place_of(self._objects, target)
        with errors_translated("Moving an object"):
            try:
                self.stat(source)
                move_into(old, new)
            except (FileNotFoundError, ObjectMissing) as error:
                if not new.is_file():
                    raise _missing(source) from error
            prune(old.parent, self._objects)
        return self.stat(target)

    def delete(self, key: str) -> None:
        place = place_of(self._objects, key)
        with errors_translated("Deleting an object"):
            if place.is_dir():
                return  # a folder is no object
            try:
                place.unlink(missing_ok=True)
            except NotADirectoryError:
                return  # a part of the way is an object: this key has none
            prune(place.parent, self._objects)

    def delete_prefix(self, prefix: str) -> None:
        place = place_of(self._objects, prefix)
        with errors_translated("Deleting a folder"):
            if place.is_dir():
                old = self._aside("old")
                with contextlib.suppress(FileNotFoundError):  # another process was faster
                    os.replace(place, old)  # gone at once, even if removing takes a while or is interrupted
                prune(place.parent, self._objects)
                shutil.rmtree(old, ignore_errors=True)

    def list_prefix(self, prefix: str, first: str = "") -> Iterator[ObjectStat]:
        folders = [place_of(self._objects, prefix)]
        while folders:
            folder = folders.pop()
            try:
                entries = list(os.scandir(folder))
            except (FileNotFoundError, NotADirectoryError):
                continue
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry.path))
                elif entry.is_file(follow_symlinks=False):
                    key = Path(entry.path).relative_to(self._objects).as_posix()
                    if key >= first:
                        yield _stat(key, entry.stat(follow_symlinks=False))

    # --- Uploads in parts ------------------------------------------------------------------------------------------

    def multipart_begin(self, key: str, part_size: int) -> str:
        place_of(self._objects, key)
        return self._uploads.begin(key, part_size)

    def part_url(
        self,
        key: str,
        upload_id: str,
        part: int,
        *,
        size: int,
        sha256: str,
        expires: timedelta,
        audience: Audience = Audience.PEOPLE,
    ) -> SignedRequest:
        address = self.addresses.part_address(PartGrant(key, upload_id, part, size, sha256), expires)
        return SignedRequest("PUT", f"{self._seen_from[audience]}{address}")

    def part_write(self, grant: PartGrant, data: Readable) -> str:
        return self._uploads.write(grant, data)

    def object_url(
        self, key: str, *, size: int, sha256: str, expires: timedelta, audience: Audience = Audience.PEOPLE
    ) -> None:
        return None  # parts are as quick here, and end with their upload

    def parts(self, key: str, upload_id: str) -> list[Part]:
        return self._uploads.parts(key, upload_id)

    def multipart_complete(self, key: str, upload_id: str, parts: Sequence[Part]) -> ObjectStat:
        target = place_of(self._objects, key)
        size = sum(part.size for part in parts)
        with errors_translated("Putting an upload together"):
            try:
                with self._uploads.assembled(key, upload_id, parts) as data:
                    if data.exists():
                        move_into(data, target)
                    elif self._size(key) != size:
                        raise PartsRefused("The upload's data no longer exists.", remedy="Start a new upload.")
            except UploadMissing:
                if self._size(key) != size:
                    raise
        return self.stat(key)

    def multipart_abort(self, key: str, upload_id: str) -> None:
        self._uploads.abort(key, upload_id)

    def clean_up(self, older_than: timedelta) -> None:
        before = time.time() - older_than.total_seconds()
        with errors_translated("Cleaning up"):
            for kind in ("new", "old"):
                remove_older(self._root / kind, before)
            self._uploads.clean_up(before)

    # --- Addresses -------------------------------------------------------------------------------------------------

    def read_url(
        self,
        key: str,
        expires: timedelta,
        *,
        filename: str | None = None,
        content_type: str | None = None,
        audience: Audience = Audience.PEOPLE,
    ) -> str:
        grant = ReadGrant(key, filename or "", content_type or "")
        return f"{self._seen_from[audience]}{self.addresses.read_address(grant, expires)}"

    def origin(self, audience: Audience) -> str:
        return self._seen_from[audience]

    def prepare(self, prefix: str = "") -> None:
        return  # folders are made when they are needed

    @property
    def is_near(self) -> bool:
        return True

    def served(self) -> PortalServed:
        return self

    # ---------------------------------------------------------------------------------------------------------------

    def _open(self, key: str) -> io.FileIO:
        place = place_of(self._objects, key)
        with errors_translated("Opening an object"):
            try:
                return io.FileIO(os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
                raise _missing(key) from error

    def _size(self, key: str) -> int | None:
        try:
            return self.stat(key).size
        except ObjectMissing:
            return None

    def _aside(self, kind: str) -> Path:
        folder = self._root / kind
        folder.mkdir(parents=True, exist_ok=True, mode=0o750)
        return folder / unused_name()


class _Range:
    """The next `length` bytes of a file."""

    def __init__(self, file: io.FileIO, length: int) -> None:
        self._file = file
        self._left = length

    def read(self, size: int = -1, /) -> bytes:
        data = self._file.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(data)
        return data

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> _Range:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _stat(key: str, status: os.stat_result) -> ObjectStat:
    if not stat.S_ISREG(status.st_mode):
        raise _missing(key)
    # A rename keeps inode and times, a new object has others: that is what an ETag must tell.
    etag = f"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"
    return ObjectStat(key, status.st_size, etag, datetime.fromtimestamp(status.st_mtime, UTC))


def _missing(key: str) -> ObjectMissing:
    return ObjectMissing(f"There is no object {key!r}.")

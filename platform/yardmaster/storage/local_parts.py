"""Multipart uploads in a folder.

Parts are written straight to their place in one file, so completing an upload is a rename, however large it is. One
folder per upload: `target` (key and part size; its lock keeps `complete` and writers apart), `data`, and per arrived
part a file with its number that holds size and SHA-256, which is its ETag. A part counts once that file is written,
which is after its bytes are on the disk.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from yardmaster.errors import Unavailable
from yardmaster.storage.base import (
    CHUNK,
    MAX_PART_SIZE,
    MAX_PARTS,
    Part,
    PartsRefused,
    Readable,
    UploadMissing,
    check_numbers,
    read_chunks,
)
from yardmaster.storage.exact import ExactReader
from yardmaster.storage.folder import errors_translated, remove_older, unused_name, write_all, write_new
from yardmaster.storage.signing import PartGrant

_ABORTED = "aborted-"
_UPLOAD_ID = re.compile(r"[0-9a-f]{32}")


class PartFolder:
    """The open uploads below one folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def begin(self, key: str, part_size: int) -> str:
        if not 0 < part_size <= MAX_PART_SIZE:
            raise ValueError(f"a part has 1 to {MAX_PART_SIZE} bytes, not {part_size}")
        upload_id = unused_name()
        with errors_translated("Beginning an upload"):
            folder = self._root / upload_id
            folder.mkdir(parents=True, mode=0o750)
            # Not flushed: lost with the machine's power, the upload is missing, and its sender starts again.
            write_new(folder / "target", json.dumps({"key": key, "part_size": part_size}).encode(), durable=False)
        return upload_id

    def write(self, grant: PartGrant, data: Readable) -> str:
        """Put one part in its place, over what an earlier try left there. Its ETag."""
        key, upload_id, number = grant.key, grant.upload_id, grant.part
        if not 1 <= number <= MAX_PARTS:
            raise PartsRefused(f"Parts are numbered 1 to {MAX_PARTS}, not {number}.")
        with errors_translated("Writing a part"), self._locked(key, upload_id, fcntl.LOCK_SH) as (folder, part_size):
            if grant.size > part_size:
                raise PartsRefused(
                    f"Part {number} has {grant.size} bytes, more than the upload's part size {part_size}."
                )
            try:
                mark = os.open(folder / str(number), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o640)
            except FileNotFoundError as error:
                raise _missing(upload_id) from error
            try:
                # One writer per part; from here until the end the part does not count.
                fcntl.flock(mark, fcntl.LOCK_EX)
                os.ftruncate(mark, 0)
                exact = ExactReader(data, grant.size, grant.sha256, f"Part {number}")
                _write_at(folder / "data", (number - 1) * part_size, exact)
                os.pwrite(mark, json.dumps([grant.size, grant.sha256]).encode(), 0)
            except FileNotFoundError as error:
                raise _missing(upload_id) from error
            finally:
                os.close(mark)
            if not (folder / "target").exists():  # aborted meanwhile: what was written went with the folder
                raise _missing(upload_id)
        return grant.sha256

    def parts(self, key: str, upload_id: str) -> list[Part]:
        folder = self._folder(key, upload_id)[0]
        with errors_translated("Listing parts"):
            try:
                marks = [entry for entry in os.scandir(folder) if entry.name.isdigit()]
                return sorted(part for entry in marks if (part := _read_mark(Path(entry.path))) is not None)
            except FileNotFoundError as error:
                raise _missing(upload_id) from error

    @contextlib.contextmanager
    def assembled(self, key: str, upload_id: str, parts: Sequence[Part]) -> Iterator[Path]:
        """The file with all parts in order, for the body to move away; the upload is over when the body ends well.

        No part can be written meanwhile.
        """
        with self._locked(key, upload_id, fcntl.LOCK_EX | fcntl.LOCK_NB) as (folder, part_size):
            check_parts(parts, self.parts(key, upload_id), part_size)
            data = folder / "data"
            if data.exists():  # else moved away by an earlier try that was interrupted before the folder was removed
                _cut(data, sum(part.size for part in parts))
            yield data
            shutil.rmtree(folder, ignore_errors=True)

    def abort(self, key: str, upload_id: str) -> None:
        with contextlib.suppress(UploadMissing, FileNotFoundError), errors_translated("Aborting an upload"):
            self._put_aside(self._folder(key, upload_id)[0])

    def clean_up(self, before: float) -> None:
        """Remove what an `abort` that was interrupted before this time left, and uploads that were begun before it and
        to which nothing was sent: the id of one is lost where its process died before it could note it."""
        remove_older(self._root, before, _ABORTED)
        with contextlib.suppress(FileNotFoundError):
            for entry in os.scandir(self._root):
                with contextlib.suppress(FileNotFoundError):  # completed or aborted meanwhile
                    if _UPLOAD_ID.fullmatch(entry.name) and _is_empty_since(Path(entry.path), before):
                        self._put_aside(Path(entry.path))

    def _put_aside(self, folder: Path) -> None:
        # Under its new name no writer finds it: nothing is put into it while it is removed, nor after.
        aside = self._root / f"{_ABORTED}{unused_name()}"
        os.replace(folder, aside)
        shutil.rmtree(aside, ignore_errors=True)

    def _folder(self, key: str, upload_id: str) -> tuple[Path, int]:
        """The upload's folder and part size, if it is this key's."""
        if not _UPLOAD_ID.fullmatch(upload_id):
            raise _missing(upload_id)
        folder = self._root / upload_id
        try:
            target = json.loads((folder / "target").read_bytes())
        except (FileNotFoundError, json.JSONDecodeError) as error:  # empty: the process died in `begin`
            raise _missing(upload_id) from error
        if target["key"] != key:
            raise _missing(upload_id)
        return folder, target["part_size"]

    @contextlib.contextmanager
    def _locked(self, key: str, upload_id: str, kind: int) -> Iterator[tuple[Path, int]]:
        folder, part_size = self._folder(key, upload_id)
        try:
            lock = os.open(folder / "target", os.O_RDONLY | os.O_NOFOLLOW)
        except FileNotFoundError as error:
            raise _missing(upload_id) from error
        try:
            try:
                fcntl.flock(lock, kind)
            except BlockingIOError as error:
                raise Unavailable(
                    "A part of this upload is still being written.", remedy="Try again in a moment."
                ) from error
            if os.fstat(lock).st_nlink == 0:  # completed or aborted while we waited
                raise _missing(upload_id)
            yield folder, part_size
        finally:
            os.close(lock)


def check_parts(named: Sequence[Part], arrived: Sequence[Part], part_size: int) -> None:
    """Whether the named parts make up an object: all there as named, numbered without a gap, full but for the last."""
    by_number = {part.number: part for part in arrived}
    check_numbers(named)
    for part in named:
        if by_number.get(part.number) != part:
            raise PartsRefused(f"Part {part.number} has not arrived, or was sent again since.")
        if part.size != part_size and part is not named[-1]:
            raise PartsRefused(f"Part {part.number} has {part.size} bytes; all but the last have {part_size}.")


def _write_at(place: Path, offset: int, data: ExactReader) -> None:
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o640)
    try:
        os.lseek(descriptor, offset, os.SEEK_SET)
        for chunk in read_chunks(data, CHUNK):
            write_all(descriptor, chunk)
        data.require_whole()
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)


def _cut(place: Path, size: int) -> None:
    """Cut off what an earlier, longer part left behind. The parts themselves are on the disk already."""
    if place.stat().st_size != size:
        os.truncate(place, size)
        with place.open("rb") as file:
            os.fsync(file.fileno())


def _is_empty_since(folder: Path, before: float) -> bool:
    """Whether nothing was put into the folder of an upload since then, and nothing is there."""
    return folder.stat().st_mtime < before and set(os.listdir(folder)) <= {"target"}


def _read_mark(place: Path) -> Part | None:
    text = place.read_bytes()
    if not text:  # still being written, or cut off
        return None
    size, sha256 = json.loads(text)
    return Part(int(place.name), size, sha256, sha256)


def _missing(upload_id: str) -> UploadMissing:
    return UploadMissing(
        f"No upload {upload_id[:40]!r} is open for this key: it was completed or aborted, or never existed.",
        remedy="Start a new upload.",
    )

"""Unpacking one uploaded archive into files of the upload, in one pass. What it holds is reserved before it is written,
and nothing of it is seen before all is there.

Not here: what makes an archive unacceptable (`yardmaster.storage.zips`, `tars`, `compressed`).
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import IO

from django.db import transaction
from django.utils import timezone

from apps.errors import QuotaExceeded, Unprocessable
from apps.stores import storage
from apps.uploads import storage_ledger
from apps.uploads.announcing import most_files
from apps.uploads.file_blocks import manifest_of, manifest_replace
from apps.uploads.leases import Lease, LeaseLost
from apps.uploads.manifest import INLINE_FILES, INLINE_UNPACKED_BYTES, LONGEST_FAULT, progress_forget
from apps.uploads.models import Kind, State, Upload
from apps.uploads.removal import charge_left_place, tombstones_set
from yardmaster.storage.archives import ArchiveRefused
from yardmaster.storage.assembly import CRC_BUDGET, in_parallel
from yardmaster.storage.base import ObjectMissing, Readable, StorageFull, key_join, read_chunks
from yardmaster.storage.compressed import Decompressed, decompressor_for
from yardmaster.storage.facts import FactFinder
from yardmaster.storage.file_list import ListedFile
from yardmaster.storage.reader import ObjectReader
from yardmaster.storage.sorted_files import SortedFiles
from yardmaster.storage.tars import BLOCK, TarReader, is_tar
from yardmaster.storage.zips import Zip

_BUFFER = 1 << 18
_SMALL = 1 << 20
_UNPACKED = ".unpacked"
_RESERVED_AHEAD = 64 << 20
_FILES_AHEAD = 1_000
"""So that not each small file is a change of the namespace's account."""

_TOO_MANY = ("zip_too_many_files", "too_many_files", "too_many_folders")

Entry = tuple[str, int, Readable]
"""Path, size, and the bytes, which are read before the next entry is asked for."""


class UploadRefused(Unprocessable):
    """The upload can never become complete: it ends here, and its bytes go."""


def archive_unpack(upload: Upload, lease: Lease) -> None:
    """Replace the upload's one file by what the archive holds. Interrupted, it starts again and writes to the same
    places; done before, there is nothing to do.

    Raises `UploadRefused` for an archive that will never do. Where its content does not fit now (`QuotaExceeded`,
    `StorageFull`), nothing of it stays and what was reserved for it is returned.
    """
    if upload.unpacked:
        return
    [archive] = manifest_of(upload.pk)
    aside = _aside_of(upload)
    _step_aside(key_join(upload.key_prefix, archive.path), aside)
    _leave_place(upload, lease)
    try:
        with (
            io.BufferedReader(_Watched(aside, archive.size, lease), _BUFFER) as file,
            SortedFiles() as found,
        ):
            entries = _entries(upload, archive, file, lease)
            for one in in_parallel(_Arriving.write, _written(upload, lease, entries), lease.beat):
                found.add(one)
            _replace_files(upload, archive, lease, found)
    except ArchiveRefused as error:
        raise UploadRefused(error.message, error.code, remedy=error.remedy, errors=error.problems) from error
    except (QuotaExceeded, StorageFull):
        storage().delete_prefix(upload.key_prefix)
        _give_back(upload, archive.size, 1)
        raise
    storage().delete(aside)


def is_quick(upload: Upload, lease: Lease) -> bool:
    """Whether a request may wait for it: a zip that says that it holds little, which is held to that, or what is
    refused at once. By its content, not by its name. Reads the start, and of a zip the directory."""
    if upload.unpacked:
        return True
    [archive] = manifest_of(upload.pk)
    try:
        place = _aside_of(upload)
        if not _is_there(place):
            place = key_join(upload.key_prefix, archive.path)
        with io.BufferedReader(_Watched(place, archive.size, lease), _BUFFER) as file:
            start = file.read(BLOCK)
            if decompressor_for(start) is not None or is_tar(start):
                return False
            with Zip(file, archive.size, max_files=INLINE_FILES, beat=lease.beat) as opened:
                return opened.total <= INLINE_UNPACKED_BYTES
    except ArchiveRefused as error:
        return error.code not in _TOO_MANY  # of more files than these are quick


class _Watched(ObjectReader):
    """The archive, which is read by one thread. The lease is renewed while it is: one entry may take hours, also one
    that is passed over."""

    def __init__(self, key: str, size: int, lease: Lease) -> None:
        super().__init__(storage(), key, size)
        self._lease = lease

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        self._lease.beat()
        return super().readinto(buffer)


def _aside_of(upload: Upload) -> str:
    """Out of the way: an entry may have the archive's name."""
    return f"uploads/{upload.pk}/archive.zip"


def _is_there(key: str) -> bool:
    try:
        storage().stat(key)
    except ObjectMissing:
        return False
    return True


def _step_aside(key: str, aside: str) -> None:
    """Move the archive away, once: after a try that was interrupted, what lies at `key` may be an entry of that
    name."""
    if _is_there(aside):
        storage().delete(key)
    else:
        storage().move(key, aside)


def _leave_place(upload: Upload, lease: Lease) -> None:
    """Where the archive was sent whole, nothing closes its address: what it holds lies elsewhere, so that no late
    writer puts the archive over an entry of its name, or beside them, where no quota counts it."""
    if upload.writable_until is None or upload.key_prefix.endswith(_UNPACKED):
        return
    place = upload.key_prefix + _UNPACKED
    with transaction.atomic():
        mine = Upload.objects.filter(pk=upload.pk, lease=lease.token, state=State.COMPLETING)
        if not mine.update(key_prefix=place):
            raise LeaseLost
        tombstones_set([upload.key_prefix], timezone.now())
    upload.key_prefix = place


def _entries(upload: Upload, archive: ListedFile, file: IO[bytes], lease: Lease) -> Iterator[Entry]:
    """What the archive holds, by what it is and not by its name. The bytes are reserved before they are given."""
    start = file.read(BLOCK)
    file.seek(0)
    make = decompressor_for(start)
    if make is not None:
        return _tar_entries(upload, archive, _checked_tar(Decompressed(file, archive.size, make)), lease)
    if is_tar(start):
        return _tar_entries(upload, archive, file, lease)
    if start.startswith(b"PK") or archive.path.lower().endswith(".zip"):
        return _zip_entries(upload, archive, file, lease)
    message = "The file is no archive that can be extracted."
    remedy = "Send a .zip, .tar, .tar.gz, .tar.bz2, .tar.xz or .tar.zst, or complete without extracting."
    raise ArchiveRefused("not_an_archive", message, remedy)


def _zip_entries(upload: Upload, archive: ListedFile, file: IO[bytes], lease: Lease) -> Iterator[Entry]:
    with Zip(file, archive.size, max_files=most_files(upload.kind), beat=lease.beat) as opened:
        _Reserved(upload).cover(archive.size + opened.total, opened.count)
        for entry in opened.entries():
            yield entry.path, entry.size, entry


def _tar_entries(upload: Upload, archive: ListedFile, source: Readable, lease: Lease) -> Iterator[Entry]:
    reserved, needed, count = _Reserved(upload), archive.size, 0
    for entry in TarReader(source, most_files=most_files(upload.kind), beat=lease.beat).entries():
        needed, count = needed + entry.size, count + 1
        reserved.cover(needed, count, ahead=_RESERVED_AHEAD, files_ahead=_FILES_AHEAD)
        yield entry.path, entry.size, entry


def _checked_tar(source: Decompressed) -> Readable:
    """The decompressed bytes, which begin as a tar does."""
    start = b""
    while len(start) < BLOCK and (more := source.read(BLOCK - len(start))):
        start += more
    if start.strip(b"\0") and not is_tar(start):
        message = "The compressed file holds no tar archive."
        raise ArchiveRefused("not_a_tar", message, "Send a tar archive, or complete without extracting.")
    return _Continued(start, source)


class _Continued:
    """Bytes that were read ahead, and what follows."""

    def __init__(self, start: bytes, rest: Readable) -> None:
        self._start = start
        self._rest = rest

    def read(self, size: int = -1, /) -> bytes:
        if not self._start:
            return self._rest.read(size)
        most = len(self._start) if size < 0 else size
        piece, self._start = self._start[:most], self._start[most:]
        return piece


class _Reserved:
    """What is set aside for the upload, which grows with what is unpacked: bytes, and files."""

    def __init__(self, upload: Upload) -> None:
        self._upload = upload
        self._held, self._files = Upload.objects.values_list("held", "files_held").get(pk=upload.pk)

    def cover(self, needed: int, files: int, ahead: int = 0, files_ahead: int = 0) -> None:
        """Have at least so many bytes and files, and some more where there are. Raises `QuotaExceeded`."""
        if needed <= self._held and files <= self._files:
            return
        try:
            self._grow(needed + ahead, files + files_ahead)
        except QuotaExceeded:
            self._grow(needed, files)

    def _grow(self, needed: int, files: int) -> None:
        with transaction.atomic():
            row = Upload.objects.select_for_update().get(pk=self._upload.pk)
            held, listed = max(row.held, needed), max(row.files_held, files)
            storage_ledger.reserve(row.namespace, held - row.held, listed - row.files_held)
            Upload.objects.filter(pk=row.pk).update(held=held, files_held=listed)
        self._held, self._files = held, listed


def _give_back(upload: Upload, needed: int, files: int) -> None:
    """So much is left: of what was refused only the archive, of what was unpacked its files."""
    with transaction.atomic():
        row = Upload.objects.select_for_update().filter(pk=upload.pk, state=State.COMPLETING).first()
        if row is not None:
            bytes_less, files_less = max(0, row.held - needed), max(0, row.files_held - files)
            storage_ledger.give_back(row.namespace_id, used=0, reserved=bytes_less, files=files_less)
            Upload.objects.filter(pk=upload.pk).update(
                held=row.held - bytes_less, files_held=row.files_held - files_less
            )


def _written(upload: Upload, lease: Lease, entries: Iterable[Entry]) -> Iterator[_Arriving]:
    """Read one after the other, written side by side where they are small."""
    budget = CRC_BUDGET
    for path, size, source in entries:
        if size <= _SMALL:
            source = io.BytesIO(b"".join(read_chunks(source)))
        count_as = path if upload.kind == Kind.DATASET else None
        finder = FactFinder(source, count_as=count_as, crc_budget=budget, beat=lease.passed)
        budget = max(0, budget - size)
        one = _Arriving(path, key_join(upload.key_prefix, path), finder)
        if size > _SMALL:
            one.write()  # here: the archive is read by one at a time
        lease.beat()
        yield one


class _Arriving:
    """One file on its way from the archive into the store."""

    def __init__(self, path: str, key: str, finder: FactFinder) -> None:
        self._path = path
        self._key = key
        self._finder = finder
        self._is_written = False

    def write(self) -> ListedFile:
        """Written once, however often it is called."""
        if not self._is_written:
            storage().put(self._key, self._finder)
            self._is_written = True
        facts = self._finder.facts()
        return ListedFile(self._path, facts.size, "", facts.sha256, facts.records, facts.fault[:LONGEST_FAULT])


def _replace_files(upload: Upload, archive: ListedFile, lease: Lease, files: Iterable[ListedFile]) -> None:
    with transaction.atomic():
        mine = Upload.objects.filter(pk=upload.pk, lease=lease.token, state=State.COMPLETING)
        if not mine.update(unpacked=True, is_sorted=True):
            raise LeaseLost
        progress_forget(upload.pk)
        count, _ = manifest_replace(upload.pk, files)
        mine.update(file_count=count)
        _give_back(upload, storage_ledger.MOST, count)
        if upload.key_prefix.endswith(_UNPACKED):
            row = Upload.objects.get(pk=upload.pk)
            charge_left_place(row, upload.key_prefix.removesuffix(_UNPACKED), archive.size)

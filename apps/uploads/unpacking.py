"""Unpacking one uploaded zip into files of the upload. Its unpacked size is reserved before a byte is written.

Not here: what makes a zip unacceptable (`yardmaster.storage.zips`).
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Sequence
from operator import attrgetter

from django.db import transaction
from django.db.models import F

from apps.errors import Unprocessable
from apps.stores import storage
from apps.uploads import storage_ledger
from apps.uploads.file_blocks import manifest_of, manifest_replace
from apps.uploads.leases import Lease, LeaseLost
from apps.uploads.manifest import LONGEST_FAULT, MAX_FILES, progress_forget
from apps.uploads.models import Kind, State, Upload
from yardmaster.storage.assembly import crc_budgets, in_parallel
from yardmaster.storage.base import ObjectMissing, Readable, key_join, read_chunks
from yardmaster.storage.facts import FactFinder, FileFacts
from yardmaster.storage.file_list import ListedFile
from yardmaster.storage.reader import ObjectReader
from yardmaster.storage.zips import ZipEntry, ZipRefused, open_zip, read_entry

_BUFFER = 1 << 18
_SMALL = 1 << 20


class UploadRefused(Unprocessable):
    """The upload can never become complete: it ends here, and its bytes go."""


def archive_unpack(upload: Upload, lease: Lease) -> None:
    """Replace the upload's one file by what the zip holds. Interrupted, it starts again; done before, there is nothing
    to do.

    Raises `UploadRefused` for a zip that will never do, and `QuotaExceeded` where its content does not fit now.
    """
    if upload.unpacked:
        return
    [zip_file] = manifest_of(upload.pk)
    aside = f"uploads/{upload.pk}/archive.zip"  # out of the way: an entry may have its name
    _step_aside(key_join(upload.key_prefix, zip_file.path), aside)
    with io.BufferedReader(ObjectReader(storage(), aside, zip_file.size), _BUFFER) as file:
        try:
            archive, entries = open_zip(file, zip_file.size, max_files=MAX_FILES)
            with archive:
                _reserve(upload, zip_file.size + sum(entry.size for entry in entries))
                found = _write_entries(upload, archive, entries, lease)
        except ZipRefused as error:
            raise UploadRefused(error.message, error.code, remedy=error.remedy, errors=error.problems) from error
    _replace_files(upload, lease, entries, found)
    storage().delete(aside)


def _step_aside(key: str, aside: str) -> None:
    """Move the zip away, once: after a try that was interrupted, what lies at `key` may be an entry of that name."""
    try:
        storage().stat(aside)
    except ObjectMissing:
        storage().move(key, aside)
    else:
        storage().delete(key)


def _reserve(upload: Upload, needed: int) -> None:
    with transaction.atomic():
        more = needed - Upload.objects.select_for_update().get(pk=upload.pk).held
        if more > 0:
            storage_ledger.reserve(upload.namespace, more)
            Upload.objects.filter(pk=upload.pk).update(held=F("held") + more)


def _write_entries(
    upload: Upload, archive: zipfile.ZipFile, entries: Sequence[ZipEntry], lease: Lease
) -> list[FileFacts]:
    """Read one after the other, written side by side where they are small."""

    def pieces() -> Iterator[_Entry]:
        for entry, budget in zip(entries, crc_budgets(entry.size for entry in entries), strict=True):
            source: Readable = read_entry(archive, entry)
            if entry.size <= _SMALL:
                source = io.BytesIO(b"".join(read_chunks(source)))
            count_as = entry.path if upload.kind == Kind.DATASET else None
            finder = FactFinder(source, count_as=count_as, crc_budget=budget, beat=lease.passed)
            one = _Entry(key_join(upload.key_prefix, entry.path), finder)
            if entry.size > _SMALL:
                one.write()  # here: the zip is read by one at a time
            lease.beat()
            yield one

    return list(in_parallel(_Entry.write, pieces(), lease.beat))


class _Entry:
    """One file on its way from the zip into the store."""

    def __init__(self, key: str, finder: FactFinder) -> None:
        self._key = key
        self._finder = finder
        self._written = False

    def write(self) -> FileFacts:
        """Written once, however often it is called."""
        if not self._written:
            storage().put(self._key, self._finder)
            self._written = True
        return self._finder.facts()


def _replace_files(upload: Upload, lease: Lease, entries: Sequence[ZipEntry], found: Sequence[FileFacts]) -> None:
    files = [
        ListedFile(entry.path, facts.size, "", facts.sha256, facts.records, facts.fault[:LONGEST_FAULT])
        for entry, facts in zip(entries, found, strict=True)
    ]
    with transaction.atomic():
        mine = Upload.objects.filter(pk=upload.pk, lease=lease.token, state=State.COMPLETING)
        if not mine.update(unpacked=True, file_count=len(files)):
            raise LeaseLost
        progress_forget(upload.pk)
        manifest_replace(upload.pk, sorted(files, key=attrgetter("path")))

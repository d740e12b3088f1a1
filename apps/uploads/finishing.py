"""Putting an upload together and checking it, in the request for small ones and in a worker for large ones.

One at a time holds the upload's lease. Whatever interrupts it, calling `upload_finish` again continues file by file.
Not here: archives (`unpacking`).
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from typing import TypeVar
from unicodedata import is_normalized, normalize

from django.db import transaction
from django.utils import timezone

from apps.errors import Conflict, DomainError, Unprocessable, error_to_json
from apps.stores import storage
from apps.uploads import storage_ledger
from apps.uploads.file_blocks import manifest_of, manifest_replace
from apps.uploads.leases import Lease, LeaseLost, TooMuchWork, lease_claim
from apps.uploads.manifest import (
    FILES_AT_ONCE,
    INLINE_WORK,
    SentFile,
    files_forget,
    found_note,
    manifest_with_found,
    part_sizes,
    progress_forget,
    sent_in_blocks,
)
from apps.uploads.models import Kind, State, Upload
from apps.uploads.removal import remove_after_loss, still_writable
from apps.uploads.selectors import SENT_BY_PEOPLE
from apps.uploads.unpacking import UploadRefused, archive_unpack, is_quick
from yardmaster.errors import Problem, Unavailable, YardmasterError
from yardmaster.storage.assembly import CRC_BUDGET, Assembly, crc_budgets, in_parallel
from yardmaster.storage.base import ObjectStat, Part, StorageFull
from yardmaster.storage.facts import FileFacts
from yardmaster.storage.file_list import ListedFile

log = logging.getLogger(__name__)

T = TypeVar("T")
_NOTED_AT_ONCE = 200
_WORTH_LISTING = 20
_PROBLEMS_SHOWN = 20


def upload_finish(upload_id: uuid.UUID, *, in_request: bool = False) -> bool:
    """Complete an upload in state `completing`. Anything else, and one that another process completes: nothing to do.

    What is wrong with the upload is kept in `problem`, takes it back to `open` (or to `failed` where sending again
    cannot help) and is raised as `DomainError` or `StorageFull`. Where the store does not answer, `Unavailable` is
    raised and the state stays: the next call continues. False, with `in_request` only: unpacking the files, or what
    takes too much work, is left to a worker.
    """
    lease = lease_claim(upload_id, INLINE_WORK if in_request else None)
    if lease is None:
        return True
    upload = Upload.objects.select_related("namespace").get(pk=upload_id)
    try:
        _assemble(upload, lease)
        if upload.unpack:
            if in_request and not is_quick(upload, lease):
                lease.release()
                return False
            archive_unpack(upload, lease)
        _conclude(upload, lease)
    except TooMuchWork:
        lease.release()
        return False
    except LeaseLost:
        remove_after_loss(upload)
    except (DomainError, YardmasterError) as error:
        _note_problem(upload, lease, error)
        raise
    return True


def upload_finish_quietly(upload_id: uuid.UUID) -> bool:
    """The same for a worker: whether it came to an end without a problem. Why it did not is kept with the upload, for
    its sender; a store that does not answer is asked again by the sweep."""
    try:
        upload_finish(upload_id)
    except (DomainError, Unavailable) as error:
        log.warning("Upload %s is not complete: %s", upload_id, error)
        return False
    return True


def _assemble(upload: Upload, lease: Lease) -> None:
    """Block by block: neither the list nor what is known of the files is held in memory as a whole."""
    there = _Listed(upload)
    missing = _Missing()
    budget = CRC_BUDGET
    for block in sent_in_blocks(upload):
        files = [file for file in block if not file.sha256]
        assemblies = [_assembly(upload, file, there) for file in files]
        arrived = list(_each(assemblies, [one.arrived for one in assemblies], lease))
        _note_missing(upload, missing, files, assemblies, arrived)
        if not missing.count:  # what comes later is sent first
            _assemble_block(upload, lease, files, assemblies, arrived, budget)
            budget = max(0, budget - sum(file.size for file in files))
    missing.check(upload)


def _assembly(upload: Upload, file: SentFile, there: _Listed) -> Assembly:
    key = file.key(upload)
    listed = there.get(key) if file.whole else None
    sizes = part_sizes(file.size, upload.part_size)
    return Assembly(storage(), key, file.size, file.multipart_id, sizes, file.declared, file.whole, listed)


def _assemble_block(
    upload: Upload,
    lease: Lease,
    files: Sequence[SentFile],
    assemblies: Sequence[Assembly],
    arrived: Sequence[list[Part] | None],
    crc_budget: int,
) -> None:
    counted = upload.kind in (Kind.DATASET, Kind.PART) and not upload.unpack
    budgets = crc_budgets((file.size for file in files), crc_budget)
    work = [
        partial(
            one.assemble, parts or [], count_as=file.path if counted else None, crc_budget=budget, beat=lease.passed
        )
        for file, one, parts, budget in zip(files, assemblies, arrived, budgets, strict=True)
    ]
    found: dict[int, FileFacts] = {}
    try:
        for file, facts in zip(files, _each(assemblies, work, lease), strict=True):
            _check_content(upload, file, facts)
            found[file.index] = facts
            if len(found) == _NOTED_AT_ONCE:
                _note(upload, found, lease)
    finally:
        _note(upload, found, lease)


def _each(assemblies: Sequence[Assembly], work: Sequence[Callable[[], T]], lease: Lease) -> Iterator[T]:
    """What the work for each gives, in their order: side by side where the store is asked, else at once."""
    asking = [does for one, does in zip(assemblies, work, strict=True) if not one.is_listed]
    with closing(in_parallel(lambda does: does(), asking, lease.beat)) as answers:
        for one, does in zip(assemblies, work, strict=True):
            yield does() if one.is_listed else next(answers)


class _Listed:
    """The objects that are there already, where many files were sent whole: a thousand of them with one request. Of an
    upload of a task others may have had addresses for the same places: there each object is looked at.

    A large upload is in the order of its paths, as the listing of an S3 server is of its keys: then only the one that
    was listed last is remembered. What such a listing has not in this order is looked at by itself.
    """

    def __init__(self, upload: Upload) -> None:
        self._is_of_use = upload.kind in SENT_BY_PEOPLE and upload.file_count >= _WORTH_LISTING
        self._is_large = upload.file_count > FILES_AT_ONCE
        self._prefix = upload.key_prefix
        self._objects: Iterator[ObjectStat] | None = None
        self._known: dict[str, ObjectStat] = {}
        self._last: ObjectStat | None = None

    def get(self, key: str) -> ObjectStat | None:
        """The object with this key; in a large upload, asked for in their order. None: it was not seen."""
        if not self._is_of_use:
            return None
        if self._objects is None:
            self._objects = iter(storage().list_prefix(self._prefix))
            if not self._is_large:
                self._known = {one.key: one for one in self._objects}
        if not self._is_large:
            return self._known.get(key)
        while self._last is None or self._last.key < key:
            self._last = next(self._objects, None)
            if self._last is None:
                return None
        return self._last if self._last.key == key else None


def _note(upload: Upload, found: dict[int, FileFacts], lease: Lease) -> None:
    if not found:
        return
    with transaction.atomic():
        lease.renew()  # a process that lost it writes nothing
        found_note(upload.pk, found)
    found.clear()


@dataclass
class _Missing:
    """Files that lack parts: how many, and the first of them."""

    count: int = 0
    problems: list[Problem] = field(default_factory=list)

    def check(self, upload: Upload) -> None:
        """Raises `Conflict` where there are any."""
        if self.count:
            raise Conflict(
                f"{self.count} of {upload.file_count} files are incomplete.",
                "parts_missing",
                remedy="GET the upload to see which parts are there, and send the others.",
                errors=self.problems,
            )


def _note_missing(
    upload: Upload,
    missing: _Missing,
    files: Sequence[SentFile],
    assemblies: Sequence[Assembly],
    arrived: Sequence[list[Part] | None],
) -> None:
    for file, one, parts in zip(files, assemblies, arrived, strict=True):
        if problem := _problem_of(file, one.lacking(parts or [])):
            missing.count += 1
            missing.problems += [problem] * (len(missing.problems) < _PROBLEMS_SHOWN)
    lost = [file.index for file, parts in zip(files, arrived, strict=True) if parts is None]
    files_forget(upload.pk, lost)  # the next address begins a new upload in parts


def _problem_of(file: SentFile, lacking: Sequence[int]) -> Problem | None:
    """The problem of a file that lacks these parts."""
    if not lacking:
        return None
    shown = ", ".join(map(str, lacking[:10])) + ("…" if len(lacking) > 10 else "")
    message = f"Of {file.path!r} these parts are missing: {shown}."
    return Problem(f"files.{file.index}", "parts_missing", message, "Send them, then complete again.", shown)


def _check_content(upload: Upload, file: SentFile, facts: FileFacts) -> None:
    if file.declared in ("", facts.sha256) and facts.size == file.size:
        return
    _send_again(upload, file)
    raise Unprocessable(
        f"{file.path!r} does not match its announced checksum.",
        "checksum_mismatch",
        remedy="Send this file's parts again, then complete again.",
        errors=[Problem(f"files.{file.index}", "checksum_mismatch", f"SHA-256 {facts.sha256}", "", file.path)],
    )


def _send_again(upload: Upload, file: SentFile) -> None:
    storage().delete(file.key(upload))
    files_forget(upload.pk, [file.index])


def _conclude(upload: Upload, lease: Lease) -> None:
    _check_normal_forms(upload)
    files: Iterable[ListedFile] = manifest_with_found(upload.pk)
    if not upload.is_sorted:  # then it was announced with one request
        files = sorted(files, key=attrgetter("path"))
    with transaction.atomic():
        rows = Upload.objects.select_for_update().filter(pk=upload.pk, lease=lease.token, state=State.COMPLETING)
        row = rows.first()
        if row is None:
            raise LeaseLost
        _, used = manifest_replace(upload.pk, files)
        progress_forget(upload.pk)
        storage_ledger.reservation_use(row.namespace_id, reserved=row.held, used=used)
        row.state, row.held, row.lease, row.leased_until = State.COMPLETE, used, None, None
        row.is_sorted, row.touched_at = True, timezone.now()
        row.save(update_fields=["state", "held", "lease", "leased_until", "is_sorted", "touched_at"])


def _check_normal_forms(upload: Upload) -> None:
    """Paths that differ only in how accents are composed are doubled. What one request announced was checked then."""
    if upload.file_count <= FILES_AT_ONCE or upload.unpacked:
        return
    paths = (file.path for file in manifest_of(upload.pk))
    others = {normalize("NFC", path) for path in paths if not is_normalized("NFC", path)}
    if not others:
        return
    seen: set[str] = set()
    for file in manifest_of(upload.pk):
        path = normalize("NFC", file.path)
        if path in seen:
            problem = Problem("files", "path_doubled", "Two files have this path.", "Rename one of the two.", path)
            raise UploadRefused(f"Two files have the path {path!r}.", "path_doubled", errors=[problem])
        if path in others:
            seen.add(path)


def _note_problem(upload: Upload, lease: Lease, error: DomainError | YardmasterError) -> None:
    final = isinstance(error, UploadRefused)
    passing = isinstance(error, Unavailable) and not isinstance(error, StorageFull)
    with transaction.atomic():
        rows = Upload.objects.select_for_update().filter(pk=upload.pk, lease=lease.token, state=State.COMPLETING)
        row = rows.first()
        if row is None:
            return
        if final:
            freed = row.held - still_writable(row)
            storage_ledger.give_back(row.namespace_id, used=0, reserved=freed, files=row.files_held)
            row.held, row.files_held = row.held - freed, 0
            manifest_replace(upload.pk, ())  # what counts for no limit is not kept
            progress_forget(upload.pk)
        row.state = State.FAILED if final else State.COMPLETING if passing else State.OPEN
        row.problem, row.lease, row.leased_until, row.touched_at = error_to_json(error), None, None, timezone.now()
        row.save(update_fields=["state", "problem", "held", "files_held", "lease", "leased_until", "touched_at"])
    if final:
        storage().delete_prefix(upload.key_prefix)
        storage().delete_prefix(f"uploads/{upload.pk}")

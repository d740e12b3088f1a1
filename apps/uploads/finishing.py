"""Putting an upload together and checking it, in the request for small ones and in a worker for large ones.

One at a time holds the upload's lease. Whatever cuts it off, calling `upload_finish` again goes on file by file. Not
here: zips (`unpacking`).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from apps.errors import Conflict, DomainError, Unprocessable, error_to_json
from apps.stores.objects import storage
from apps.uploads import storage_ledger
from apps.uploads.lanes import in_lanes
from apps.uploads.leases import Lease, LeaseLost, lease_claim
from apps.uploads.limits import crc_budgets, part_count, part_length
from apps.uploads.manifest import (
    SentFile,
    files_forget,
    found_note,
    manifest_replace,
    manifest_with_found,
    sent_files,
)
from apps.uploads.models import Kind, State, Upload
from apps.uploads.removal import remove_after_loss
from apps.uploads.unpacking import UploadRefused, archive_unpack
from yardmaster.errors import Problem, Unavailable, YardmasterError
from yardmaster.storage.base import ObjectMissing, Part, StorageFull, UploadMissing
from yardmaster.storage.facts import FactFinder, FileFacts, find_facts
from yardmaster.storage.file_list import pack

_NOTED_AT_ONCE = 200


def upload_finish(upload_id: uuid.UUID) -> None:
    """Complete an upload in state `completing`. Anything else, and one that another process completes: nothing to do.

    What is wrong with the upload is kept in `problem`, takes it back to `open` (or to `failed` where sending again
    cannot help) and is raised as `DomainError` or `StorageFull`. Where the store does not answer, `Unavailable` is
    raised and the state stays: the next call goes on.
    """
    lease = lease_claim(upload_id)
    if lease is None:
        return
    upload = Upload.objects.select_related("namespace").get(pk=upload_id)
    try:
        _put_together(upload, lease)
        if upload.unpack:
            archive_unpack(upload, lease)
        _conclude(upload, lease)
    except LeaseLost:
        remove_after_loss(upload)
    except (DomainError, YardmasterError) as error:
        _note_problem(upload, lease, error)
        raise


def _put_together(upload: Upload, lease: Lease) -> None:
    files = [file for file in sent_files(upload.pk).values() if not file.sha256]
    arrived = list(in_lanes(lambda file: _arrived(upload, file), files, lease.beat))
    _check_all_there(upload, files, arrived)
    budgets = crc_budgets(file.size for file in files)
    work = [
        _Work(upload, file, parts or [], budget, lease)
        for file, parts, budget in zip(files, arrived, budgets, strict=True)
    ]
    found: dict[int, FileFacts] = {}
    try:
        for file, facts in zip(files, in_lanes(_Work.do, work, lease.beat), strict=True):
            _check_content(upload, file, facts)
            found[file.index] = facts
            if len(found) == _NOTED_AT_ONCE:
                _note(upload, found, lease)
    finally:
        _note(upload, found, lease)


def _note(upload: Upload, found: dict[int, FileFacts], lease: Lease) -> None:
    with transaction.atomic():
        lease.renew()  # whoever lost it writes nothing
        found_note(upload.pk, found)
    found.clear()


def _arrived(upload: Upload, file: SentFile) -> list[Part] | None:
    """The parts of a file that are there; each without an ETag where they are put together already. None: the store
    knows nothing of the file any more."""
    if not file.multipart_id:
        return []
    key = file.key(upload)
    try:
        return storage().parts(key, file.multipart_id)
    except UploadMissing:
        # Put together by a try that was cut off before it could note so: then the object is there, whole.
        try:
            whole = storage().stat(key).size == file.size
        except ObjectMissing:
            whole = False
        return [Part(n, size, "") for n, size in _parts_of(upload, file).items()] if whole else None


def _check_all_there(upload: Upload, files: Sequence[SentFile], arrived: Sequence[list[Part] | None]) -> None:
    missing = [
        problem for file, parts in zip(files, arrived, strict=True) if (problem := _lacking(upload, file, parts or []))
    ]
    lost = [file.index for file, parts in zip(files, arrived, strict=True) if parts is None]
    files_forget(upload.pk, lost)  # the next address begins a new upload in parts
    if missing:
        raise Conflict(
            f"{len(missing)} of {upload.file_count} files are incomplete.",
            "parts_missing",
            remedy="GET the upload to see which parts are there, and send the others.",
            errors=missing[:20],
        )


def _lacking(upload: Upload, file: SentFile, arrived: list[Part]) -> Problem | None:
    """The problem of a file whose parts are not all there."""
    sizes = {part.number: part.size for part in arrived}
    lacking = [number for number, size in _parts_of(upload, file).items() if sizes.get(number) != size]
    if not lacking:
        return None
    shown = ", ".join(map(str, lacking[:10])) + ("…" if len(lacking) > 10 else "")
    message = f"Of {file.path!r} these parts are missing: {shown}."
    return Problem(f"files.{file.index}", "parts_missing", message, "Send them, then complete again.", shown)


def _parts_of(upload: Upload, file: SentFile) -> dict[int, int]:
    """The size of each part that the file should have."""
    count = part_count(file.size, upload.part_size)
    return {n: part_length(file.size, upload.part_size, n) for n in range(1, count + 1)}


@dataclass(frozen=True)
class _Work:
    """One file to put together and read through; speaks to the store only."""

    upload: Upload
    file: SentFile
    arrived: list[Part]
    crc_budget: int
    lease: Lease

    def do(self) -> FileFacts:
        key = self.file.key(self.upload)
        if self.file.size == 0:
            storage().put(key, b"")
        elif any(part.etag for part in self.arrived):
            storage().multipart_complete(key, self.file.multipart_id, self.arrived)
        counted = self.upload.kind == Kind.DATASET and not self.upload.unpack
        count_as = self.file.path if counted else None
        with storage().open_range(key) as source:
            finder = FactFinder(source, count_as=count_as, crc_budget=self.crc_budget, beat=self.lease.passed)
            return find_facts(finder)


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
    files = manifest_with_found(upload.pk)
    packed, used = pack(files), sum(file.size for file in files)
    with transaction.atomic():
        rows = Upload.objects.select_for_update().filter(pk=upload.pk, lease=lease.token, state=State.COMPLETING)
        row = rows.first()
        if row is None:
            raise LeaseLost
        manifest_replace(upload.pk, packed)
        storage_ledger.reservation_use(row.namespace_id, reserved=row.held, used=used)
        row.state, row.held, row.lease, row.leased_until = State.COMPLETE, used, None, None
        row.touched_at = timezone.now()
        row.save(update_fields=["state", "held", "lease", "leased_until", "touched_at"])


def _note_problem(upload: Upload, lease: Lease, error: DomainError | YardmasterError) -> None:
    final = isinstance(error, UploadRefused)
    passing = isinstance(error, Unavailable) and not isinstance(error, StorageFull)
    with transaction.atomic():
        rows = Upload.objects.select_for_update().filter(pk=upload.pk, lease=lease.token, state=State.COMPLETING)
        row = rows.first()
        if row is None:
            return
        if final:
            storage_ledger.give_back(row.namespace_id, used=0, reserved=row.held)
            row.held = 0
        row.state = State.FAILED if final else State.COMPLETING if passing else State.OPEN
        row.problem, row.lease, row.leased_until, row.touched_at = error_to_json(error), None, None, timezone.now()
        row.save(update_fields=["state", "problem", "held", "lease", "leased_until", "touched_at"])
    if final:
        storage().delete_prefix(upload.key_prefix)
        storage().delete_prefix(f"uploads/{upload.pk}")

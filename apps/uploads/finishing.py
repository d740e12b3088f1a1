"""Putting an upload together and checking it, in the request for small ones and in a worker for large ones.

One at a time holds the upload's lease. Whatever interrupts it, calling `upload_finish` again continues file by file.
Not here: zips (`unpacking`).
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from functools import partial

from django.db import transaction
from django.utils import timezone

from apps.errors import Conflict, DomainError, Unprocessable, error_to_json
from apps.stores import storage
from apps.uploads import storage_ledger
from apps.uploads.leases import Lease, LeaseLost, lease_claim
from apps.uploads.manifest import (
    SentFile,
    files_forget,
    found_note,
    manifest_replace,
    manifest_with_found,
    part_sizes,
    sent_files,
)
from apps.uploads.models import Kind, State, Upload
from apps.uploads.removal import remove_after_loss
from apps.uploads.selectors import SENT_BY_PEOPLE
from apps.uploads.unpacking import UploadRefused, archive_unpack
from yardmaster.errors import Problem, Unavailable, YardmasterError
from yardmaster.storage.assembly import Assembly, crc_budgets, in_parallel
from yardmaster.storage.base import ObjectStat, Part, StorageFull
from yardmaster.storage.facts import FileFacts
from yardmaster.storage.file_list import pack

log = logging.getLogger(__name__)

_NOTED_AT_ONCE = 200
_WORTH_LISTING = 20


def upload_finish(upload_id: uuid.UUID) -> None:
    """Complete an upload in state `completing`. Anything else, and one that another process completes: nothing to do.

    What is wrong with the upload is kept in `problem`, takes it back to `open` (or to `failed` where sending again
    cannot help) and is raised as `DomainError` or `StorageFull`. Where the store does not answer, `Unavailable` is
    raised and the state stays: the next call continues.
    """
    lease = lease_claim(upload_id)
    if lease is None:
        return
    upload = Upload.objects.select_related("namespace").get(pk=upload_id)
    try:
        _assemble(upload, lease)
        if upload.unpack:
            archive_unpack(upload, lease)
        _conclude(upload, lease)
    except LeaseLost:
        remove_after_loss(upload)
    except (DomainError, YardmasterError) as error:
        _note_problem(upload, lease, error)
        raise


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
    files = [file for file in sent_files(upload.pk).values() if not file.sha256]
    store = storage()
    listed = _listed(upload, files)
    assemblies = [
        Assembly(
            store,
            file.key(upload),
            file.size,
            file.multipart_id,
            part_sizes(file.size, upload.part_size),
            file.declared,
            file.whole,
            listed.get(file.key(upload)) if file.whole_only else None,
        )
        for file in files
    ]
    arrived = list(in_parallel(Assembly.arrived, assemblies, lease.beat))
    _check_all_there(upload, files, assemblies, arrived)
    counted = upload.kind == Kind.DATASET and not upload.unpack
    work = [
        partial(
            one.assemble, parts or [], count_as=file.path if counted else None, crc_budget=budget, beat=lease.passed
        )
        for file, one, parts, budget in zip(
            files, assemblies, arrived, crc_budgets(file.size for file in files), strict=True
        )
    ]
    found: dict[int, FileFacts] = {}
    try:
        for file, facts in zip(files, in_parallel(partial.__call__, work, lease.beat), strict=True):
            _check_content(upload, file, facts)
            found[file.index] = facts
            if len(found) == _NOTED_AT_ONCE:
                _note(upload, found, lease)
    finally:
        _note(upload, found, lease)


def _listed(upload: Upload, files: Sequence[SentFile]) -> dict[str, ObjectStat]:
    """The objects that are there already, where many files were sent whole: a thousand of them with one request. Of an
    upload of a task others may have had addresses for the same places: there each object is looked at."""
    if upload.kind not in SENT_BY_PEOPLE or sum(file.whole_only for file in files) < _WORTH_LISTING:
        return {}
    return {one.key: one for one in storage().list_prefix(upload.key_prefix)}


def _note(upload: Upload, found: dict[int, FileFacts], lease: Lease) -> None:
    with transaction.atomic():
        lease.renew()  # a process that lost it writes nothing
        found_note(upload.pk, found)
    found.clear()


def _check_all_there(
    upload: Upload,
    files: Sequence[SentFile],
    assemblies: Sequence[Assembly],
    arrived: Sequence[list[Part] | None],
) -> None:
    missing = [
        problem
        for file, one, parts in zip(files, assemblies, arrived, strict=True)
        if (problem := _problem_of(file, one.lacking(parts or [])))
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
        if final and not row.is_writable(timezone.now()):
            storage_ledger.give_back(row.namespace_id, used=0, reserved=row.held)
            row.held = 0
        row.state = State.FAILED if final else State.COMPLETING if passing else State.OPEN
        row.problem, row.lease, row.leased_until, row.touched_at = error_to_json(error), None, None, timezone.now()
        row.save(update_fields=["state", "problem", "held", "lease", "leased_until", "touched_at"])
    if final:
        storage().delete_prefix(upload.key_prefix)
        storage().delete_prefix(f"uploads/{upload.pk}")

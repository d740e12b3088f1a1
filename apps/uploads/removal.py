"""Removing an upload: first its quota is given back and it is gone for everybody, then its bytes go.

Interrupted between the two, the sweep continues. One process removes an upload at a time. Places of the object store
that were removed are removed again for as long as a late writer may come: a write that was under way when its job or
upload was deleted is refused or undone where it happens; a tombstone is for writers that died between the two.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Collection, Iterable
from contextlib import closing
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.dispatch.messages import REMOVE_UPLOAD, enqueue
from apps.stores import storage
from apps.uploads import storage_ledger
from apps.uploads.file_blocks import manifest_of, manifest_replace
from apps.uploads.leases import Lease, LeaseLost, removal_claim
from apps.uploads.manifest import ADDRESS_LIFE, INLINE_FILES, SentFile, batch_forget, open_in_parts
from apps.uploads.models import State, Tombstone, Upload
from yardmaster.errors import Unavailable
from yardmaster.storage.assembly import in_parallel
from yardmaster.storage.base import key_join

T = TypeVar("T")
_AGAIN_AFTER = (timedelta(minutes=1), timedelta(minutes=10), 2 * ADDRESS_LIFE, timedelta(hours=24))
"""After the removal: a signed address is good for a quarter of an hour, a lease of a worker for a minute."""
AT_ONCE = 100


def tombstones_set(prefixes: Iterable[str], now: datetime) -> None:
    """Belongs into the transaction that forgets what lay there. Only for prefixes that are never written again."""
    rows = [Tombstone(prefix=prefix, removed_at=now, again_at=now + _AGAIN_AFTER[0]) for prefix in prefixes]
    Tombstone.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["prefix"], update_fields=["removed_at", "again_at"]
    )


def tombstones_sweep(now: datetime) -> None:
    """Remove what late writers left, some at a time. Raises `Unavailable`."""
    for stone in Tombstone.objects.filter(again_at__lte=now).order_by("again_at")[:AT_ONCE]:
        storage().delete_prefix(stone.prefix)
        mine = Tombstone.objects.filter(pk=stone.pk, again_at=stone.again_at)
        following = [stone.removed_at + wait for wait in _AGAIN_AFTER if stone.removed_at + wait > now]
        if following:
            mine.update(again_at=following[0])
        else:
            mine.delete()


log = logging.getLogger(__name__)


def mark_for_removal(uploads: QuerySet[Upload]) -> list[uuid.UUID]:
    """Give the bytes of these uploads back to their namespaces and mark them for removal, in a few statements for all.
    Returns which: not those that another has marked before. The bytes of one that can still be written stay reserved
    until its addresses have expired: otherwise a tenant could fill the store with what it has discarded."""
    now = timezone.now()
    with transaction.atomic():
        found = uploads.exclude(state=State.DELETING).select_for_update()
        rows = list(found.only("pk", "namespace_id", "state", "held", "files_held", "writable_until"))
        for namespace_id in {row.namespace_id for row in rows}:
            of_it = [row for row in rows if row.namespace_id == namespace_id]
            used = sum(row.held for row in of_it if row.state == State.COMPLETE)
            kept = sum(row.held for row in of_it if row.is_writable(now))
            reserved = sum(row.held for row in of_it) - used
            files = sum(row.files_held for row in of_it if not row.is_writable(now))
            storage_ledger.give_back(namespace_id, used=used, reserved=reserved - kept, files=files)
        ids = [row.pk for row in rows]
        Upload.objects.filter(pk__in=ids).update(state=State.DELETING, used=False, lease=None, leased_until=None)
        Upload.objects.filter(pk__in=[row.pk for row in rows if not row.is_writable(now)]).update(held=0, files_held=0)
    return ids


def still_writable(upload: Upload) -> int:
    """How many of the bytes that are reserved for an upload that failed its addresses may still write: of an archive
    not what it would have held."""
    if not upload.is_writable(timezone.now()):
        return 0
    return min(upload.held, sum(one.size for one in manifest_of(upload.pk))) if upload.unpack else upload.held


def charge_left_place(upload: Upload, prefix: str, size: int) -> None:
    """Of what the upload has reserved, keep `size` bytes charged for `prefix`, where it was sent whole and lies no
    longer, as long as its address may still write there: as for an upload that was discarded. `upload` is as the
    database has it. Belongs into the transaction in which its bytes leave that place."""
    now = timezone.now()
    if not upload.is_writable(now):
        return
    left = Upload(
        namespace_id=upload.namespace_id, created_by_id=upload.created_by_id, kind=upload.kind, job_id=upload.job_id,
        key_prefix=prefix, part_size=upload.part_size, file_count=1, held=min(size, upload.held),
        state=State.DELETING, created_at=now, touched_at=now, writable_until=upload.writable_until,
    )  # fmt: skip
    left.save(force_insert=True)
    Upload.objects.filter(pk=upload.pk).update(held=upload.held - left.held)


def remove_now(upload_id: uuid.UUID) -> None:
    """Remove the bytes of few files at once; those of many are left to a worker."""
    count = Upload.objects.filter(pk=upload_id, state=State.DELETING).values_list("file_count", flat=True).first()
    if count is not None and count > INLINE_FILES:
        enqueue(REMOVE_UPLOAD, upload_id)
    elif count is not None:
        upload_remove(upload_id)


def upload_remove(upload_id: uuid.UUID) -> None:
    """Remove the bytes; where the store does not answer, the sweep tries again."""
    try:
        remove(upload_id)
    except Unavailable:
        log.warning("The object store does not answer; upload %s is removed later.", upload_id, exc_info=True)


def remove(upload_id: uuid.UUID) -> None:
    """Remove the bytes, and then the upload. One process at a time: for the others there is nothing to do. Raises
    `Unavailable`."""
    lease = removal_claim(upload_id)
    if lease is None:
        return
    is_gone = False
    try:
        upload = Upload.objects.get(pk=upload_id)
        _remove_bytes(upload, lease)
        is_gone = _forget(upload, lease)
    except LeaseLost:
        log.info("Another process removes upload %s.", upload_id)
    finally:
        if not is_gone:
            lease.release()


def _remove_bytes(upload: Upload, lease: Lease) -> None:
    """What was begun in parts was noted before an address of it was given away: what a process that died in between
    has left holds nothing, and `clean_up` of the store finds it."""

    def abort(file: SentFile) -> None:
        storage().multipart_abort(file.key(upload), file.multipart_id)

    for number, files in open_in_parts(upload):
        _for_each(abort, files, lease)
        lease.beat()
        batch_forget(upload, number)
    _for_each(storage().delete_prefix, [upload.key_prefix, f"uploads/{upload.pk}"], lease)


def _for_each(work: Callable[[T], None], items: Iterable[T], lease: Lease) -> None:
    """Side by side; the lease is renewed meanwhile."""
    with closing(in_parallel(work, items, lease.beat)) as done:
        for _ in done:
            pass


def _forget(upload: Upload, lease: Lease) -> bool:
    """Forget an upload whose bytes are gone. False: its addresses may still write. The sweep removes it once more when
    they have expired."""
    now = timezone.now()
    if upload.is_writable(now):
        return False
    with transaction.atomic():
        rows = Upload.objects.select_for_update().filter(pk=upload.pk, lease=lease.token, state=State.DELETING)
        row = rows.first()
        if row is None:
            raise LeaseLost
        tombstones_set([f"uploads/{upload.pk}", upload.key_prefix], now)
        storage_ledger.give_back(row.namespace_id, used=0, reserved=row.held, files=row.files_held)
        row.delete()
    return True


def files_remove(upload_id: uuid.UUID, paths: Collection[str]) -> None:
    """Remove some files of a complete upload, and return their bytes to the namespace; with the last of them the upload
    goes. Repeats harmlessly. Raises `Unavailable`."""
    upload = Upload.objects.filter(pk=upload_id, state=State.COMPLETE).first()
    if upload is None:
        return
    for file in manifest_of(upload_id):
        if file.path in paths:
            storage().delete(key_join(upload.key_prefix, file.path))
    with transaction.atomic():
        row = Upload.objects.select_for_update().filter(pk=upload_id, state=State.COMPLETE).first()
        if row is None:
            return
        left, size = manifest_replace(upload_id, (one for one in manifest_of(upload_id) if one.path not in paths))
        if left:
            freed = row.held - size
            storage_ledger.give_back(row.namespace_id, used=freed, reserved=0, files=max(0, row.files_held - left))
            kept = min(left, row.files_held)
            Upload.objects.filter(pk=upload_id).update(held=size, file_count=left, files_held=kept)
        elif mark_for_removal(Upload.objects.filter(pk=upload_id)):
            transaction.on_commit(partial(remove_now, upload_id))


def remove_after_loss(upload: Upload) -> None:
    """Undo what was written for an upload that was removed while it was being completed."""
    if Upload.objects.filter(pk=upload.pk).exclude(state=State.DELETING).exists():
        return  # another process completes it
    storage().delete_prefix(f"uploads/{upload.pk}")
    storage().delete_prefix(upload.key_prefix)

"""Several complete uploads become one: their objects are copied to a place of their own, and then, in one transaction,
the list of files and the bytes on the namespace's account move with them.

Copying may be interrupted and repeated: the same objects are written to the same keys. Until `uploads_join` nothing of
it is visible or counted.
"""

from __future__ import annotations

import heapq
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from unicodedata import normalize

from django.utils import timezone

from apps.accounts.models import User
from apps.errors import Conflict
from apps.namespaces.models import Namespace
from apps.stores import storage
from apps.uploads import storage_ledger
from apps.uploads.file_blocks import manifest_of, manifest_replace
from apps.uploads.models import Kind, State, Upload
from apps.uploads.services import folder_for, uploads_discard
from yardmaster.storage.assembly import in_parallel
from yardmaster.storage.base import key_join
from yardmaster.storage.file_list import ListedFile

MOST_FILES = 200_000
"""Of all uploads together: their paths are in memory while they are compared."""
_COPIED_AT_ONCE = 64


def joined_files(
    uploads: Mapping[str, Upload], left_out: Collection[str] = ()
) -> Iterator[tuple[str, Upload, ListedFile]]:
    """All files by path, each with the name and the upload that it is of. Raises `Conflict` where two uploads have the
    same path, or one a file where another has a folder."""

    def files_of(name: str, upload: Upload) -> Iterator[tuple[str, str, Upload, ListedFile]]:
        return ((one.path, name, upload, one) for one in manifest_of(upload.pk))

    owners: dict[str, str] = {}
    folders: dict[str, str] = {}
    parts = [files_of(name, upload) for name, upload in uploads.items()]
    for path, name, upload, file in heapq.merge(*parts, key=itemgetter(0, 1)):
        if path in left_out:
            continue
        _note(normalize("NFC", path), name, owners, folders)
        yield name, upload, file


def _note(path: str, name: str, owners: dict[str, str], folders: dict[str, str]) -> None:
    above = [path[:at] for at, sign in enumerate(path) if sign == "/"]
    other = owners.get(path) or folders.get(path) or next((owners[one] for one in above if one in owners), None)
    if other is not None:
        raise Conflict(
            f"{other} and {name} both wrote {path!r}.",
            "path_written_twice",
            remedy="Let each task write files of its own, for instance with YARDMASTER_INDEX in their names.",
        )
    if len(owners) >= MOST_FILES:
        raise Conflict(
            f"All tasks together wrote more than {MOST_FILES:,} files.",
            "too_many_files",
            remedy="Pack small files into larger ones.",
        )
    owners[path] = name
    for one in above:
        folders.setdefault(one, name)


def objects_join(
    uploads: Mapping[str, Upload], prefix: str, left_out: Collection[str], beat: Callable[[], None]
) -> None:
    """Copy the files of all uploads below `prefix`. `beat` is called now and then. Raises as `joined_files` does,
    before anything is copied, and `Unavailable`."""
    for _ in joined_files(uploads, left_out):
        pass
    storage().prepare(prefix)
    some: list[Callable[[], object]] = []
    for _, upload, file in joined_files(uploads, left_out):
        source, target = key_join(upload.key_prefix, file.path), key_join(prefix, file.path)
        some.append(partial(storage().copy, source, target))
        if len(some) == _COPIED_AT_ONCE:
            _run(some, beat)
            some = []
    _run(some, beat)


def _run(work: Sequence[Callable[[], object]], beat: Callable[[], None]) -> None:
    for _ in in_parallel(_call, work, lambda: beat()):
        pass
    beat()


def _call(one: Callable[[], object]) -> object:
    return one()


def prefix_for(namespace: Namespace, kind: Kind, target_id: uuid.UUID) -> str:
    """Where the objects of what becomes the version `target_id` lie."""
    return f"{folder_for(namespace, kind)}/{target_id}"


def uploads_join(
    *,
    namespace: Namespace,
    actor: User | None,
    kind: Kind,
    target_id: uuid.UUID,
    uploads: Mapping[str, Upload],
    left_out: Collection[str],
    more: Sequence[ListedFile],
) -> Upload:
    """The one complete upload, whose objects are there already, in the place of the others, which are discarded.
    Belongs into the transaction that uses it. `more` are files that were added.

    The places of the others can be written as long as their signed addresses are valid. So long, the bytes of the one
    are charged, also where it is deleted: what lies there unpaid is never more than what is paid."""
    now = timezone.now()
    held = {one.pk: one.held for one in uploads.values()}
    listed = sum(one.files_held for one in uploads.values())
    made = Upload(
        namespace=namespace, created_by=actor, kind=kind, target_id=target_id, created_at=now, touched_at=now,
        key_prefix=prefix_for(namespace, kind, target_id), state=State.COMPLETE, is_sorted=True, held=0, file_count=0,
        part_size=max(one.part_size for one in uploads.values()),
        writable_until=max((one.writable_until for one in uploads.values() if one.writable_until), default=None),
    )  # fmt: skip
    made.save(force_insert=True)
    files = heapq.merge((one for _, _, one in joined_files(uploads, left_out)), more, key=lambda one: one.path)
    made.file_count, made.held = manifest_replace(made.pk, files)
    made.example = next(iter(manifest_of(made.pk))).path
    made.files_held = made.file_count
    made.save(update_fields=["file_count", "files_held", "held", "example"])
    storage_ledger.give_back(
        namespace.pk, used=sum(held.values()) - made.held, reserved=0, files=listed - made.files_held
    )
    Upload.objects.filter(pk__in=held).update(held=0, files_held=0)
    uploads_discard(held)
    return made

"""Which uploads a person may see, what has arrived of them, and what a namespace holds. Reads only."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile

from django.conf import settings
from django.db.models import QuerySet

from apps.accounts.models import User
from apps.errors import Forbidden, NotFound
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import may, namespaces_visible, require_role
from apps.stores import storage
from apps.uploads import storage_ledger
from apps.uploads.file_blocks import manifest_of
from apps.uploads.manifest import FILES_AT_ONCE, SentFile, part_count, sent_files
from apps.uploads.models import Kind, State, Upload
from apps.uploads.storage_ledger import StorageUse
from yardmaster.storage.base import ObjectMissing, UploadMissing, key_join

SENT_BY_PEOPLE = (Kind.DATASET, Kind.CODE)


@dataclass(frozen=True)
class StoredFile:
    """A file that is complete: what it is called, and where it lies."""

    path: str
    size: int
    sha256: str
    key: str
    more_keys: tuple[str, ...] = ()
    """Where the rest of it lies, of one that was sent in segments."""

    @property
    def keys(self) -> tuple[str, ...]:
        return (self.key, *self.more_keys)


@dataclass(frozen=True)
class FileProgress:
    """One file of an upload, and which of its parts have arrived."""

    index: int
    path: str
    size: int
    parts: int
    done: list[int]


def storage_used(namespace: Namespace) -> StorageUse:
    """The namespace's bytes: of what is complete, and reserved by what is still being sent."""
    return storage_ledger.storage_use(namespace)


def uploads_in(namespace: Namespace) -> QuerySet[Upload]:
    """Everything that was sent to the namespace and did not become anything."""
    return Upload.objects.filter(namespace=namespace, used=False)


def uploads_visible(user: User) -> QuerySet[Upload]:
    """What people send, in the user's namespaces; not what tasks send, and nothing that is being deleted."""
    return Upload.objects.filter(namespace__in=namespaces_visible(user), kind__in=SENT_BY_PEOPLE, used=False).exclude(
        state=State.DELETING
    )


def own_uploads(user: User, kind: Kind, most: int = 10) -> list[Upload]:
    """What the user began to send and has made nothing of, newest first."""
    rows = uploads_visible(user).filter(created_by=user, kind=kind).exclude(state=State.FAILED)
    return list(rows.select_related("namespace").order_by("-pk")[:most])


def upload_for(user: User, upload_id: uuid.UUID, *, at_least: Role = Role.MEMBER) -> Upload:
    """The upload, if the user may see it, or with `at_least` make something of it. Unknown, foreign, or a task's: the
    same 404. Who sends to it: `own_upload_for`."""
    found = Upload.objects.select_related("namespace").exclude(state=State.DELETING)
    upload = found.filter(pk=upload_id, kind__in=SENT_BY_PEOPLE, namespace__in=namespaces_visible(user)).first()
    if upload is None:
        raise NotFound()
    require_role(user, upload.namespace, at_least)
    return upload


def own_upload_for(user: User, upload_id: uuid.UUID) -> Upload:
    """The upload, if the user began it. Only they send to it, so that what is made of it holds what they sent. Raises
    `Forbidden` for other members of its namespace, whatever their role."""
    upload = upload_for(user, upload_id)
    if upload.created_by_id != user.pk:
        raise Forbidden(
            f"{_starter(upload)} started this upload, and only they can send to it.", "Start an upload of your own."
        )
    return upload


def upload_to_discard(user: User, upload_id: uuid.UUID) -> Upload:
    """The upload, if the user began it or manages its namespace. Raises `Forbidden` for other members."""
    upload = upload_for(user, upload_id)
    if upload.created_by_id != user.pk and not may(user, upload.namespace, Role.MANAGER):
        raise Forbidden(
            f"{_starter(upload)} started this upload.",
            f"They or a manager of {upload.namespace.slug} can discard it.",
        )
    return upload


def _starter(upload: Upload) -> str:
    return upload.created_by.username if upload.created_by else "A user who was removed"


def upload_for_job(job_id: uuid.UUID, upload_id: uuid.UUID) -> Upload:
    """The upload that a task of this job began. Anything else: 404."""
    found = Upload.objects.select_related("namespace").exclude(state=State.DELETING)
    upload = found.filter(pk=upload_id, job_id=job_id).first()
    if upload is None:
        raise NotFound()
    return upload


def files_progress(upload: Upload, first: int = 0, most: int = FILES_AT_ONCE) -> list[FileProgress]:
    """The files from number `first` on with the parts that have arrived: all that is needed to continue."""
    files = list(sent_files(upload.pk, range(first, min(first + most, upload.file_count))).values())
    objects: dict[str, int] = {}
    if not upload.is_complete and any(not file.multipart_id for file in files):  # perhaps sent as whole objects
        objects = _objects_of(upload, files)
    return [_progress(upload, file, objects) for file in files]


def _objects_of(upload: Upload, files: Sequence[SentFile]) -> dict[str, int]:
    """The sizes of what lies where these files belong. A large upload is in the order of its paths."""
    if upload.file_count <= FILES_AT_ONCE:
        return {one.key: one.size for one in storage().list_prefix(upload.key_prefix)}
    first, last = files[0].key(upload), files[-1].key(upload)
    listed = storage().list_prefix(upload.key_prefix, first)
    if storage().is_near:  # a folder has no order, and costs no request
        return {one.key: one.size for one in listed if one.key <= last}
    return {one.key: one.size for one in takewhile(lambda one: one.key <= last, listed)}


def stored_files(upload: Upload) -> Iterator[StoredFile]:
    """The files of a complete upload, by path."""
    for file in manifest_of(upload.pk):
        yield StoredFile(file.path, file.size, file.sha256, key_join(upload.key_prefix, file.path))


def expires_at(upload: Upload) -> datetime:
    """When the upload goes if nothing more happens to it."""
    return upload.touched_at + settings.YARDMASTER_UPLOAD_TTL


def _is_whole(upload: Upload, file: SentFile) -> bool:
    try:
        return storage().stat(file.key(upload)).size == file.size
    except ObjectMissing:
        return False


def _progress(upload: Upload, file: SentFile, objects: Mapping[str, int]) -> FileProgress:
    parts = part_count(file.size, upload.part_size)
    if file.sha256 or upload.is_complete or objects.get(file.key(upload)) == file.size:
        done = list(range(1, parts + 1))
    elif file.multipart_id:
        try:
            done = [part.number for part in storage().parts(file.key(upload), file.multipart_id)]
        except UploadMissing:  # put together and not noted, as when others found the store full; or lost
            is_there = upload.state == State.COMPLETING or _is_whole(upload, file)
            done = list(range(1, parts + 1)) if is_there else []
    else:
        done = []
    return FileProgress(file.index, file.path, file.size, parts, done)

"""The life of an upload: begin, parts, complete, abort, expire. Every function may be called again without harm.

Quota is reserved before the first byte is sent. Not here: which files may be announced (`announcing`), how they are put
together and checked (`finishing`), archives (`unpacking`), and what an upload becomes (datasets, code, checkpoints,
models).
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from functools import partial

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.accounts.models import User
from apps.dispatch.messages import FINISH_UPLOAD, enqueue
from apps.errors import Conflict, DomainError, Invalid, NotFound, error_from_json
from apps.namespaces.models import Namespace
from apps.namespaces.selectors import refuse_closed
from apps.stores import storage
from apps.uploads import storage_ledger
from apps.uploads.announcing import check_files, is_in_order
from apps.uploads.file_blocks import manifest_append
from apps.uploads.finishing import upload_finish
from apps.uploads.manifest import INLINE_ARCHIVE_BYTES, INLINE_BYTES, INLINE_FILES, part_size_for
from apps.uploads.models import Kind, State, Upload
from apps.uploads.removal import mark_for_removal, remove_now, tombstones_sweep
from yardmaster.errors import Problem, Unavailable
from yardmaster.ids import folder_of
from yardmaster.logs.volume import Refusal
from yardmaster.storage.file_list import ListedFile

_CLEARED_AT_ONCE = 50
_MARKED_AT_ONCE = 500
_SWEPT_FOR = 10.0
"""Seconds of removals in one sweep: its thread is one of few."""
_FOLDERS = {Kind.DATASET: "datasets", Kind.CODE: "code", Kind.MODEL: "models", Kind.PACKAGES: "packages"}


def upload_begin(
    *,
    namespace: Namespace,
    actor: User | None,
    kind: Kind | str,
    files: Sequence[ListedFile],
    key_prefix: str | None = None,
    job_id: uuid.UUID | None = None,
    lock: Callable[[], None] | None = None,
) -> Upload:
    """Check the files and reserve their bytes. Raises `Invalid` (every problem), `QuotaExceeded`, and `Conflict` where
    too many uploads are open.

    `key_prefix` (of what tasks send) is a place of its own, to which nothing else was or will be sent: a signed address
    is good for a while, whatever becomes of its upload. `lock` is called in the transaction that writes the upload: it
    locks the row that the upload must not outlive, and raises where that is gone. Without it the namespace and the
    actor are locked.
    """
    kind = Kind(kind)
    check_files(files)
    now = timezone.now()
    upload = Upload(namespace=namespace, created_by=actor, kind=kind, job_id=job_id, created_at=now, touched_at=now)
    upload.key_prefix = key_prefix or f"{folder_for(namespace, kind)}/{upload.target_id}"
    upload.part_size = part_size_for(max(file.size for file in files))
    upload.file_count = upload.files_held = len(files)
    upload.held = sum(file.size for file in files)
    upload.example = files[0].path
    upload.is_sorted = is_in_order(files)
    storage().prepare(upload.key_prefix)
    with transaction.atomic():
        if lock is None:
            _lock(namespace, actor)
        else:
            lock()
        storage_ledger.reserve(namespace, upload.held, len(files))  # and so of two in one namespace
        _check_open(namespace, actor, job_id)
        upload.save(force_insert=True)
        manifest_append(upload.pk, 0, files)
    return upload


def folder_for(namespace: Namespace, kind: Kind) -> str:
    """Where the versions of a kind lie."""
    return f"{folder_of(namespace.pk)}/{_FOLDERS[kind]}"


def upload_complete(upload: Upload, *, unpack: bool = False) -> Upload:
    """Put the files together and check them. Small uploads are complete on return; for large ones a worker is woken and
    the state is `completing` until it is done. What is wrong with the upload is raised, and kept in `problem`.
    """
    if unpack and upload.file_count != 1:
        message = f"Only an upload of one archive can be unpacked; this one has {upload.file_count} files."
        raise Invalid([_problem("unpack", "invalid", message, "true")])
    now = timezone.now()
    rows = Upload.objects.filter(pk=upload.pk, state=State.OPEN)
    rows.update(state=State.COMPLETING, unpack=unpack, problem=None, touched_at=now, leased_until=None)
    state = Upload.objects.filter(pk=upload.pk).values_list("state", flat=True).first()
    if state in (None, State.DELETING):
        raise NotFound()
    if state == State.COMPLETING:  # of this call, or of one before that was interrupted
        most = INLINE_ARCHIVE_BYTES if unpack else INLINE_BYTES
        is_small = upload.file_count <= INLINE_FILES and upload.held <= most
        if not is_small or not upload_finish(upload.pk, in_request=True):
            enqueue(FINISH_UPLOAD, upload.pk)
    found = Upload.objects.select_related("namespace").filter(pk=upload.pk).first()
    if found is None:  # removed meanwhile
        raise NotFound()
    if found.state == State.FAILED:
        raise problem_of(found)
    return found


def problem_of(upload: Upload) -> DomainError | Unavailable:
    """Why the last `complete` failed."""
    return error_from_json(upload.problem) if upload.problem else Conflict("The upload failed.")


def upload_use(upload: Upload) -> None:
    """Bind a complete upload to what it becomes, once. Belongs into the transaction that makes that.

    Raises `Conflict`: not complete, or used before.
    """
    if Upload.objects.filter(pk=upload.pk, state=State.COMPLETE, used=False).update(used=True):
        return
    upload = Upload.objects.filter(pk=upload.pk).first() or upload
    if upload.used:
        raise Conflict("This upload has already become a version.", "upload_used", remedy="Upload the files again.")
    raise Conflict(
        f"This upload is {upload.state}, not complete.",
        "upload_not_complete",
        remedy="Send all parts, then POST to its complete/ address and wait until its state is complete.",
    )


def upload_abort(upload: Upload) -> None:
    """Give the quota back and remove what was sent. Raises `Conflict` while it is completed by a worker, or in use."""
    free = Q(leased_until=None) | Q(leased_until__lt=timezone.now())
    if mark_for_removal(Upload.objects.filter(free, pk=upload.pk, used=False)):
        remove_now(upload.pk)
        return
    upload = Upload.objects.filter(pk=upload.pk).first() or upload
    if upload.used:
        raise Conflict(
            "The uploaded files are in use.",
            "upload_used",
            remedy="Delete the version that was created from it instead.",
        )
    if upload.state == State.COMPLETING:
        raise Conflict("This upload is being completed.", remedy="Wait until it is complete, then delete it.")


def uploads_discard(upload_ids: Iterable[uuid.UUID]) -> None:
    """Remove stored uploads, in use or not, and return their quota: what they became has been deleted.

    May be called inside a transaction; the bytes are removed after it, of very many by the sweep.
    """
    ids = list(upload_ids)
    going: list[uuid.UUID] = []
    for at in range(0, len(ids), _MARKED_AT_ONCE):
        going += mark_for_removal(Upload.objects.filter(pk__in=ids[at : at + _MARKED_AT_ONCE]))
    for upload_id in going[:_CLEARED_AT_ONCE]:
        transaction.on_commit(partial(remove_now, upload_id))


def uploads_clear(namespace: Namespace) -> int:
    """Remove what is stored for a namespace of which nothing shall stay, some at a time. Returns how many uploads are
    still there: one that is just being completed is waited for."""
    stored = Upload.objects.filter(namespace=namespace)
    going = stored.exclude(state__in=[State.COMPLETING, State.DELETING])
    uploads_discard(going.values_list("pk", flat=True)[:_CLEARED_AT_ONCE])
    return stored.count()


def uploads_discard_of_job(job_id: uuid.UUID) -> bool:
    """Remove everything that the job's tasks have sent, used or not, but what outlives it (versions of models, and
    packages), and return its quota. False: one is just being completed, and is waited for. No other can be begun: the
    job is marked as deleted."""
    stored = Upload.objects.filter(job_id=job_id).exclude(kind__in=[Kind.MODEL, Kind.PACKAGES], used=True)
    idle = stored.exclude(Q(state=State.COMPLETING, leased_until__gte=timezone.now()) | Q(state=State.DELETING))
    uploads_discard(idle.values_list("pk", flat=True))
    return not stored.exclude(state=State.DELETING).exists()


def uploads_discard_files(job_id: uuid.UUID, kinds: Collection[Kind], before: datetime, most: int) -> bool:
    """Remove what the job's tasks have sent of these kinds and began to send before then, used or not, and return its
    quota; some at a time. False: there is more, or one is just being completed."""
    stored = Upload.objects.filter(job_id=job_id, kind__in=kinds, created_at__lte=before).exclude(state=State.DELETING)
    idle = stored.exclude(state=State.COMPLETING, leased_until__gte=timezone.now())
    uploads_discard(idle.values_list("pk", flat=True)[:most])
    return not stored.exists()


def logs_charge(namespace: Namespace, amount: int, limit: int) -> Refusal | None:
    """Charge the namespace for so many bytes that its tasks print, or why not."""
    return storage_ledger.logs_take(namespace, amount, limit)


def logs_correct(namespace_id: uuid.UUID, amount: int) -> None:
    """Charge for more or fewer bytes of logs, whatever the quota says: they are there, or gone."""
    storage_ledger.logs_change(namespace_id, amount)


def uploads_sweep(now: datetime) -> None:
    """Heal what was interrupted: finish what lost its worker, expire what is idle, remove what is half removed."""
    for upload_id in _ids(
        Upload.objects.filter(Q(leased_until=None) | Q(leased_until__lt=now), state=State.COMPLETING)
    ):
        enqueue(FINISH_UPLOAD, upload_id)
    uploads_expire(now)
    gone = Upload.objects.filter(Q(leased_until=None) | Q(leased_until__lt=now), state=State.DELETING)
    _remove_some(_ids(gone.filter(Q(writable_until=None) | Q(writable_until__lte=now))))
    tombstones_sweep(now)


def uploads_expire(now: datetime) -> int:
    """Abort every unused upload that was idle for too long; how many."""
    idle = Upload.objects.filter(used=False, touched_at__lt=now - settings.YARDMASTER_UPLOAD_TTL)
    expired: list[uuid.UUID] = []
    for upload_id in _ids(idle.exclude(state__in=[State.COMPLETING, State.DELETING])):
        expired += mark_for_removal(idle.filter(pk=upload_id).exclude(state=State.COMPLETING))
    _remove_some(expired)
    return len(expired)


def _remove_some(upload_ids: Iterable[uuid.UUID]) -> None:
    """As many as the sweep has time for; the next one continues."""
    ends = time.monotonic() + _SWEPT_FOR
    for upload_id in upload_ids:
        if time.monotonic() > ends:
            return
        remove_now(upload_id)


def _lock(namespace: Namespace, actor: User | None) -> None:
    """Hold the namespace, so that it is not removed before it sees the upload, and the user, of whose uploads begun at
    once one counts the other. Raises `Conflict`."""
    if actor is not None:
        User.objects.select_for_update(no_key=True).get(pk=actor.pk)
    found = Namespace.objects.select_for_update(no_key=True).filter(pk=namespace.pk).first()
    if found is None:
        raise NotFound()
    refuse_closed(found)


def _check_open(namespace: Namespace, actor: User | None, job_id: uuid.UUID | None) -> None:
    """Raises `Conflict` where there are too many uploads of which nothing was made: each holds its list of files."""
    rows = Upload.objects.filter(used=False, state__in=[State.OPEN, State.COMPLETING, State.COMPLETE])
    if job_id is not None:
        limits = [("This job has", Q(job_id=job_id), settings.YARDMASTER_OPEN_UPLOADS_PER_JOB)]
    else:
        here, mine = Q(job_id=None, namespace=namespace), Q(job_id=None, created_by=actor)
        limits = [
            (f"{namespace.slug} has", here, settings.YARDMASTER_OPEN_UPLOADS_PER_NAMESPACE),
            ("You have", mine, settings.YARDMASTER_OPEN_UPLOADS_PER_USER),
        ]
    for owner, which, most in limits:
        if rows.filter(which).count() >= most:
            raise Conflict(
                f"{owner} {most} open uploads, as many as are allowed.",
                "too_many_open_uploads",
                remedy="Complete one and make a version of it, or discard one: GET /api/v1/uploads/ lists them.",
            )


def _ids(uploads: QuerySet[Upload]) -> list[uuid.UUID]:
    return list(uploads.order_by("pk").values_list("pk", flat=True)[:1000])


def _problem(field: str, code: str, message: str, value: object) -> Problem:
    return Problem(field, code, message, value=str(value))

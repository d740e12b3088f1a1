"""The life of an environment: claimed by the first task that needs it, sent as one archive, fetched by the others,
removed when it was not used for a while. Every function may be called again without harm.

The archive is an upload; it and the row here are bound in one transaction when it is complete. Cut off anywhere,
`environments_settle` continues. Not here: installing anything, which tasks do (`yardmaster_runner.packages`).
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from apps.accounts.models import User
from apps.audit.services import record
from apps.dispatch.leases import Leases
from apps.environments.models import Environment, State
from apps.errors import Conflict
from apps.namespaces.models import Namespace
from apps.uploads.models import Kind, Upload
from apps.uploads.models import State as UploadState
from apps.uploads.services import upload_begin, upload_use, uploads_discard
from yardmaster.storage.file_list import ListedFile

HELD_FOR = timedelta(seconds=60)
"""A task that installs packages asks again every 15 seconds."""
LOST_AFTER = timedelta(hours=1)
"""Of a row that no task installs any more: its job has failed, or could not keep the archive."""
MOST = 500
"""Environments of a namespace. Where there are more, the one that was not used for the longest time goes."""
_USED_AGAIN_AFTER = timedelta(minutes=10)
_AT_ONCE = 50
_LEASES = Leases("holder", "held_until")


@dataclass(frozen=True)
class Claim:
    """What a task is to do: fetch it (`ready`), install it (`build`), or wait for another task that does (`wait`)."""

    state: str
    environment: Environment


def key_of(*, image: str, python: str, requirements: Sequence[str], constraints: Sequence[str]) -> str:
    """The same for the same image and the same lines, in whichever order they stand."""
    words = [image, python, sorted(set(requirements)), sorted(set(constraints))]
    return hashlib.sha256(json.dumps(words).encode()).hexdigest()


def environment_claim(*, namespace: Namespace, wanted: Mapping[str, Any], holder: str, now: datetime) -> Claim:
    """Whether the environment is there, or whose turn it is to make it. `wanted`: `key_of`'s arguments."""
    key = key_of(**wanted)
    facts = {"requirements": list(wanted["requirements"]), "python": wanted["python"]}
    found, is_new = Environment.objects.get_or_create(
        namespace=namespace, key=key, defaults={**facts, "created_at": now, "used_at": now}
    )
    if is_new:
        _remove_beyond_most(namespace)
    if found.state == State.READY:
        if now - found.used_at > _USED_AGAIN_AFTER:
            Environment.objects.filter(pk=found.pk).update(used_at=now)
        return Claim("ready", found)
    mine = Environment.objects.filter(pk=found.pk, state=State.BUILDING)
    held = _LEASES.claim(mine, holder, now, HELD_FOR, used_at=now)
    return Claim("wait" if held is None else "build", found)


def archive_begin(
    *,
    namespace: Namespace,
    environment_id: uuid.UUID,
    holder: str,
    lock: Sequence[Mapping[str, str]],
    files: Sequence[ListedFile],
    job_id: uuid.UUID,
    lock_job: Callable[[], None],
) -> Upload:
    """Begin to upload the archive of an environment, by the task that has claimed it. One that was begun before is
    discarded. Raises `Conflict`, `Invalid` and `QuotaExceeded`."""
    mine = Environment.objects.filter(pk=environment_id, namespace=namespace, state=State.BUILDING, holder=holder)
    earlier = mine.values_list("upload_id", flat=True).first()
    if not mine.exists():
        raise Conflict("Another task has installed these packages.", "environment_taken")
    if len(files) != 1:
        raise Conflict("An environment is one archive.", "environment_taken")
    if earlier is not None:
        uploads_discard([earlier])
    upload = upload_begin(
        namespace=namespace, actor=None, kind=Kind.PACKAGES, files=files, job_id=job_id, lock=lock_job
    )  # fmt: skip
    mine.update(upload_id=upload.pk, lock=[dict(one) for one in lock])
    return upload


def archive_settle(upload_id: uuid.UUID, now: datetime) -> None:
    """Offer the environment if its archive is complete; forget the archive if it is gone. Repeats harmlessly."""
    found = Environment.objects.filter(upload_id=upload_id, state=State.BUILDING).first()
    if found is None:
        return
    upload = Upload.objects.filter(pk=upload_id).first()
    if upload is None or upload.state in (UploadState.FAILED, UploadState.DELETING):
        Environment.objects.filter(pk=found.pk, upload_id=upload_id).update(upload_id=None)
    elif upload.state == UploadState.COMPLETE:
        with transaction.atomic():
            rows = Environment.objects.filter(pk=found.pk, upload_id=upload_id, state=State.BUILDING)
            if rows.update(state=State.READY, size=upload.held, holder="", held_until=None, used_at=now):
                upload_use(upload)


def environments_sweep(now: datetime) -> None:
    """Settle what was interrupted, and remove what no job has used for a while, some at a time."""
    interrupted = Environment.objects.filter(state=State.BUILDING, upload_id__isnull=False)
    for upload_id in list(interrupted.values_list("upload_id", flat=True)[:_AT_ONCE]):
        if upload_id is not None:
            archive_settle(upload_id, now)
    unused = Environment.objects.filter(used_at__lt=now - settings.YARDMASTER_PACKAGES_KEPT)
    lost = Environment.objects.filter(state=State.BUILDING, used_at__lt=now - LOST_AFTER)
    for rows in (unused, lost):
        _remove(list(rows.order_by("used_at").values_list("pk", flat=True)[:_AT_ONCE]))


def environment_delete(environment: Environment, actor: User) -> None:
    """Remove it, and return its storage. Jobs that run keep what they have; the next one that needs it makes it
    again."""
    with transaction.atomic():
        _remove([environment.pk])
        subject = f"environment:{environment.pk}"
        record(actor, "environment.delete", subject, namespace=environment.namespace, packages=environment.requirements)


def _remove_beyond_most(namespace: Namespace) -> None:
    newest_first = Environment.objects.filter(namespace=namespace).order_by("-used_at", "-pk")
    _remove(list(newest_first.values_list("pk", flat=True)[MOST:]))


def _remove(ids: Sequence[uuid.UUID]) -> None:
    with transaction.atomic():
        rows = Environment.objects.filter(pk__in=ids)
        uploads_discard([one for one in rows.values_list("upload_id", flat=True) if one is not None])
        rows.delete()

"""Checkpoints: uploads of a task from which its job continues once they are complete. Not here: models (`exports`).

The upload comes first, its row here second, and both are bound in one transaction when it is complete. Cut off
anywhere, `results_settle` continues; an upload without a row here expires by itself.
"""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar

from django.db import transaction
from django.db.models import Exists, Model, OuterRef, QuerySet

from apps.errors import Gone
from apps.jobs.models import Checkpoint, Job
from apps.jobs.state.nudges import job_changed
from apps.stores import IGNITE
from apps.uploads.models import State, Upload
from apps.uploads.selectors import stored_files
from apps.uploads.services import upload_abort, upload_begin, upload_use, uploads_discard
from yardmaster.ids import folder_of, new_id
from yardmaster.job.spec import CheckpointStore
from yardmaster.storage.file_list import ListedFile

log = logging.getLogger(__name__)

KEPT = 3
"""Checkpoints of one job that are kept; older ones go when a newer one is complete."""
AT_ONCE = 500
"""Rows that are looked at with one statement."""
R = TypeVar("R", bound=Model)


def results_folder(job: Job) -> str:
    """Where all that the job's tasks keep lies in the portal's own store."""
    return f"{folder_of(job.namespace_id)}/jobs/{job.pk}"


def kept_folder(job: Job, attempt: int) -> str:
    """Where checkpoints and outputs of this attempt lie: in the store that its specification names."""
    in_ignite = job.attempts.filter(number=attempt, spec__checkpoint_store=CheckpointStore.IGNITE.value).exists()
    return f"{IGNITE if in_ignite else ''}{results_folder(job)}/{attempt}"


def kept_elsewhere(job: Job) -> list[str]:
    """Where more of the job lies than in `results_folder`."""
    in_ignite = job.attempts.filter(spec__checkpoint_store=CheckpointStore.IGNITE.value).exists()
    return [f"{IGNITE}{results_folder(job)}"] if in_ignite else []


def checkpoint_begin(*, job: Job, attempt: int, step: int, files: Sequence[ListedFile]) -> Upload:
    """Begin to upload the checkpoint of a step, to a place of its own: what was signed for an earlier one writes
    nothing into it. One that is being sent starts again; a complete one of the same step (of a task that started from
    scratch) stays until the new one is complete."""
    being_sent = Checkpoint.objects.filter(job=job, attempt=attempt, step=step, completed_at__isnull=True)
    for earlier in Upload.objects.filter(pk__in=list(being_sent.values_list("upload_id", flat=True))):
        upload_abort(earlier)  # before the bytes of the new one are reserved
    upload = upload_begin(
        namespace=job.namespace, actor=None, kind="checkpoint", files=files, job_id=job.pk,
        key_prefix=f"{kept_folder(job, attempt)}/checkpoints/{step}.{new_id()}", lock=lambda: lock_job(job.pk),
    )  # fmt: skip
    with transaction.atomic():
        lock_job(job.pk)  # of two at once, the later one counts
        _drop(being_sent)
        Checkpoint.objects.create(
            id=new_id(), job=job, attempt=attempt, step=step, upload_id=upload.pk, size=upload.held
        )
    return upload


def lock_job(job_id: uuid.UUID) -> None:
    living = Job.objects.select_for_update(no_key=True).filter(pk=job_id, deleted_at__isnull=True)
    if living.values_list("pk", flat=True).first() is None:
        raise Gone("This job was deleted and accepts no more data.")


def results_settle(now: datetime) -> None:
    """Settle whatever was interrupted between a complete upload and its result."""
    for one in in_steps(ended(Checkpoint.objects.filter(completed_at__isnull=True).only("upload_id"))):
        with others_continue("A checkpoint", one.upload_id):
            result_settle(one.upload_id, now)


def ended(rows: QuerySet[R]) -> QuerySet[R]:
    """Those whose upload is complete, failed or gone. The others are many, and there is nothing to do about them."""
    open_ones = Upload.objects.filter(pk=OuterRef("upload_id")).exclude(
        state__in=(State.COMPLETE, State.FAILED, State.DELETING)
    )
    return rows.exclude(Exists(open_ones))


def in_steps(rows: QuerySet[R]) -> Iterator[R]:
    """All of them in the order of their keys, some with each statement: what stays as it is holds up no other."""
    found = list(rows.order_by("pk")[:AT_ONCE])
    while found:
        yield from found
        found = list(rows.filter(pk__gt=found[-1].pk).order_by("pk")[:AT_ONCE])


@contextlib.contextmanager
def others_continue(what: str, upload_id: uuid.UUID) -> Iterator[None]:
    """Around one row of many that are settled: what is wrong with it is logged, and the next comes."""
    try:
        yield
    except Exception:
        log.exception("%s was not settled (upload %s)", what, upload_id)


def result_settle(upload_id: uuid.UUID, now: datetime) -> None:
    """Make of the upload what it is for, if it is complete; forget the row if it is gone. Repeats harmlessly."""
    upload = Upload.objects.filter(pk=upload_id).first()
    result = Checkpoint.objects.select_related("job").filter(upload_id=upload_id).first()
    if result is None or result.completed_at is not None:
        return
    if upload is None or upload.state in (State.FAILED, State.DELETING):
        result.delete()
    elif upload.state == State.COMPLETE:
        _complete(result, upload, now)


def _complete(result: Checkpoint, upload: Upload, now: datetime) -> None:
    files = [_as_json(one) for one in stored_files(upload)]
    with transaction.atomic():
        mine = Checkpoint.objects.filter(pk=result.pk, completed_at__isnull=True)
        if not mine.update(completed_at=now, files=files, size=sum(one["size"] for one in files)):
            return
        upload_use(upload)
        _drop(_by_age(result.job_id).filter(attempt=result.attempt, step=result.step).exclude(pk=result.pk))
        _drop(_by_age(result.job_id)[KEPT:])
        job_changed(result.job, is_detail=True)


def checkpoints_drop(job_ids: Collection[uuid.UUID]) -> None:
    """Forget every checkpoint of these jobs, which are over, and return their storage: a retry finds none. Belongs into
    the transaction that locks the jobs."""
    _drop(Checkpoint.objects.filter(job__in=job_ids))


def _drop(results: QuerySet[Checkpoint]) -> None:
    """Forget these results and return their storage."""
    old = list(results.values_list("pk", "upload_id"))
    Checkpoint.objects.filter(pk__in=[pk for pk, _ in old]).delete()
    uploads_discard([upload_id for _, upload_id in old])


def _by_age(job_id: uuid.UUID) -> QuerySet[Checkpoint]:
    """The job's complete checkpoints, the newest first. By time and not by step: a script may have started from the
    beginning."""
    return Checkpoint.objects.filter(job_id=job_id, completed_at__isnull=False).order_by("-completed_at", "-step")


def newest_checkpoint(job: Job) -> Checkpoint | None:
    """The checkpoint that a (re)started task continues from."""
    return _by_age(job.pk).filter(attempt__gte=job.resumes_from).first()


def _as_json(one: Any) -> dict[str, Any]:
    return {"path": one.path, "size": one.size, "sha256": one.sha256, "key": one.key}

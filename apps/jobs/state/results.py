"""Checkpoints and models: uploads of a task that become results of its attempt once they are complete.

The upload comes first, its row here second, and both are bound in one transaction when it is complete. Cut off
anywhere, `results_settle` continues; an upload without a row here expires by itself.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from apps.errors import Gone
from apps.jobs.models import Checkpoint, Job, JobEvent
from apps.jobs.state.nudges import job_changed
from apps.registry.models import Model
from apps.uploads.models import State, Upload
from apps.uploads.selectors import stored_files
from apps.uploads.services import upload_begin, upload_use, uploads_discard
from yardmaster.ids import folder_of, new_id
from yardmaster.storage.file_list import ListedFile

KEPT = 3
"""Checkpoints of one job that are kept; older ones go when a newer one is complete."""
AT_ONCE = 500


def results_folder(job: Job) -> str:
    """Where all that the job's tasks keep lies in the object store."""
    return f"{folder_of(job.namespace_id)}/jobs/{job.pk}"


def checkpoint_begin(*, job: Job, attempt: int, step: int, files: Sequence[ListedFile]) -> Upload:
    """Begin to upload the checkpoint of a step. One that is being sent starts again; a complete one of the same step
    (of a task that started from scratch) stays until the new one is complete."""
    same = Checkpoint.objects.filter(job=job, attempt=attempt, step=step)
    upload = _begin(job, "checkpoint", files, f"{results_folder(job)}/{attempt}/checkpoints/{step}", same)
    with transaction.atomic():
        same.filter(completed_at__isnull=True).delete()
        Checkpoint.objects.create(
            id=new_id(), job=job, attempt=attempt, step=step, upload_id=upload.pk, size=upload.held
        )
    return upload


def model_begin(*, job: Job, attempt: int, files: Sequence[ListedFile], stopped: bool = False) -> Upload:
    """Begin to upload the model of an attempt, in the same way. `stopped`: its task was asked to stop."""
    same = Model.objects.filter(job=job, attempt=attempt)
    upload = _begin(job, "model", files, f"{results_folder(job)}/{attempt}/model", same)
    with transaction.atomic():
        same.filter(completed_at__isnull=True).delete()
        Model.objects.create(
            id=new_id(), namespace=job.namespace, job=job, attempt=attempt, name=job.name, upload_id=upload.pk,
            size=upload.held, stopped=stopped,
        )  # fmt: skip
    return upload


def _begin(job: Job, kind: str, files: Sequence[ListedFile], place: str, same: QuerySet[Any]) -> Upload:
    """An upload to a place where nothing complete lies."""
    complete = set(same.filter(completed_at__isnull=False).values_list("upload_id", flat=True))
    taken = set(Upload.objects.filter(pk__in=complete).values_list("key_prefix", flat=True))
    free = next(one for one in (place, *(f"{place}.{n}" for n in range(1, len(taken) + 2))) if one not in taken)
    return upload_begin(
        namespace=job.namespace, actor=None, kind=kind, files=files, job_id=job.pk, key_prefix=free,
        lock=lambda: lock_job(job.pk),
    )  # fmt: skip


def lock_job(job_id: uuid.UUID) -> None:
    living = Job.objects.select_for_update(no_key=True).filter(pk=job_id, deleted_at__isnull=True)
    if living.values_list("pk", flat=True).first() is None:
        raise Gone("This job was deleted and accepts no more data.")


def results_settle(now: datetime) -> None:
    """Settle whatever was interrupted between a complete upload and its result."""
    for kind in (Checkpoint, Model):
        waiting = kind.objects.filter(completed_at__isnull=True).order_by("pk")
        for upload_id in list(waiting.values_list("upload_id", flat=True)[:AT_ONCE]):
            result_settle(upload_id, now)


def result_settle(upload_id: uuid.UUID, now: datetime) -> None:
    """Make of the upload what it is for, if it is complete; forget the row if it is gone. Repeats harmlessly."""
    upload = Upload.objects.filter(pk=upload_id).first()
    checkpoint = Checkpoint.objects.select_related("job").filter(upload_id=upload_id).first()
    result: Checkpoint | Model | None = (
        checkpoint or Model.objects.select_related("job").filter(upload_id=upload_id).first()
    )
    if result is None or result.completed_at is not None:
        return
    if upload is None or upload.state in (State.FAILED, State.DELETING):
        result.delete()
    elif upload.state == State.COMPLETE:
        _complete(result, upload, now)


def _complete(result: Checkpoint | Model, upload: Upload, now: datetime) -> None:
    files = [_as_json(one) for one in stored_files(upload)]
    with transaction.atomic():
        mine = type(result).objects.filter(pk=result.pk, completed_at__isnull=True)
        if not mine.update(completed_at=now, files=files, size=sum(one["size"] for one in files)):
            return
        upload_use(upload)
        if isinstance(result, Checkpoint):
            _drop(_by_age(result.job_id).filter(attempt=result.attempt, step=result.step).exclude(pk=result.pk))
            _drop(_by_age(result.job_id)[KEPT:])
        else:
            older = Model.objects.filter(job=result.job, attempt=result.attempt, completed_at__isnull=False)
            _drop(older.exclude(pk=result.pk))
            _note_model(result, files, now)
        job_changed(result.job, is_detail=True)


def _drop(results: QuerySet[Any]) -> None:
    """Forget these results and return their storage."""
    old = list(results.values_list("pk", "upload_id"))
    results.model.objects.filter(pk__in=[pk for pk, _ in old]).delete()
    uploads_discard([upload_id for _, upload_id in old])


def _note_model(model: Model, files: Sequence[dict[str, Any]], now: datetime) -> None:
    facts = {"model": str(model.pk), "size": sum(one["size"] for one in files), "files": len(files)}
    if model.stopped:
        facts["stopped"] = True
    JobEvent.objects.create(
        job=model.job, at=now, attempt=model.attempt, kind="model_kept", message="The model was saved.", facts=facts
    )


def _by_age(job_id: uuid.UUID) -> QuerySet[Checkpoint]:
    """The job's complete checkpoints, the newest first. By time and not by step: a script may have started from the
    beginning."""
    return Checkpoint.objects.filter(job_id=job_id, completed_at__isnull=False).order_by("-completed_at", "-step")


def newest_checkpoint(job_id: uuid.UUID) -> Checkpoint | None:
    """The checkpoint that a (re)started task continues from."""
    return _by_age(job_id).first()


def _as_json(one: Any) -> dict[str, Any]:
    return {"path": one.path, "size": one.size, "sha256": one.sha256, "key": one.key}

"""What the tasks of a job send to be published: one upload per task and attempt, held until the attempt is decided. A
task that starts again replaces its own.

The upload comes first, its row here second. A complete one is marked as used at once: the slowest task may take longer
than unused uploads live. Cut off anywhere, `parts_settle` continues. Not here: making a version of them, which is the
work of Celery's workers (`apps.jobs.worker.publishing`).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.errors import Conflict
from apps.jobs.models import Job, Publication, PublicationPart
from apps.jobs.state.results import ended, in_steps, lock_job, others_continue, results_folder
from apps.uploads.models import Kind, State, Upload
from apps.uploads.services import upload_begin, upload_use, uploads_discard
from yardmaster.ids import new_id
from yardmaster.job.spec_stored import stored_spec
from yardmaster.job.strategy import publishing_tasks
from yardmaster.lifecycle.phases import Phase
from yardmaster.storage.file_list import ListedFile


def part_begin(*, job: Job, attempt: int, task: str, files: Sequence[ListedFile]) -> Upload | None:
    """Begin to upload what a task publishes; None where it has no files, which is noted. What the same task sent before
    is discarded. Raises `Conflict` where the job publishes nothing or is over, `Invalid`, `QuotaExceeded`."""
    if not job.spec.get("publishes"):
        raise Conflict("This job publishes nothing.", "publishes_nothing")
    if task not in {f"{role.value}-{index}" for role, index in publishing_tasks(stored_spec(job.spec))}:
        raise Conflict(f"The task {task} publishes nothing.", "publishes_nothing")
    if Phase(job.phase).is_final:
        raise Conflict("This attempt of the job is over.", "attempt_over")
    publication, _ = Publication.objects.get_or_create(job=job, attempt=attempt)
    if not files:
        _replace(publication, task, completed_at=timezone.now())
        return None
    _replace(publication, task)  # before its bytes are reserved
    upload = upload_begin(
        namespace=job.namespace, actor=None, kind=Kind.PART, files=files, job_id=job.pk,
        key_prefix=f"{results_folder(job)}/{attempt}/published/{new_id()}", lock=lambda: lock_job(job.pk),
    )  # fmt: skip
    _replace(publication, task, upload_id=upload.pk)
    return upload


def _replace(publication: Publication, task: str, **part: Any) -> None:
    """Discard what the task has sent before, and note what it sends now, if anything. Of two starts of one task at
    once, the later one counts."""
    with transaction.atomic():
        Publication.objects.select_for_update().get(pk=publication.pk)
        earlier = PublicationPart.objects.filter(publication=publication, task=task)
        uploads_discard([one for one in earlier.values_list("upload_id", flat=True) if one is not None])
        earlier.delete()
        if part:
            PublicationPart.objects.create(publication=publication, task=task, **part)


def part_settle(upload_id: uuid.UUID, now: datetime) -> None:
    """Note that the upload of a part is complete, if it is; forget the part if it is gone. Repeats harmlessly."""
    part = PublicationPart.objects.filter(upload_id=upload_id, completed_at=None).first()
    if part is None:
        return
    upload = Upload.objects.filter(pk=upload_id).first()
    if upload is None or upload.state in (State.FAILED, State.DELETING):
        part.delete()
    elif upload.state == State.COMPLETE:
        with transaction.atomic():
            if PublicationPart.objects.filter(pk=part.pk, completed_at=None).update(completed_at=now):
                upload_use(upload)


def parts_settle(now: datetime) -> None:
    """Settle whatever was interrupted between a complete upload and its part."""
    waiting = PublicationPart.objects.filter(completed_at=None, upload_id__isnull=False).only("upload_id")
    for one in in_steps(ended(waiting)):
        if one.upload_id is not None:
            with others_continue("The part of a publication", one.upload_id):
                part_settle(one.upload_id, now)


def publication_of(job_id: uuid.UUID, attempt: int) -> Publication | None:
    """What an attempt publishes, or published."""
    return Publication.objects.filter(job=job_id, attempt=attempt).first()

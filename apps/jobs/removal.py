"""Remove what a deleted job left: its objects, its logs, then its rows. Cut off anywhere, it is done again."""

from __future__ import annotations

from apps.jobs.models import Checkpoint, Job
from apps.logs.store import log_store
from apps.registry.models import Model
from apps.uploads.services import uploads_discard


def remove(job: Job) -> None:
    """Remove a job that is over and marked as deleted. The row goes last: while it is there, the sweep comes back."""
    uploads_discard(Checkpoint.objects.filter(job=job).values_list("upload_id", flat=True))
    uploads_discard(Model.objects.filter(job=job).values_list("upload_id", flat=True))
    log_store().delete_job(job.pk)
    job.delete()

"""Remove what a deleted job left: its objects, its logs, then its rows. Interrupted anywhere, it is done again.

A task may still be writing. What it begins is refused from when the job was marked as deleted; what it had begun is
waited for (an upload that is being completed), refused by the log store, or removed by the tombstone's sweep.
"""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from apps.jobs.models import Checkpoint, Job, JobEvent, JobOutput, ScalarPoint
from apps.jobs.state.log_charges import log_release
from apps.jobs.state.results import results_folder
from apps.registry.models import Model
from apps.stores import log_store, storage
from apps.uploads.removal import tombstones_set
from apps.uploads.services import uploads_discard, uploads_discard_of_job

_ROWS_AT_ONCE = 2_000
_BATCHES_AT_ONCE = 50


def remove(job: Job) -> bool:
    """Remove a job that is over and marked as deleted. The row goes last: while it is there, the sweep comes back.
    False: it is not done yet."""
    for results in (Checkpoint, Model):
        uploads_discard(results.objects.filter(job=job).values_list("upload_id", flat=True))
    if not uploads_discard_of_job(job.pk):
        return False
    log_store().delete_job(job.pk)
    log_release(job.pk, job.namespace_id)
    if not _rows_removed(job):
        return False
    places = [results_folder(job), f"jobs/{job.pk}"]  # the second as before namespaces had folders
    for place in places:
        storage().delete_prefix(place)
    with transaction.atomic():
        tombstones_set(places, timezone.now())
        job.delete()
    return True


def _rows_removed(job: Job) -> bool:
    """Remove what may be very many rows, some in each transaction: others write meanwhile. False: there are more."""
    batches = 0
    for kind in (ScalarPoint, JobEvent, JobOutput):
        rows = kind.objects.filter(job=job)
        while ids := list(rows.values_list("pk", flat=True)[:_ROWS_AT_ONCE]):
            if (batches := batches + 1) > _BATCHES_AT_ONCE:
                return False
            kind.objects.filter(pk__in=ids).delete()
    return True

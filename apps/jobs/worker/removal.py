"""Remove what a deleted job left: its objects, its logs, then its rows; not the models that it exported. Interrupted
anywhere, it is done again.

A task may still be writing. What it begins is refused from when the job was marked as deleted; what it had begun is
waited for (an upload that is being completed), refused by the log store, or removed by the tombstone's sweep.
"""

from __future__ import annotations

from django.db import transaction
from django.utils import timezone

from apps.jobs.models import Checkpoint, Job, JobEvent, JobOutput, Publication, ScalarPoint
from apps.jobs.state.log_charges import log_release
from apps.jobs.state.results import kept_elsewhere, results_folder
from apps.jobs.state.volumes import leftover_note
from apps.registry.models import ModelVersion
from apps.secrets.delivery import secrets_of_job_forget
from apps.stores import log_store, storage
from apps.uploads.joining import prefix_for
from apps.uploads.models import Kind
from apps.uploads.removal import tombstones_set
from apps.uploads.services import uploads_discard, uploads_discard_of_job

_ROWS_AT_ONCE = 2_000
_BATCHES_AT_ONCE = 50


def remove(job: Job) -> bool:
    """Remove a job that is over and marked as deleted. The row goes last: while it is there, the sweep comes back.
    False: it is not done yet."""
    if _is_being_published(job):
        return False
    uploads_discard(Checkpoint.objects.filter(job=job).values_list("upload_id", flat=True))
    if not uploads_discard_of_job(job.pk):
        return False
    log_store().delete_job(job.pk)
    log_release(job.pk, job.namespace_id)
    if not _rows_removed(job):
        return False
    places = _places_of(job)
    for place in places:
        storage().delete_prefix(place)
    with transaction.atomic():
        tombstones_set(places, timezone.now())
        secrets_of_job_forget(job.pk)
        leftover_note(job)
        job.delete()
    return True


def _is_being_published(job: Job) -> bool:
    """What was copied for a version that there will not be is removed; a worker that is at it is waited for."""
    opened = Publication.objects.filter(job=job, state=Publication.State.COLLECTING)
    if opened.filter(leased_until__gt=timezone.now()).exists():
        return True
    prefixes = [prefix_for(job.namespace, Kind.DATASET, one) for one in opened.values_list("target_id", flat=True)]
    for prefix in prefixes:
        storage().delete_prefix(prefix)
    tombstones_set(prefixes, timezone.now())
    return False


def _places_of(job: Job) -> list[str]:
    """Where everything of the job lies that is to go. Models used to lie there, too: those stay, with their place."""
    places = [results_folder(job), *kept_elsewhere(job), f"jobs/{job.pk}"]  # the last as before namespaces had folders
    kept = ModelVersion.objects.filter(source_job=job.pk).values_list("key_prefix", flat=True)
    if not any(prefix.startswith(f"{place}/") for prefix in kept for place in places):
        return places
    kinds = ("checkpoints", "outputs", "published")
    return [f"{place}/{n}/{kind}" for place in places for n in range(1, job.attempt + 1) for kind in kinds]


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

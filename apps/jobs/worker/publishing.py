"""What the tasks of a job have sent becomes one version of a dataset when the attempt has succeeded, and is discarded
when it has not. All or nothing: the version's row comes last, in one transaction with everything else.

One worker at a time has a publication's lease. Cut off anywhere, the sweep has it done again: objects are copied to the
keys that they had before. An object store that does not answer is asked again later, and so is an error of the portal
itself, some times; whatever else is wrong ends the publication, with its reason on the job's page.
"""

from __future__ import annotations

import logging
import uuid
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from apps.datasets.models import Dataset, DatasetVersion
from apps.datasets.selectors import DATASETS
from apps.dispatch.leases import Leases
from apps.dispatch.messages import PUBLISH, enqueue_now
from apps.errors import Conflict, DomainError, Gone, error_to_json
from apps.jobs.models import Job, JobAttempt, JobEvent, Publication
from apps.jobs.state.makers import began_by
from apps.jobs.state.nudges import job_changed
from apps.jobs.state.publications import part_settle, parts_settle
from apps.jobs.state.results import lock_job
from apps.jobs.worker.prepared import PART_FILES, Prepared, prepared_from
from apps.namespaces.models import Role
from apps.namespaces.selectors import refuse_closed, require_role
from apps.stores import storage
from apps.uploads.joining import objects_join, prefix_for, uploads_join
from apps.uploads.models import Kind, State, Upload
from apps.uploads.removal import tombstones_set
from apps.uploads.services import uploads_discard
from apps.uploads.versioned.services import checked_name, collection_create, version_add
from yardmaster.backoff import delay
from yardmaster.errors import Unavailable
from yardmaster.job.programs import PROGRAMS
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.spec_stored import stored_spec
from yardmaster.job.strategy import publishing_tasks
from yardmaster.lifecycle.phases import Phase
from yardmaster.storage.base import ObjectMissing, key_join

log = logging.getLogger(__name__)

LEASES = Leases("lease", "leased_until", none=None)
LASTS = timedelta(minutes=2)
_AT_ONCE = 200
_TRIES = 7
"""After so many, the longest pause lies between two. A store that does not answer counts no further."""
_MOST_ERRORS = 12
"""Tries that may end with an error of the portal: an hour or so."""
_OPEN = Publication.State.COLLECTING


class LeaseLost(Exception):
    """Another worker publishes it now."""


def publications_sweep(now: datetime) -> None:
    """Note parts whose message was lost, and wake publications whose attempt is decided."""
    parts_settle(now)
    due = Q(due_at=None) | Q(due_at__lte=now)
    free = Q(leased_until=None) | Q(leased_until__lte=now)
    # Those of attempts that run are many, and would stand before these.
    decided = JobAttempt.objects.filter(job=OuterRef("job"), number=OuterRef("attempt")).exclude(phase="")
    rows = Publication.objects.filter(due, free, Exists(decided), state=_OPEN).order_by("pk")
    for job_id in list(rows.values_list("job_id", flat=True)[:_AT_ONCE]):
        enqueue_now(PUBLISH, job_id)


def publish(job_id: uuid.UUID) -> None:
    """Bring the open publications of a job to their end, where their attempt is decided."""
    for publication in Publication.objects.filter(job=job_id, state=_OPEN).order_by("attempt"):
        attempt = JobAttempt.objects.filter(job=job_id, number=publication.attempt).first()
        if attempt is None or not attempt.phase:
            continue
        holder, now = uuid.uuid4(), timezone.now()
        rows = Publication.objects.filter(pk=publication.pk, state=_OPEN)
        if LEASES.claim(rows, holder, now, LASTS) is None:
            continue
        work = _Work(publication, attempt, holder)
        try:
            work.run()
        except LeaseLost:
            log.info("%s is continued by another worker", publication)
        except Unavailable as error:
            log.warning("%s is tried again later: %s", publication, error)
            work.put_off(min(publication.tries + 1, _TRIES))
        except Exception:
            log.exception("%s was not published", publication)
            work.put_off_or_end()


class _Work:
    """One publication, while this worker has its lease."""

    def __init__(self, publication: Publication, attempt: JobAttempt, holder: uuid.UUID) -> None:
        self.publication, self.attempt, self.holder = publication, attempt, holder
        self.job = Job.objects.select_related("namespace", "owner").get(pk=publication.job_id)
        self.actor = began_by(self.job, publication.attempt) or self.job.owner
        self.rows = Publication.objects.filter(pk=publication.pk, state=_OPEN)
        self.prefix = prefix_for(self.job.namespace, Kind.DATASET, publication.target_id)

    def run(self) -> None:
        """Publish, fail or drop it."""
        if self.attempt.phase != Phase.SUCCEEDED.value or self.job.deleted_at is not None:
            self._end(Publication.State.DROPPED, None)
            return
        try:
            self._publish(stored_spec(self.attempt.spec))
        except Gone:  # the job was deleted: its removal takes the rest
            return
        except DomainError as error:
            self._end(Publication.State.FAILED, error)
        except ObjectMissing:
            message = "A file that a task sent is no longer in the object store."
            self._end(Publication.State.FAILED, Conflict(message, "part_missing", remedy="Relaunch the job."))

    def put_off(self, tries: int) -> None:
        """To be tried again, after a pause that grows with the number of tries."""
        pause = delay(tries - 1, timedelta(seconds=5), timedelta(minutes=10))
        LEASES.release(self.rows, self.holder, tries=tries, due_at=timezone.now() + pause)

    def put_off_or_end(self) -> None:
        """After an error that nothing else explains."""
        tries = self.publication.tries + 1
        if tries < _MOST_ERRORS:
            self.put_off(tries)
            return
        remedy = "An administrator finds it in the log of the workers. Relaunch the job."
        try:
            self._end(Publication.State.FAILED, Conflict("The portal had an error.", "portal_error", remedy=remedy))
        except LeaseLost:
            log.info("%s is continued by another worker", self.publication)
        except Exception:  # not even that: the sweep tries again
            log.exception("%s was not ended", self.publication)
            self.put_off(tries)

    def beat(self) -> None:
        """Renew the lease. Raises `LeaseLost`."""
        if not LEASES.renew(self.rows, self.holder, timezone.now() + LASTS):
            raise LeaseLost

    def _publish(self, spec: TrainingSpec) -> None:
        assert spec.publishes is not None, "a publication has been begun"
        require_role(self.actor, self.job.namespace, Role.MEMBER)
        refuse_closed(self.job.namespace)
        uploads = self._uploads(spec)
        prepared, left_out = Prepared(), frozenset[str]()
        program = PROGRAMS[spec.program] if spec.program else None
        if program is not None and program.describes:
            left_out = frozenset(PART_FILES.format(index) for _, index in spec.tasks())
            prepared = prepared_from(uploads, program.done)
        objects_join(uploads, self.prefix, left_out, self.beat)
        for file, content in prepared.files:
            storage().put(key_join(self.prefix, file.path), content)
        self.beat()
        self._commit(spec, uploads, prepared, left_out)

    def _uploads(self, spec: TrainingSpec) -> dict[str, Upload]:
        """The complete upload of each task that wrote anything. Raises `Conflict` where one is missing."""
        for one in self.publication.parts.filter(completed_at=None):
            if one.upload_id is not None:
                part_settle(one.upload_id, timezone.now())
        parts = {one.task: one for one in self.publication.parts.exclude(completed_at=None)}
        wanted = [f"{role.value}-{index}" for role, index in publishing_tasks(spec)]
        missing = [name for name in wanted if name not in parts]
        if missing:
            message = f"Nothing has arrived of {', '.join(missing[:5])}."
            raise Conflict(message, "part_missing", remedy="Relaunch the job.")
        ids = {one.upload_id: name for name, one in parts.items() if one.upload_id is not None}
        found = Upload.objects.select_related("namespace").filter(pk__in=ids, state=State.COMPLETE)
        uploads = {ids[one.pk]: one for one in found}
        if len(uploads) < len(ids):
            raise Conflict("The upload of a task is gone.", "part_missing", remedy="Relaunch the job.")
        if not uploads:
            remedy = "Write files into the folder that the variable OUTPUT_DIR names, then relaunch."
            raise Conflict("The tasks wrote nothing into their output folders.", "nothing_written", remedy=remedy)
        return uploads

    def _commit(
        self, spec: TrainingSpec, uploads: dict[str, Upload], prepared: Prepared, left_out: frozenset[str]
    ) -> None:
        job, now = self.job, timezone.now()
        with transaction.atomic():
            lock_job(job.pk)
            if not LEASES.release(self.rows, self.holder, state=Publication.State.PUBLISHED, facts=prepared.facts):
                raise LeaseLost
            upload = uploads_join(
                namespace=job.namespace, actor=self.actor, kind=Kind.DATASET, target_id=self.publication.target_id,
                uploads=uploads, left_out=left_out, more=[file for file, _ in prepared.files],
            )  # fmt: skip
            version = self._version(spec, upload, prepared)
            Publication.objects.filter(pk=self.publication.pk).update(version_id=version.pk)
            self._note("published", f"Published version {version.number} of {version.parent.name}.", now, {
                "dataset": str(version.parent_id), "version": str(version.pk), "number": version.number,
            })  # fmt: skip

    def _version(self, spec: TrainingSpec, upload: Upload, prepared: Prepared) -> DatasetVersion:
        assert spec.publishes is not None
        job, name = self.job, checked_name(spec.publishes.dataset)
        note = spec.publishes.note or prepared.words or f"By the job {job.name}."
        more: dict[str, Any] = {"source_job": job.pk}
        found = Dataset.objects.filter(namespace=job.namespace, name=name).first()
        if found is None:
            try:
                with transaction.atomic():
                    made = collection_create(
                        DATASETS, namespace=job.namespace, actor=self.actor, name=name, description="", upload=upload,
                        note=note, more=more,
                    )  # fmt: skip
            except Conflict:  # another has just made it
                found = Dataset.objects.filter(namespace=job.namespace, name=name).first()
                if found is None:
                    raise
            except IntegrityError:
                raise Unavailable("The dataset is being changed.") from None
            else:
                return DatasetVersion.objects.select_related("parent").get(parent=made)
        return version_add(DATASETS, found, actor=self.actor, upload=upload, note=note, more=more)

    def _end(self, state: Publication.State, error: DomainError | None) -> None:
        """Discard what was sent and what was copied. The place is never written again."""
        self.beat()
        storage().delete_prefix(self.prefix)
        now, problem = timezone.now(), None if error is None else error_to_json(error)
        with transaction.atomic():
            if not LEASES.release(self.rows, self.holder, state=state, problem=problem):
                raise LeaseLost
            parts = self.publication.parts.all()
            uploads_discard([one.upload_id for one in parts if one.upload_id is not None])
            parts.delete()
            tombstones_set([self.prefix], now)
            if error is not None:
                self._note("not_published", f"The output was not published: {error.detail}", now, {})

    def _note(self, kind: str, message: str, now: datetime, facts: dict[str, Any]) -> None:
        JobEvent.objects.create(
            job=self.job, at=now, attempt=self.publication.attempt, kind=kind, message=message, facts=facts
        )
        job_changed(self.job, is_detail=True)

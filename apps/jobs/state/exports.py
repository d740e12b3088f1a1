"""What a job exports becomes a version of a model: the upload comes first, its row here second, and both are bound in
one transaction when it is complete. Cut off anywhere, `exports_settle` continues.

The version repeats what it was made of and what the job measured, so that it can be read when the job is gone.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Max, Q

from apps.code.models import CodeVersion
from apps.datasets.models import DatasetVersion
from apps.errors import Gone
from apps.jobs.models import Job, JobAttempt, JobEvent, ScalarPoint
from apps.jobs.state.makers import began_by, makers_of, makers_to_json
from apps.jobs.state.nudges import job_changed
from apps.jobs.state.results import ended, in_steps, lock_job, others_continue
from apps.jobs.state.specs import spec_or_remains
from apps.registry.models import ModelUpload, ModelVersion
from apps.registry.services import exports_replace, model_version_create
from apps.uploads.file_blocks import manifest_of
from apps.uploads.models import State, Upload
from apps.uploads.services import upload_begin, uploads_discard
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.spec_entry import entry_words
from yardmaster.storage.file_list import ListedFile

METRICS_KEPT = 200
_POINTS_AT_ONCE = 50
"""Points that one statement names."""


def model_begin(
    *,
    job: Job,
    attempt: int,
    files: Sequence[ListedFile],
    stopped: bool = False,
    continues: uuid.UUID | None = None,
    found_in: str = "",
) -> Upload:
    """Begin to upload the model of an attempt. One that is being sent starts again, unless it is the one that this
    `continues`; a complete one stays until the new one is complete. `stopped`: its task was asked to stop.
    `found_in`: its place in the working folder, where the model directory has none."""
    if continues and (begun := _begun(job, attempt, continues, files)):
        ModelUpload.objects.filter(upload_id=begun.pk).update(stopped=stopped, found_in=found_in)
        return begun
    with transaction.atomic():
        earlier = ModelUpload.objects.select_for_update().filter(job=job, attempt=attempt)
        replaced = list(earlier.values_list("upload_id", flat=True))
        ModelUpload.objects.filter(upload_id__in=replaced).delete()
        uploads_discard(replaced)
    upload = upload_begin(
        namespace=job.namespace, actor=None, kind="model", files=files, job_id=job.pk, lock=lambda: lock_job(job.pk)
    )
    ModelUpload.objects.create(upload_id=upload.pk, job=job, attempt=attempt, stopped=stopped, found_in=found_in)
    return upload


def _begun(job: Job, attempt: int, upload_id: uuid.UUID, files: Sequence[ListedFile]) -> Upload | None:
    """The open upload of this attempt's model that is of these files."""
    if not ModelUpload.objects.filter(job=job, attempt=attempt, upload_id=upload_id).exists():
        return None
    found = Upload.objects.filter(pk=upload_id, state=State.OPEN, file_count=len(files)).first()
    if found is None or any(
        (one.path, one.size) != (two.path, two.size) for one, two in zip(manifest_of(found.pk), files, strict=False)
    ):
        return None
    return found


def exports_drop(job: Job, attempt: int) -> None:
    """Remove what a task had sent early, of a model that there will not be: no task of the attempt runs any more."""
    unfinished = ModelUpload.objects.filter(job=job, attempt=attempt)
    ids = list(unfinished.values_list("upload_id", flat=True))
    idle = list(Upload.objects.filter(pk__in=ids, state=State.OPEN).values_list("pk", flat=True))
    with transaction.atomic():
        uploads_discard(idle)
        unfinished.filter(upload_id__in=idle).delete()


def exports_settle(now: datetime) -> None:
    """Settle whatever was interrupted between a complete upload and its version."""
    for one in in_steps(ended(ModelUpload.objects.only("upload_id"))):
        with others_continue("A model", one.upload_id):
            export_settle(one.upload_id, now)


def export_settle(upload_id: uuid.UUID, now: datetime) -> None:
    """Make the version of the upload, if it is complete; forget the row if it is gone. Repeats harmlessly."""
    pending = ModelUpload.objects.select_related("job__namespace", "job__owner").filter(upload_id=upload_id).first()
    if pending is None or pending.job.deleted_at is not None:
        return
    upload = Upload.objects.filter(pk=upload_id).first()
    if upload is None or upload.state in (State.FAILED, State.DELETING):
        pending.delete()
    elif upload.state == State.COMPLETE:
        _complete(pending, upload, now)


def _complete(pending: ModelUpload, upload: Upload, now: datetime) -> None:
    job = pending.job
    spec, _ = spec_or_remains(job, JobAttempt.objects.filter(job=job, number=pending.attempt).first())
    metrics, makers = last_values(job, pending.attempt), makers_of(job, pending.attempt)
    with transaction.atomic():
        try:
            lock_job(job.pk)  # which is not removed then while this becomes a version
        except Gone:
            return
        if not ModelUpload.objects.filter(pk=pending.pk).delete()[0]:
            return
        version = model_version_create(
            namespace=job.namespace,
            name=spec.model_name or job.name,
            actor=began_by(job, pending.attempt) or job.owner,
            upload=upload,
            facts={
                "job": job,
                "source_job": job.pk,
                "job_name": job.name,
                "attempt": pending.attempt,
                "stopped": pending.stopped,
                "source": source_of(job, spec) | _found_in(pending) | {"makers": makers_to_json(makers)},
                "metrics": metrics,
            },
        )
        exports_replace(job.pk, pending.attempt, by=version)
        _note(job, version, now)
        job_changed(job, is_detail=True)


def _found_in(pending: ModelUpload) -> dict[str, str]:
    return {"found_in": pending.found_in} if pending.found_in else {}


def source_of(job: Job, spec: TrainingSpec) -> dict[str, Any]:
    """What the model was made of, as it stays when the job is deleted."""
    versions = CodeVersion.objects.select_related("parent")
    code = None if spec.code_version is None else versions.filter(pk=spec.code_version).first()
    return {
        "engine": job.engine,
        "image": _image_of(job.engine),
        "strategy": spec.strategy.value,
        "code": None if spec.code_version is None else {"version": str(spec.code_version)} | _named(code),
        "entry_point": entry_words(spec),
        "arguments": list(spec.arguments),
        "inputs": _inputs_of(spec),
    }


def _inputs_of(spec: TrainingSpec) -> list[dict[str, Any]]:
    """Versions of datasets, and of models that were trained further."""
    known: dict[uuid.UUID, Any] = {}
    for kind in (DatasetVersion, ModelVersion):
        rows: Any = kind._default_manager.select_related("parent")
        known |= {one.pk: one for one in rows.filter(pk__in=[one.version for one in spec.inputs])}
    return [
        {
            "kind": "model" if one.dataset_version is None else "dataset",
            "version": str(one.version),
            "as": one.name,
            **_named(known.get(one.version)),
        }
        for one in spec.inputs
    ]


def metrics_refresh(job: Job, attempt: int) -> None:
    """Write the attempt's last values into what it exported: other tasks may have written some since."""
    exported = ModelVersion.objects.filter(source_job=job.pk, attempt=attempt)
    if exported.exists():
        exported.update(metrics=last_values(job, attempt))


def _named(version: CodeVersion | DatasetVersion | ModelVersion | None) -> dict[str, Any]:
    if version is None:
        return {}
    named: dict[str, Any] = {"name": version.parent.name, "number": version.number}
    if isinstance(version, CodeVersion) and version.git_commit:
        named["git"] = f"{version.git_repository}@{version.git_commit}"
    return named


def _image_of(engine: str) -> str:
    """The image of the engine's tasks; empty where they run without one."""
    engines: Mapping[str, Any] = settings.YARDMASTER_ENGINES
    tasks = engines.get(engine, {}).get("options", {}).get("tasks")
    return str(tasks.get("image", "") if isinstance(tasks, Mapping) else getattr(tasks, "image", ""))


def last_values(job: Job, attempt: int) -> list[dict[str, Any]]:
    """The last value of each of the attempt's scalars, by run and tag; the first `METRICS_KEPT`."""
    points = ScalarPoint.objects.filter(job=job, attempt=attempt)
    ends = points.values("run", "tag").annotate(last=Max("step")).order_by("run", "tag")
    names = list(ends.values_list("run", "tag", "last")[:METRICS_KEPT])
    found: list[dict[str, Any]] = []
    for at in range(0, len(names), _POINTS_AT_ONCE):
        wanted = Q()
        for run, tag, step in names[at : at + _POINTS_AT_ONCE]:
            wanted |= Q(run=run, tag=tag, step=step)
        rows = points.filter(wanted).order_by("run", "tag").values_list("run", "tag", "step", "value")
        found += [dict(zip(("run", "tag", "step", "value"), row, strict=True)) for row in rows]
    return found


def _note(job: Job, version: ModelVersion, now: datetime) -> None:
    facts: dict[str, Any] = {
        "model": str(version.parent_id),
        "version": str(version.pk),
        "number": version.number,
        "size": version.size,
        "files": version.file_count,
    }
    if version.stopped:
        facts["stopped"] = True
    found_in = version.source.get("found_in")
    where = f" It was in the working folder: {found_in}." if found_in else ""
    JobEvent.objects.create(
        job=job, at=now, attempt=version.attempt, kind="model_kept", facts=facts,
        message=f"The model was saved as version {version.number} of {version.parent.name}.{where}",
    )  # fmt: skip

"""Versions of models as exports make them, without a task that sends them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from apps.jobs.models import Job
from apps.registry.models import ModelVersion
from apps.registry.services import model_version_create
from apps.stores import storage
from apps.uploads import storage_ledger
from apps.uploads.file_blocks import manifest_append
from apps.uploads.models import Kind, State, Upload
from yardmaster.storage.base import key_join
from yardmaster.storage.file_list import ListedFile

SAVED_MODEL = {"saved_model.pb": b"weights"}


def job_of(user: Any, name: str = "digits", **columns: Any) -> Job:
    columns = {
        "spec": {},
        "needs": {},
        "engine": "local",
        "strategy": "single",
        "namespace": user.personal_namespace,
    } | columns
    return Job.objects.create(owner=user, name=name, queued_at=timezone.now(), **columns)


def version_of(
    job: Job, *, name: str = "", content: Mapping[str, bytes] = SAVED_MODEL, prefix: str = "", **facts: Any
) -> ModelVersion:
    """A version with these files. `prefix`: where they lie, instead of where they would."""
    size, now = sum(map(len, content.values())), timezone.now()
    upload = Upload(namespace=job.namespace, kind=Kind.MODEL, job_id=job.pk, created_at=now, touched_at=now)
    upload.key_prefix = prefix or f"namespaces/{job.namespace_id}/models/{upload.target_id}"
    upload.part_size, upload.file_count, upload.held, upload.state = 8 << 20, len(content), size, State.COMPLETE
    upload.save()
    for path, data in content.items():
        storage().put(key_join(upload.key_prefix, path), data)
    listed = [ListedFile(path, len(data), "", hashlib.sha256(data).hexdigest()) for path, data in content.items()]
    manifest_append(upload.pk, 0, sorted(listed, key=lambda file: file.path))
    storage_ledger.reserve(job.namespace, size, len(content))
    storage_ledger.reservation_use(job.namespace_id, reserved=size, used=size)
    columns = {"job": job, "source_job": job.pk, "job_name": job.name, "attempt": job.attempt} | facts
    return model_version_create(
        namespace=job.namespace, name=name or job.name, actor=job.owner, upload=upload, facts=columns
    )

"""Versions of models as jobs export them. Deleting and stages: `deletion`, `stages`.

Not here: which facts of a job a version repeats (`apps.jobs.state.exports`), and what is read from its files.
"""

from __future__ import annotations

import unicodedata
import uuid
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.services import record
from apps.dispatch.messages import READ_MODEL, enqueue
from apps.dispatch.outbox import happened
from apps.namespaces.models import Namespace
from apps.registry.models import Model, ModelVersion, Stage
from apps.registry.selectors import MODELS, models_in
from apps.uploads.models import Upload
from apps.uploads.services import uploads_discard
from apps.uploads.versioned.services import MAX_NAME, version_add, versions_in_use

_CLEARED_AT_ONCE = 50


def usable_name(name: str) -> str:
    """The name of the model that a job of this name exports to: without what no name may hold, and cut off."""
    kept = "".join(sign for sign in unicodedata.normalize("NFC", name) if unicodedata.category(sign)[0] != "C")
    return kept.strip()[:MAX_NAME].strip() or "model"


def model_version_create(
    *, namespace: Namespace, name: str, actor: User | None, upload: Upload, facts: Mapping[str, Any]
) -> ModelVersion:
    """The next version of the model of this name, which is made if there is none. `facts` are columns of its own. Two
    at once get different numbers. Raises `Conflict` for an upload that is not complete."""
    with transaction.atomic():
        model, is_new = Model.objects.get_or_create(
            namespace=namespace, name=usable_name(name), deleted_at=None, defaults={"created_by": actor}
        )
        if is_new:
            record(actor, "model.create", f"model:{model.pk}", namespace=namespace, name=model.name)
        made = version_add(MODELS, model, actor=actor, upload=upload, more=facts)
        Model.objects.filter(pk=model.pk).update(updated_at=timezone.now())
        happened(
            "model_version.created", made.pk, namespace.pk, "model_version", model=model.name, number=made.number,
            stage=made.stage, stage_before="",
        )  # fmt: skip
        enqueue(READ_MODEL, made.pk)
    return made


def exports_replace(job_id: uuid.UUID, attempt: int, *, by: ModelVersion) -> None:
    """Remove what the same attempt exported before: its task ran once more. One that was given a stage, or that a
    job uses, stays."""
    earlier = ModelVersion.objects.filter(source_job=job_id, attempt=attempt, stage=Stage.NONE).exclude(pk=by.pk)
    used = versions_in_use(MODELS, earlier.values_list("pk", flat=True))
    versions_remove(earlier.exclude(pk__in=used))


def versions_remove(versions: QuerySet[ModelVersion]) -> int:
    """Remove versions with their files, and return their storage. Belongs into a transaction."""
    rows = list(versions.values_list("pk", "upload_id"))
    ModelVersion.objects.filter(pk__in=[pk for pk, _ in rows]).delete()
    uploads_discard([upload_id for _, upload_id in rows])
    return len(rows)


def models_clear(namespace: Namespace, *, actor: User | None) -> int:
    """Remove the models of a namespace of which nothing shall stay, some at a time, whatever their stage. Returns how
    many are still there."""
    for model in models_in(namespace)[:_CLEARED_AT_ONCE]:
        model_remove(model, actor=actor)
    return models_in(namespace).count()


def model_remove(model: Model, *, actor: User | None) -> None:
    """Remove a model with all its versions and files, for good."""
    with transaction.atomic():
        count = versions_remove(ModelVersion.objects.filter(parent=model))
        subject = f"model:{model.pk}"
        model.delete()
        record(actor, "model.remove", subject, namespace=model.namespace, name=model.name, versions=count)

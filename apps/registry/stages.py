"""Stages of versions: which one is in staging or production, since when and by whom. Of these two a model has one
version each; a version that is promoted takes the place of the one before, which is archived.
"""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.services import record
from apps.dispatch.outbox import happened
from apps.errors import Conflict, NotFound
from apps.registry.models import ONE_VERSION_EACH, Model, ModelVersion, Stage, StageChange
from apps.registry.selectors import MODELS


def stage_set(version: ModelVersion, stage: Stage, *, actor: User, note: str = "") -> ModelVersion:
    """Give the version this stage; `Stage.NONE` takes it away. Nothing happens where it has it already. Raises
    `Conflict` for a version of a script that was stopped, which is not for production."""
    if stage is Stage.PRODUCTION and version.stopped:
        raise Conflict(
            "This version was exported by a script that had been stopped: its training was not complete.",
            "model_incomplete",
            remedy="Put it into staging to try it, or promote a version of a job that has succeeded.",
        )
    now = timezone.now()
    with transaction.atomic():
        model = Model.objects.select_for_update().filter(MODELS.live, pk=version.parent_id).first()
        locked = ModelVersion.objects.filter(MODELS.live_versions, pk=version.pk).first()
        if model is None or locked is None:
            raise NotFound()
        if locked.stage == stage:
            return version
        if stage in ONE_VERSION_EACH:
            for earlier in ModelVersion.objects.filter(parent=model, stage=stage):
                _change(model, earlier, Stage.ARCHIVED, actor, f"Replaced by version {version.number}.", now)
        _change(model, locked, stage, actor, note, now)
        Model.objects.filter(pk=model.pk).update(updated_at=now)
    version.stage = stage
    return version


def _change(model: Model, version: ModelVersion, stage: Stage, actor: User, note: str, now: datetime) -> None:
    before = version.stage
    ModelVersion.objects.filter(pk=version.pk).update(stage=stage)
    StageChange.objects.create(
        model=model, number=version.number, before=before, after=stage, by=actor, note=note, at=now
    )
    record(
        actor, "model_version.stage", f"model_version:{version.pk}", namespace=model.namespace, of=str(model.pk),
        number=version.number, before=before, after=stage.value,
    )  # fmt: skip
    happened(
        "model_version.stage_changed", version.pk, model.namespace_id, "model_version", now, model=model.name,
        number=version.number, stage=stage.value, stage_before=before,
    )  # fmt: skip

"""Deleting models and versions with a grace period: at first they are hidden and can be restored, then removed. They
count against the quota until then; who needs the space removes them at once.
"""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.services import record
from apps.errors import Conflict, NotFound
from apps.registry.models import Model, ModelVersion, Stage
from apps.registry.selectors import MODELS
from apps.registry.services import model_remove, versions_remove
from apps.uploads.versioned.services import refuse_in_use, versions_in_use

AT_ONCE = 50


def model_delete(model: Model, *, actor: User, now_for_good: bool = False) -> None:
    """Hide the model, or remove it. Raises `Conflict` where one of its versions is in production, or is used by an
    unfinished job."""
    with transaction.atomic():
        locked = _lock(model)
        versions = list(ModelVersion.objects.filter(parent=locked))
        _refuse(versions)
        if now_for_good:
            model_remove(locked, actor=actor)
        elif locked.deleted_at is None:
            Model.objects.filter(pk=locked.pk).update(deleted_at=timezone.now(), deleted_by=actor)
            record(actor, "model.delete", f"model:{locked.pk}", namespace=locked.namespace, name=locked.name)


def model_restore(model: Model, *, actor: User) -> None:
    """Show a deleted model again. Raises `Conflict` where another has its name by now."""
    try:
        with transaction.atomic():
            locked = _lock(model)
            if Model.objects.filter(pk=locked.pk, deleted_at__isnull=False).update(deleted_at=None, deleted_by=None):
                record(actor, "model.restore", f"model:{locked.pk}", namespace=locked.namespace, name=locked.name)
    except IntegrityError as error:
        raise Conflict(
            f"Another model is called {model.name!r} by now.",
            "name_taken",
            remedy="Rename that one, then restore this one.",
        ) from error


def version_delete(version: ModelVersion, *, actor: User, now_for_good: bool = False) -> None:
    """Hide the version, or remove it. Raises `Conflict` as above."""
    with transaction.atomic():
        model = _lock(version.parent)
        found = ModelVersion.objects.filter(pk=version.pk).first()
        if found is None:
            raise NotFound()
        _refuse([found])
        if now_for_good:
            versions_remove(ModelVersion.objects.filter(pk=found.pk))
        elif found.deleted_at is None:
            ModelVersion.objects.filter(pk=found.pk).update(deleted_at=timezone.now(), deleted_by=actor)
        else:
            return
        _record(actor, "remove" if now_for_good else "delete", model, found)


def version_restore(version: ModelVersion, *, actor: User) -> None:
    """Show a deleted version again. Raises `Conflict` where its model is deleted: that is restored first."""
    with transaction.atomic():
        model = _lock(version.parent)
        if model.deleted_at is not None:
            remedy = "Restore the model; its versions come with it."
            raise Conflict("The model of this version is deleted.", "model_deleted", remedy=remedy)
        rows = ModelVersion.objects.filter(pk=version.pk, deleted_at__isnull=False)
        if rows.update(deleted_at=None, deleted_by=None):
            _record(actor, "restore", model, version)


def deleted_sweep(now: datetime) -> None:
    """Remove what was deleted longer ago than the grace period, some at a time; not what a job uses."""
    before = now - settings.YARDMASTER_MODEL_GRACE
    for model in Model.objects.filter(deleted_at__lt=before).select_related("namespace")[:AT_ONCE]:
        with transaction.atomic():
            if not versions_in_use(MODELS, model.versions.values_list("pk", flat=True)):
                model_remove(model, actor=None)
    for version in ModelVersion.objects.filter(deleted_at__lt=before).select_related("parent__namespace")[:AT_ONCE]:
        with transaction.atomic():
            mine = ModelVersion.objects.filter(pk=version.pk, deleted_at__lt=before)
            if not versions_in_use(MODELS, [version.pk]) and versions_remove(mine):
                _record(None, "remove", version.parent, version)


def _lock(model: Model) -> Model:
    found = Model.objects.select_for_update(of=("self",)).select_related("namespace").filter(pk=model.pk).first()
    if found is None:
        raise NotFound()
    return found


def _refuse(versions: list[ModelVersion]) -> None:
    live = next((one for one in versions if one.stage == Stage.PRODUCTION and one.deleted_at is None), None)
    if live is not None:
        raise Conflict(
            f"Version {live.number} is in production.",
            "in_production",
            remedy="Take it out of production, or promote another version, then delete it.",
        )
    refuse_in_use(MODELS, versions)


def _record(actor: User | None, verb: str, model: Model, version: ModelVersion) -> None:
    subject = f"model_version:{version.pk}"
    record(actor, f"model_version.{verb}", subject, namespace=model.namespace, of=str(model.pk), number=version.number)

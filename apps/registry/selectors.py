"""Which models a person may see, their versions and files. Reads only. A foreign or deleted one is a 404."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from django.db.models import Q, QuerySet

from apps.accounts.models import User
from apps.errors import NotFound
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import namespace_for
from apps.registry.models import Model, ModelVersion
from apps.uploads.models import Kind
from apps.uploads.versioned.selectors import (
    VersionStore,
    collection_for,
    collections_visible,
    version_for,
    versions_of,
)

MODELS = VersionStore(
    Kind.MODEL,
    "model",
    Model,
    ModelVersion,
    live=Q(deleted_at__isnull=True),
    live_versions=Q(deleted_at__isnull=True, parent__deleted_at__isnull=True),
)


def models_visible(user: User, *, namespace: str | None = None) -> QuerySet[Model]:
    """Models of the user's namespaces, or of one of them; not those that are deleted."""
    rows = collections_visible(MODELS, user)
    return rows.filter(namespace=namespace_for(user, namespace)) if namespace else rows


def model_for(user: User, model_id: uuid.UUID, *, at_least: Role = Role.VIEWER) -> Model:
    """The model, if the user may see it. Raises 404, or 403 where the role is too low."""
    return collection_for(MODELS, user, model_id, at_least=at_least)


def model_version_for(user: User, version_id: uuid.UUID, *, at_least: Role = Role.VIEWER) -> ModelVersion:
    """The version, if the user may see it. Raises as above."""
    return version_for(MODELS, user, version_id, at_least=at_least)


def model_versions(model: Model) -> QuerySet[ModelVersion]:
    """The model's versions but the deleted ones, the newest first."""
    return versions_of(MODELS, model).order_by("-number")


def models_in(namespace: Namespace) -> QuerySet[Model]:
    """All models of the namespace, also those that are deleted and not yet removed."""
    return Model.objects.filter(namespace=namespace)


def versions_of_jobs(job_ids: Collection[uuid.UUID]) -> QuerySet[ModelVersion]:
    """What these jobs exported, the newest attempt first; not what was deleted since."""
    there = ModelVersion.objects.filter(MODELS.live_versions, source_job__in=job_ids)
    return there.order_by("-attempt", "-number")


def version_of_job(job_id: uuid.UUID) -> ModelVersion:
    """The newest version that the job has exported. 404 where there is none."""
    newest = versions_of_jobs([job_id]).select_related("parent__namespace", "created_by").first()
    if newest is None:
        raise NotFound(
            "This job has no model.",
            remedy="Files that the script writes to its model directory (paths.model_env) are saved when it exits.",
        )
    return newest

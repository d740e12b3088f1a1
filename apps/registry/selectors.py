"""Which models a person may see, their versions and files. Reads only. A foreign or deleted one is a 404."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence

from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet

from apps.accounts.models import User
from apps.errors import Invalid, NotFound
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import namespace_for, namespaces_visible, require_role
from apps.registry.models import ONE_VERSION_EACH, Model, ModelVersion, StageChange
from apps.uploads.models import Kind
from apps.uploads.versioned.selectors import (
    VersionStore,
    collection_for,
    collections_visible,
    version_for,
    versions_of,
)
from yardmaster.errors import Problem

MOST_COMPARED = 5

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


def with_versions(rows: QuerySet[Model]) -> QuerySet[Model]:
    """The rows with their newest version at hand (`newest_of`), and those in staging and production (`staged`), without
    what lists do not show. Two more queries for all of them."""
    there = _for_lists(ModelVersion.objects.filter(MODELS.live_versions))
    newer = there.filter(parent=OuterRef("parent"), number__gt=OuterRef("number"))
    newest = there.filter(~Exists(newer)).select_related("created_by")
    staged = there.filter(stage__in=ONE_VERSION_EACH).order_by("stage")
    return rows.prefetch_related(
        Prefetch("versions", queryset=newest, to_attr="newest"), Prefetch("versions", queryset=staged, to_attr="staged")
    )


def _for_lists(rows: QuerySet[ModelVersion]) -> QuerySet[ModelVersion]:
    return rows.defer("contents", "source")


def deleted_models(user: User, *, namespace: str | None = None) -> QuerySet[Model]:
    """Models that can still be restored, those deleted last first."""
    rows = Model.objects.filter(namespace__in=namespaces_visible(user), deleted_at__isnull=False)
    if namespace:
        rows = rows.filter(namespace=namespace_for(user, namespace))
    return rows.select_related("namespace", "deleted_by")


def deleted_versions(model: Model) -> QuerySet[ModelVersion]:
    """Versions of a model that can still be restored."""
    rows = model.versions.filter(deleted_at__isnull=False).select_related("deleted_by", "created_by")
    return _for_lists(rows).order_by("-number")


def any_model_for(user: User, model_id: uuid.UUID, *, at_least: Role) -> Model:
    """The model, deleted or not. Raises like `model_for`."""
    rows = Model.objects.select_related("namespace").filter(namespace__in=namespaces_visible(user))
    found = rows.filter(pk=model_id).first()
    if found is None:
        raise NotFound()
    require_role(user, found.namespace, at_least)
    return found


def any_version_for(user: User, version_id: uuid.UUID, *, at_least: Role) -> ModelVersion:
    """The version, deleted or not. Raises like `model_for`."""
    rows = ModelVersion.objects.select_related("parent__namespace", "created_by")
    found = rows.filter(pk=version_id, parent__namespace__in=namespaces_visible(user)).first()
    if found is None:
        raise NotFound()
    require_role(user, found.parent.namespace, at_least)
    return found


def versions_numbered(model: Model, numbers: Sequence[str]) -> list[ModelVersion]:
    """The versions with these numbers, in their order. Raises `Invalid` for what are no two to five numbers, 404 where
    one is not there."""
    wanted = list(dict.fromkeys(int(one) for one in numbers if one.isascii() and one.isdigit() and len(one) <= 9))
    if not 2 <= len(wanted) <= MOST_COMPARED or len(wanted) != len(set(numbers)):
        message = f"Two to {MOST_COMPARED} versions can be compared."
        raise Invalid([Problem("version", "invalid", message, "Add ?version=1&version=2, for instance.")])
    found = {one.number: one for one in versions_of(MODELS, model).filter(number__in=wanted)}
    if missing := [one for one in wanted if one not in found]:
        raise NotFound(f"There is no version {missing[0]} of this model.", remedy="It may have been deleted.")
    return [found[one] for one in wanted]


def stage_changes(model: Model) -> QuerySet[StageChange]:
    """The history of the model's stages, the newest first."""
    return model.stage_changes.select_related("by").order_by("-pk")


def model_versions(model: Model) -> QuerySet[ModelVersion]:
    """The model's versions but the deleted ones, the newest first."""
    return _for_lists(versions_of(MODELS, model)).order_by("-number")


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

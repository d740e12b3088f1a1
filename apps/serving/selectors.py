"""Which services a person may see. Reads only. A foreign one is a 404."""

from __future__ import annotations

import uuid

from django.db.models import QuerySet

from apps.accounts.models import User
from apps.errors import NotFound
from apps.hosting.selectors import NOT_ENDED
from apps.namespaces.models import Role
from apps.namespaces.selectors import namespace_for, namespaces_visible, require_role
from apps.registry.models import ONE_VERSION_EACH, ModelVersion
from apps.registry.selectors import MODELS, model_for
from apps.serving.models import Service
from apps.uploads.versioned.selectors import versions_of


def services_visible(user: User, *, namespace: str | None = None) -> QuerySet[Service]:
    """Services of the user's namespaces that run, or are to; the newest first."""
    mine = [namespace_for(user, namespace)] if namespace else namespaces_visible(user)
    return _with_all(Service.objects.filter(NOT_ENDED, namespace__in=mine)).order_by("-pk")


def service_for(user: User, service_id: uuid.UUID, *, at_least: Role = Role.VIEWER) -> Service:
    """The service, whether it runs or not. Raises 404, or 403 where the role is too low."""
    mine = Service.objects.filter(pk=service_id, namespace__in=namespaces_visible(user))
    found = _with_all(mine).first()
    if found is None:
        raise NotFound()
    if at_least != Role.VIEWER:
        require_role(user, found.namespace, at_least)
    return found


def service_of(version: ModelVersion) -> Service | None:
    """What serves this version, or did; None where it was never served. Who may see the version was decided before."""
    return _with_all(Service.objects.filter(version=version)).first()


def version_in_stage(user: User, model_id: uuid.UUID, stage: str, *, at_least: Role = Role.VIEWER) -> ModelVersion:
    """The version that has this stage now, `production` or `staging`. Raises 404 where there is none, or 403."""
    model = model_for(user, model_id, at_least=at_least)
    if stage not in ONE_VERSION_EACH:
        raise NotFound(f"No single version has the stage {stage}.", remedy="Use production or staging.")
    found = versions_of(MODELS, model).filter(stage=stage).select_related("parent__namespace").first()
    if found is None:
        remedy = f"Set it on a version's page, or with `yardmaster models promote {model.name}@N --to {stage}`."
        raise NotFound(f"No version of {model.name} has the stage {stage}.", remedy=remedy)
    return found


def _with_all(rows: QuerySet[Service]) -> QuerySet[Service]:
    related = rows.select_related("version__parent__namespace", "namespace", "job__namespace", "started_by")
    return related.defer("job__waiting")

"""Which environments a user sees."""

from __future__ import annotations

import uuid

from django.db.models import QuerySet

from apps.accounts.models import User
from apps.environments.models import Environment, State
from apps.errors import NotFound
from apps.namespaces.selectors import namespaces_visible


def environments_visible_to(user: User) -> QuerySet[Environment]:
    """Those that can be used, of all namespaces that the user may see, the newest first."""
    seen = Environment.objects.filter(namespace__in=namespaces_visible(user), state=State.READY)
    return seen.select_related("namespace").order_by("-pk")


def environment_of(user: User, environment_id: uuid.UUID) -> Environment:
    """Raises `NotFound`, also for one that the user may not see."""
    found = environments_visible_to(user).filter(pk=environment_id).first()
    if found is None:
        raise NotFound()
    return found

"""Marks that something has changed for what engines keep for namespaces. Workers that look after it find them
(`apps.jobs.engines.namespaces`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import datetime

from django.db.models import QuerySet

from apps.dispatch.messages import KEEP_NAMESPACE, enqueue
from apps.namespaces.models import Namespace, Place


def place_changed(namespace_id: uuid.UUID, now: datetime) -> None:
    """Something that places depend on has changed: have them looked at once the running transaction is committed."""
    Place.objects.filter(namespace_id=namespace_id).update(next_look_at=now, shaped_at=None)
    enqueue(KEEP_NAMESPACE, namespace_id)


def places_give_up(namespace_ids: Iterable[uuid.UUID], now: datetime) -> None:
    """Have all that engines keep for these namespaces removed, once the running transaction is committed."""
    for namespace_id in namespace_ids:
        Place.objects.filter(namespace_id=namespace_id).update(goes=True, setbacks=0)
        place_changed(namespace_id, now)


def namespaces_open(closed: QuerySet[Namespace], now: datetime) -> None:
    """Let things begin in these namespaces again, with new places."""
    for namespace in closed:
        Namespace.objects.filter(pk=namespace.pk).update(closed_at=None)
        Place.objects.filter(namespace_id=namespace.pk).update(goes=False, left=[], setbacks=0)
        place_changed(namespace.pk, now)

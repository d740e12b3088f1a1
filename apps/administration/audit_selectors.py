"""Who may read which audit events: administrators all, managers those of their namespaces."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db.models import Q, QuerySet

from apps.accounts.models import User
from apps.audit.models import AuditEvent
from apps.namespaces.models import Membership, Namespace, Role

_AT_ONCE = 500


def events_visible(user: User) -> QuerySet[AuditEvent]:
    if user.is_staff:
        return AuditEvent.objects.all()
    managed = Membership.objects.filter(user=user, role=Role.MANAGER).values("namespace_id")
    return AuditEvent.objects.filter(namespace_id__in=managed)


def events_matching(rows: QuerySet[AuditEvent], wanted: dict[str, Any]) -> QuerySet[AuditEvent]:
    """Those that fit every filter that is set: `action`, `person` (a name), `namespace` (its short name), `since`,
    `until` (days in UTC, both included)."""
    if action := wanted.get("action"):
        rows = rows.filter(action=action)
    if person := wanted.get("person"):
        rows = rows.filter(Q(actor_name__iexact=person) | Q(facts__name__iexact=person, actor_id=None))
    if slug := wanted.get("namespace"):
        rows = rows.filter(namespace_id__in=Namespace.objects.filter(slug=slug).values("pk"))
    if since := wanted.get("since"):
        rows = rows.filter(at__gte=_midnight(since))
    if until := wanted.get("until"):
        rows = rows.filter(at__lt=_midnight(until) + timedelta(days=1))
    return rows


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time.min, UTC)


def events_newest_first(rows: QuerySet[AuditEvent], most: int) -> Iterator[list[AuditEvent]]:
    """All of them, `most` at most, some at a time: no more is in memory, and no query stays open between."""
    last = None
    while most > 0:
        page = rows if last is None else rows.filter(pk__lt=last)
        found = list(page.order_by("-pk")[: min(_AT_ONCE, most)])
        if found:
            yield found
        if len(found) < _AT_ONCE:
            return
        most -= len(found)
        last = found[-1].pk


def namespaces_of(events: list[AuditEvent]) -> dict[Any, str]:
    """The short names of the namespaces that the events tell of, as far as they are still there."""
    ids = {event.namespace_id for event in events if event.namespace_id}
    return dict(Namespace.objects.filter(pk__in=ids).values_list("pk", "slug"))

"""Who may read which audit events: administrators all, managers those of their namespaces."""

from __future__ import annotations

from django.db.models import QuerySet

from apps.accounts.models import User
from apps.audit.models import AuditEvent
from apps.namespaces.models import Membership, Role


def events_visible(user: User) -> QuerySet[AuditEvent]:
    if user.is_staff:
        return AuditEvent.objects.all()
    managed = Membership.objects.filter(user=user, role=Role.MANAGER).values("namespace_id")
    return AuditEvent.objects.filter(namespace_id__in=managed)

"""That a namespace has one manager less is told to who reads it from the outbox: what that person made there continues
to work, and the others are to know. Not here: what that is (`apps.webhooks.former_makers`).
"""

from __future__ import annotations

from uuid import UUID

from django.dispatch import receiver

from apps.accounts.models import User, user_deactivated
from apps.dispatch.outbox import MANAGER_LEFT, publish
from apps.namespaces.models import Membership, Role


def manager_left(namespace_id: UUID, user: User) -> None:
    """Tell it, in the running transaction."""
    publish(MANAGER_LEFT, namespace_id, user=str(user.pk))


@receiver(user_deactivated)
def _locked(user: User, **facts: object) -> None:
    managed = Membership.objects.filter(user=user, role=Role.MANAGER, namespace__owner=None)
    for namespace_id in managed.order_by("pk").values_list("namespace_id", flat=True):
        manager_left(namespace_id, user)

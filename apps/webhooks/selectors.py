"""Which webhooks a namespace has, and what was sent to them. Secrets and addresses stay sealed."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet

from apps.accounts.models import User
from apps.errors import NotFound
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import namespace_for
from apps.webhooks.models import Delivery, Webhook


def managed_namespace(user: User, namespace_id: UUID) -> Namespace:
    """The namespace, for its managers: 404 for strangers, 403 for members. What events are sent where is theirs."""
    return namespace_for(user, namespace_id, at_least=Role.MANAGER)


def webhooks_of(namespace: Namespace) -> QuerySet[Webhook]:
    found = Webhook.objects.filter(namespace=namespace).defer("sealed")
    return found.select_related("namespace", "created_by").order_by("-pk")


def webhook_in(namespace: Namespace, webhook_id: UUID) -> Webhook:
    """One of them. Raises `NotFound`, also for that of another namespace."""
    found = webhooks_of(namespace).filter(pk=webhook_id).first()
    if found is None:
        raise NotFound()
    return found


def deliveries_of(webhook: Webhook) -> QuerySet[Delivery]:
    """The newest first."""
    return Delivery.objects.filter(webhook=webhook).order_by("-pk")


def delivery_of(webhook: Webhook, delivery_id: UUID) -> Delivery:
    found = deliveries_of(webhook).filter(pk=delivery_id).first()
    if found is None:
        raise NotFound()
    return found

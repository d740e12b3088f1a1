"""The API of a namespace's webhooks, for its managers."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.urls import URLPattern, URLResolver, path
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_view import ApiView
from apps.api.idempotency import IdempotentPosts
from apps.namespaces.models import Namespace
from apps.webhooks import services
from apps.webhooks.models import Format, Webhook
from apps.webhooks.sealed_parts import OVERLAP
from apps.webhooks.selectors import deliveries_of, delivery_of, managed_namespace, webhook_in, webhooks_of
from apps.webhooks.serializers import (
    MadeWebhookSerializer,
    NewWebhookSerializer,
    WebhookChangeSerializer,
    WebhookDeliverySerializer,
    WebhookSecretSerializer,
    WebhookSerializer,
)


class _WebhookAddress(IdempotentPosts, ApiView):
    scope = "admin"
    posts_are_one_transaction = True

    def namespace(self, namespace_id: UUID) -> Namespace:
        return managed_namespace(self.user, namespace_id)

    def webhook(self, namespace_id: UUID, webhook_id: UUID) -> Webhook:
        return webhook_in(self.namespace(namespace_id), webhook_id)


class WebhooksView(_WebhookAddress):
    """The webhooks of a namespace."""

    answers_are_secret = True

    @extend_schema(responses=WebhookSerializer(many=True))
    def get(self, request: Request, namespace_id: UUID) -> Response:
        return self.page(webhooks_of(self.namespace(namespace_id)), WebhookSerializer)

    @extend_schema(request=NewWebhookSerializer, responses={201: MadeWebhookSerializer})
    def post(self, request: Request, namespace_id: UUID) -> Response:
        """Create one. The answer alone has its secret."""
        namespace = self.namespace(namespace_id)
        data: dict[str, Any] = dict(self.read(NewWebhookSerializer).validated_data)
        made, secret = services.webhook_create(
            namespace=namespace, actor=self.user, **data | {"format": Format(data["format"])}
        )
        made.made_secret = secret  # type: ignore[attr-defined]
        return Response(MadeWebhookSerializer(made).data, status=201)


class WebhookView(_WebhookAddress):
    """One webhook."""

    @extend_schema(responses=WebhookSerializer)
    def get(self, request: Request, namespace_id: UUID, webhook_id: UUID) -> Response:
        return Response(WebhookSerializer(self.webhook(namespace_id, webhook_id)).data)

    @extend_schema(request=WebhookChangeSerializer, responses=WebhookSerializer)
    def patch(self, request: Request, namespace_id: UUID, webhook_id: UUID) -> Response:
        """Change it, switch it off or on."""
        webhook = self.webhook(namespace_id, webhook_id)
        data = self.read(WebhookChangeSerializer).validated_data
        return Response(WebhookSerializer(services.webhook_change(webhook=webhook, actor=self.user, **data)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, namespace_id: UUID, webhook_id: UUID) -> Response:
        """Delete it with its log. What waits is not sent."""
        services.webhook_delete(webhook=self.webhook(namespace_id, webhook_id), actor=self.user)
        return Response(status=204)


class WebhookSecretView(_WebhookAddress):
    """The secret of a webhook."""

    answers_are_secret = True

    @extend_schema(request=None, responses=WebhookSecretSerializer)
    def post(self, request: Request, namespace_id: UUID, webhook_id: UUID) -> Response:
        """Make another secret. For a day messages are signed with both."""
        secret = services.secret_rotate(webhook=self.webhook(namespace_id, webhook_id), actor=self.user)
        answer = {"secret": secret, "earlier_until": timezone.now() + OVERLAP}
        return Response(WebhookSecretSerializer(answer).data)


class WebhookTestView(_WebhookAddress):
    """A test message."""

    @extend_schema(request=None, responses={202: WebhookDeliverySerializer})
    def post(self, request: Request, namespace_id: UUID, webhook_id: UUID) -> Response:
        """Have an event `test` sent, also to a webhook that is switched off. Its delivery shows what came of it."""
        made = services.send_test(webhook=self.webhook(namespace_id, webhook_id), actor=self.user)
        return Response(WebhookDeliverySerializer(made).data, status=202)


class WebhookDeliveriesView(_WebhookAddress):
    """What was sent to a webhook, and is to be: the last 30 days, at most 1,000."""

    @extend_schema(responses=WebhookDeliverySerializer(many=True))
    def get(self, request: Request, namespace_id: UUID, webhook_id: UUID) -> Response:
        return self.page(deliveries_of(self.webhook(namespace_id, webhook_id)), WebhookDeliverySerializer)


class WebhookRedeliveryView(_WebhookAddress):
    """Sending a message once more."""

    @extend_schema(request=None, responses={202: WebhookDeliverySerializer})
    def post(self, request: Request, namespace_id: UUID, webhook_id: UUID, delivery_id: UUID) -> Response:
        """Have it sent again, as a delivery of its own with the same event id."""
        delivery = delivery_of(self.webhook(namespace_id, webhook_id), delivery_id)
        made = services.redeliver(delivery=delivery, actor=self.user)
        return Response(WebhookDeliverySerializer(made).data, status=202)


_ALL = "namespaces/<uuid:namespace_id>/webhooks/"
_ONE = f"{_ALL}<uuid:webhook_id>/"
urlpatterns: list[URLPattern | URLResolver] = [
    path(_ALL, WebhooksView.as_view(), name="webhooks"),
    path(_ONE, WebhookView.as_view(), name="webhook"),
    path(f"{_ONE}secret/", WebhookSecretView.as_view(), name="webhook_secret"),
    path(f"{_ONE}test/", WebhookTestView.as_view(), name="webhook_test"),
    path(f"{_ONE}deliveries/", WebhookDeliveriesView.as_view(), name="webhook_deliveries"),
    path(f"{_ONE}deliveries/<uuid:delivery_id>/redeliver/", WebhookRedeliveryView.as_view(), name="webhook_redelivery"),
]

"""From one event to the messages that are due: one for each webhook of its namespace that has chosen it.

Runs in the transaction that takes the event out of the outbox, so none is lost and none is written twice. The body is
the same for all; `docs/webhooks.md` describes it. Not here: sending (`worker`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import User
from apps.dispatch.messages import DELIVER_WEBHOOK, enqueue
from apps.dispatch.models import OutboxEvent
from apps.namespaces.models import Namespace
from apps.webhooks.models import Delivery, State, Webhook
from yardmaster.ids import new_id
from yardmaster.outgoing.events import TEST, VERSION

MOST_WAITING = 10_000
"""Messages that may wait for one receiver. Events past that are not sent to it."""
_PAGES = {"job": "job_page", "model_version": "model_version_page", "dataset_version": "dataset_version_page",
          "budget": "namespace_page", "sweep": "sweep_page", "schedule": "schedule_page"}  # fmt: skip


def event_fan_out(event: OutboxEvent) -> None:
    """Write the deliveries of an event of the topic `happened`, and wake a worker for each."""
    facts = event.facts
    candidates = Webhook.objects.filter(namespace=facts["namespace"], is_active=True).defer("sealed")
    chosen = [one for one in candidates if facts["event"] in one.events]
    if not chosen:
        return
    namespace = Namespace.objects.filter(pk=facts["namespace"], closed_at__isnull=True).first()
    if namespace is None:
        return
    body = body_of_event(event.subject, facts, namespace)
    for webhook in chosen:
        delivery_add(webhook, facts["event"], body, key=facts["id"])


def delivery_add(webhook: Webhook, event: str, body: Mapping[str, Any], *, key: str) -> None:
    """Write that this is to be sent, once for each key, unless too much waits already. In a transaction."""
    if Delivery.objects.filter(webhook=webhook, state=State.WAITING)[:MOST_WAITING].count() >= MOST_WAITING:
        return
    now = timezone.now()
    made = Delivery(id=new_id(), webhook=webhook, key=key, event=event, body=dict(body), created_at=now, due_at=now)
    Delivery.objects.bulk_create([made], ignore_conflicts=True)
    enqueue(DELIVER_WEBHOOK, webhook.pk)


def body_of_event(subject: UUID, facts: Mapping[str, Any], namespace: Namespace) -> dict[str, Any]:
    """What is told of an event, version `VERSION` of the schema."""
    about = dict(facts["about"])
    if "owner" in about:
        about["owner"] = User.objects.filter(pk=about["owner"]).values_list("username", flat=True).first() or ""
    kind = facts["kind"]
    return _body(
        facts["id"], facts["event"], facts["at"], namespace,
        {kind: {"id": str(subject), **about, "url": address_of(kind, subject)}},
    )  # fmt: skip


def body_of_test(webhook: Webhook, now: datetime) -> dict[str, Any]:
    return _body(str(new_id()), TEST, now.isoformat(), webhook.namespace, {})


def address_of(kind: str, subject: UUID) -> str:
    """Where people read on."""
    return f"{settings.PUBLIC_URL}{reverse(_PAGES[kind], args=[subject])}"


def _body(event_id: str, event: str, at: str, namespace: Namespace | None, about: Mapping[str, Any]) -> dict[str, Any]:
    of = None if namespace is None else {"id": str(namespace.pk), "name": namespace.slug}
    return {"version": VERSION, "id": event_id, "event": event, "at": at, "namespace": of, **about}

"""Mails about what the portal has done by itself: it has switched a webhook off, which its managers should know.

Not here: sending (`worker`).
"""

from __future__ import annotations

from django.conf import settings
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import User
from apps.dispatch.messages import SEND_ANNOUNCEMENT, enqueue
from apps.dispatch.models import OutboxEvent
from apps.dispatch.outbox import deliver
from apps.namespaces.models import Membership, Role
from apps.notifications.letter import LONGEST_LINE, LONGEST_NAME, one_line
from apps.notifications.models import Announcement
from apps.webhooks.models import Webhook
from apps.webhooks.services import WEBHOOK_OFF
from yardmaster.ids import new_id


def webhooks_off_note() -> int:
    """Write a mail to each manager for each webhook that was switched off since the last call. Returns how many
    webhooks there were; may be repeated."""
    return deliver(WEBHOOK_OFF, _note)


def _note(event: OutboxEvent) -> None:
    webhook = Webhook.objects.select_related("namespace").filter(pk=event.subject).first()
    if webhook is None or webhook.namespace is None:
        return  # it was deleted since
    managers = Membership.objects.filter(namespace=webhook.namespace, role=Role.MANAGER).values("user_id")
    of = one_line(webhook.namespace.slug, LONGEST_NAME)
    name = one_line(webhook.description or webhook.shown, LONGEST_NAME)
    page = reverse("webhook_page", args=[webhook.namespace_id, webhook.pk])
    body = "\n\n".join(
        [
            f"The portal has switched off the webhook {name} of {of}.\n{settings.PUBLIC_URL}{page}",
            one_line(event.facts["reason"], LONGEST_LINE),
            "What waited was not sent. Correct the receiver, then switch the webhook on again on that page.",
            f"-- \nYou get this e-mail as a manager of {of}.\n",
        ]
    )
    now = timezone.now()
    for user in User.objects.filter(pk__in=managers, is_active=True).exclude(email=""):
        made = Announcement(
            id=new_id(), user=user, key=f"webhook.off {event.pk}", subject=f"[Yardmaster] Webhook of {of} switched off",
            body=body, created_at=now, due_at=now,
        )  # fmt: skip
        Announcement.objects.bulk_create([made], ignore_conflicts=True)
        enqueue(SEND_ANNOUNCEMENT, made.pk)

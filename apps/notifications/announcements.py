"""Mails about what the portal has done by itself: it has switched a webhook off, which its managers should know.

Not here: sending (`worker`).
"""

from __future__ import annotations

from django.conf import settings
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import User
from apps.dispatch.models import OutboxEvent
from apps.dispatch.outbox import deliver
from apps.namespaces.models import Membership, Role
from apps.notifications.letter import LONGEST_LINE, LONGEST_NAME, one_line
from apps.notifications.telling import announce, mail_write
from apps.webhooks.models import Webhook
from apps.webhooks.services import WEBHOOK_OFF


def webhooks_off_note() -> int:
    """Tell each manager, or its owner, of each webhook that was switched off since the last call. Returns how many
    webhooks there were; may be repeated."""
    return deliver(WEBHOOK_OFF, _note)


def _note(event: OutboxEvent) -> None:
    webhook = Webhook.objects.select_related("namespace", "user").filter(pk=event.subject).first()
    if webhook is None:
        return  # it was deleted since
    if webhook.namespace is None:
        _tell_owner(webhook, event)
        return
    managers = Membership.objects.filter(namespace=webhook.namespace, role=Role.MANAGER).values("user_id")
    of = one_line(webhook.namespace.slug, LONGEST_NAME)
    page = reverse("webhook_page", args=[webhook.namespace_id, webhook.pk])
    text = _text(webhook, event, f" of {of}", page, f"You get this e-mail as a manager of {of}.")
    for user in User.objects.filter(pk__in=managers, is_active=True):
        announce(
            user, "webhook.off", webhook.namespace, key=f"webhook.off {event.pk}",
            subject=f"Webhook of {of} switched off", text=text, url=f"{settings.PUBLIC_URL}{page}", now=timezone.now(),
        )  # fmt: skip


def _tell_owner(webhook: Webhook, event: OutboxEvent) -> None:
    """A person's own chat or webhook: they get a mail whatever they have chosen, as nothing else reaches them."""
    user = webhook.user
    if user is None or not user.is_active or not user.email:
        return
    text = _text(webhook, event, "", reverse("notifications_page"), "Its notifications are sent by e-mail now.")
    subject = "[Yardmaster] Your chat or webhook was switched off"
    mail_write(user, key=f"webhook.off {event.pk}", subject=subject, text=text, now=timezone.now())


def _text(webhook: Webhook, event: OutboxEvent, of: str, page: str, end: str) -> str:
    name = one_line(webhook.description or webhook.shown, LONGEST_NAME)
    return "\n\n".join(
        [
            f"The portal has switched off the webhook {name}{of}.\n{settings.PUBLIC_URL}{page}",
            one_line(event.facts["reason"], LONGEST_LINE),
            "Waiting messages were dropped. Correct the receiver, then switch the webhook on again on that page.",
            f"-- \n{end}\n",
        ]
    )

"""A person's own address for notifications: a program that takes signed JSON, or an incoming webhook of a chat.

Its address and its secret are sealed, checked and rotated as those of a namespace's webhook. Not here: what is sent
there (`choosing`).
"""

from __future__ import annotations

from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.services import record
from apps.errors import Invalid, NotFound
from apps.webhooks.models import Delivery, Format, Webhook
from apps.webhooks.services import (
    CHANGES,
    forget_failures,
    receiver_seal,
    refuse_address,
    refuse_often,
    secret_rotate,
    send_test,
)
from yardmaster.errors import Problem

FORMATS = {
    str(Format.SLACK): "Slack", str(Format.MATTERMOST): "Mattermost", str(Format.TEAMS): "Microsoft Teams",
    str(Format.JSON): "Webhook (signed JSON)",
}  # fmt: skip
"""What people may choose, with its words."""


def own_chat(user: User) -> Webhook | None:
    return Webhook.objects.filter(user=user).defer("sealed").order_by("pk").first()


def own_chat_set(*, user: User, url: str, format: Format) -> tuple[Webhook, str]:
    """The user's address, in the place of the one before, whose failures are forgotten; and its new secret, which is
    not shown again, empty for a chat. Raises `Invalid`, `TooMany`."""
    refuse_often(user, "webhooks", CHANGES)
    found = refuse_address(url)
    if format not in FORMATS:
        known = ", ".join(FORMATS)
        found.append(
            Problem("format", "invalid", "There is no such format.", f"Use one of: {known}.", str(format)[:20])
        )
    if found:
        raise Invalid(found)
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        chat = Webhook.objects.filter(user=user).order_by("pk").first()
        before = {"address_before": chat.shown if chat else "", "format_before": str(chat.format) if chat else ""}
        chat = chat or Webhook(user=user, created_at=timezone.now(), created_by=user)
        chat.format, chat.is_active, chat.off_reason = format, True, ""
        forget_failures(chat)
        secret = receiver_seal(chat, url)
        chat.save()
        facts: dict[str, Any] = {"address": chat.shown, "format": str(chat.format), **before}
        record(user, "notification.chat", f"user:{user.pk}", **facts)
    return chat, secret


def own_chat_secret(*, user: User) -> str:
    """A new secret, which is returned and not shown again; the earlier one signs, too, for `sealed_parts.OVERLAP`.
    Raises `NotFound` where there is no address, `Conflict` where it is a chat, `TooMany`."""
    return secret_rotate(webhook=_set_up(user), actor=user)


def own_chat_remove(*, user: User) -> None:
    """What was for it is sent by mail from now on. Nothing to remove: nothing changes."""
    with transaction.atomic():
        shown = list(Webhook.objects.filter(user=user).values_list("shown", flat=True))
        if shown:
            Webhook.objects.filter(user=user).delete()
            record(user, "notification.chat_remove", f"user:{user.pk}", address=shown[0])


def own_chat_test(*, user: User) -> Delivery:
    """Have a test message sent to it. Raises `NotFound` where there is none, `TooMany`."""
    return send_test(webhook=_set_up(user), actor=user)


def _set_up(user: User) -> Webhook:
    chat = own_chat(user)
    if chat is None:
        raise NotFound("You have not set up a chat or webhook.", remedy="Enter its address first.")
    return chat


def last_delivery(chat: Webhook) -> Delivery | None:
    """What was sent to it last."""
    return Delivery.objects.filter(webhook=chat).order_by("-pk").first()

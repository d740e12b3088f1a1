"""Changes of webhooks, each audited, and what people ask to be sent: a test, or a delivery once more.

The caller has asked whether the user may (`selectors.managed_namespace`). Not here: events (`fanout`), sending
(`worker`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.accounts.models import User
from apps.api.allowances import take
from apps.audit.changes import changes
from apps.audit.services import record
from apps.dispatch.messages import DELIVER_WEBHOOK, enqueue
from apps.dispatch.outbox import publish
from apps.errors import Conflict, Invalid, TooMany
from apps.namespaces.models import Namespace
from apps.namespaces.selectors import refuse_closed
from apps.webhooks.fanout import body_of_test
from apps.webhooks.models import Delivery, Format, State, Webhook
from apps.webhooks.sealed_parts import Parts, parts_of, parts_seal
from yardmaster.allowances import Allowance, Taking
from yardmaster.errors import Problem, SpecRejected
from yardmaster.ids import new_id
from yardmaster.outgoing.events import EVENTS, TEST
from yardmaster.outgoing.signing import new_secret
from yardmaster.outgoing.targets import shown, target_of

WEBHOOK_OFF = "webhook.off"
"""Topic of the outbox: the portal has switched the webhook `subject` off. Facts: `reason`, `at`."""
CHANGES, TESTS = 60, 10
"""How often a user may change webhooks, and have something sent, in a minute."""
_MINUTE = 60


def webhook_create(
    *, namespace: Namespace, actor: User, url: str, events: Sequence[str], format: Format = Format.JSON,
    description: str = "", is_active: bool = True,
) -> tuple[Webhook, str]:  # fmt: skip
    """The new webhook, and its secret, which is not shown again; empty for a chat. Raises `Invalid`, `Conflict` where
    the namespace has as many as it may, `TooMany`."""
    refuse_often(actor, "webhooks", CHANGES)
    _refuse_bad(url, events, description)
    made = Webhook(
        namespace=namespace, format=format, description=description, events=in_order(events), is_active=is_active,
        created_at=timezone.now(), created_by=actor,
    )  # fmt: skip
    with transaction.atomic():
        locked = Namespace.objects.select_for_update().get(pk=namespace.pk)
        refuse_closed(locked)
        refuse_full(Webhook.objects.filter(namespace=namespace).count(), "webhooks")
        secret = receiver_seal(made, url)
        made.save(force_insert=True)
        record(actor, "webhook.create", _subject(made), namespace=namespace, **_facts(made))
    return made, secret


def receiver_seal(webhook: Webhook, url: str) -> str:
    """Give the unsaved row its address, and a secret where its messages are signed, which is returned."""
    secret = new_secret() if webhook.format == Format.JSON else ""
    webhook.shown = shown(url, is_secret=webhook.format != Format.JSON)[:300]
    parts_seal(webhook, Parts(url, secret))
    return secret


def webhook_change(
    *, webhook: Webhook, actor: User, url: str | None = None, events: Sequence[str] | None = None,
    description: str | None = None, is_active: bool | None = None,
) -> Webhook:  # fmt: skip
    """None: stays as it is. A new address, or switching it on, forgets the failures before. Raises `Invalid`."""
    refuse_often(actor, "webhooks", CHANGES)
    _refuse_bad(url, webhook.events if events is None else events, description or "")
    with transaction.atomic():
        locked = Webhook.objects.select_for_update(of=("self",)).select_related("namespace").get(pk=webhook.pk)
        before = _facts(locked)
        locked.events = locked.events if events is None else in_order(events)
        locked.description = locked.description if description is None else description
        if url is not None:
            readdress(locked, url)
        if is_active is not None and is_active != locked.is_active:
            locked.is_active, locked.off_reason = is_active, ""
        if url is not None or is_active:
            forget_failures(locked)
        locked.save()
        if not locked.is_active:
            deliveries_drop(locked, "The webhook was switched off.")
        facts = changes(before, _facts(locked))
        if url is not None:  # also where what may be shown of the new address is the same
            facts |= {"address": locked.shown, "address_before": before["address"], "readdressed": True}
        if facts:
            record(actor, "webhook.change", _subject(locked), namespace=locked.namespace, **facts)
    return locked


def readdress(webhook: Webhook, url: str) -> None:
    """Another address, with the same secret. The row is not saved."""
    kept = parts_of(webhook)
    webhook.shown = shown(url, is_secret=webhook.format != Format.JSON)[:300]
    parts_seal(webhook, Parts(url, kept.secret, kept.earlier, kept.earlier_until))


def forget_failures(webhook: Webhook) -> None:
    """The row is not saved."""
    webhook.failures, webhook.failing_since, webhook.rests_until = 0, None, None


def secret_rotate(*, webhook: Webhook, actor: User) -> str:
    """A new secret, which is returned and not shown again. For `OVERLAP` the earlier one signs, too."""
    refuse_often(actor, "webhooks", CHANGES)
    if webhook.format != Format.JSON:
        raise Conflict(
            "Messages to a chat are not signed.",
            remedy="Create a new incoming webhook in the chat, and enter its address.",
        )
    secret = new_secret()
    with transaction.atomic():
        locked = Webhook.objects.select_for_update(of=("self",)).select_related("namespace").get(pk=webhook.pk)
        parts_seal(locked, parts_of(locked).rotated(secret, timezone.now()))
        locked.save(update_fields=["sealed", "key_id"])
        record(actor, "webhook.rotate", _subject(locked), namespace=locked.namespace)
    return secret


def webhook_delete(*, webhook: Webhook, actor: User | None) -> None:
    """With its log. What waits is not sent."""
    with transaction.atomic():
        if Webhook.objects.filter(pk=webhook.pk).delete()[0]:
            record(actor, "webhook.delete", _subject(webhook), namespace=webhook.namespace, **_facts(webhook))


def webhooks_clear(namespace: Namespace, actor: User | None) -> int:
    """Delete those of a namespace that is removed. Returns how many there were."""
    found = list(Webhook.objects.filter(namespace=namespace).select_related("namespace"))
    for webhook in found:
        webhook_delete(webhook=webhook, actor=actor)
    return len(found)


def webhook_switch_off(webhook: Webhook, reason: str) -> None:
    """The portal stops sending, and says so to those whose it is. Nothing happens where it is off already."""
    with transaction.atomic():
        if Webhook.objects.filter(pk=webhook.pk, is_active=True).update(is_active=False, off_reason=reason[:300]):
            deliveries_drop(webhook, reason)
            facts = {"active": False, "active_before": True, "reason": reason}
            record(None, "webhook.off", _subject(webhook), namespace=webhook.namespace, **facts)
            publish(WEBHOOK_OFF, webhook.pk, reason=reason, at=timezone.now().isoformat())


def deliveries_drop(webhook: Webhook, reason: str) -> None:
    """What waits is not sent any more; it can be sent again by hand."""
    waiting = Delivery.objects.filter(webhook=webhook, state=State.WAITING)
    waiting.update(state=State.FAILED, due_at=None, problem=reason[:300])


def send_test(*, webhook: Webhook, actor: User) -> Delivery:
    """Have a test message sent, also to a webhook that is switched off. Raises `TooMany`."""
    refuse_often(actor, "webhook tests", TESTS)
    return _ask(webhook, actor, TEST, body_of_test(webhook, timezone.now()), "webhook.test")


def redeliver(*, delivery: Delivery, actor: User) -> Delivery:
    """Have the same message sent once more: with the same event id, as a delivery of its own. Raises `TooMany`."""
    refuse_often(actor, "webhook tests", TESTS)
    return _ask(delivery.webhook, actor, delivery.event, delivery.body, "webhook.redeliver", of=str(delivery.pk))


def _ask(webhook: Webhook, actor: User, event: str, body: dict[str, Any], action: str, **facts: Any) -> Delivery:
    now = timezone.now()
    with transaction.atomic():
        made = Delivery(
            webhook=webhook, event=event, body=body, created_at=now, due_at=now, is_asked_for=True,
            key=f"asked:{new_id()}",
        )  # fmt: skip
        made.save(force_insert=True)
        Webhook.objects.filter(pk=webhook.pk).update(rests_until=None)
        record(actor, action, _subject(webhook), namespace=webhook.namespace, event=event, **facts)
        enqueue(DELIVER_WEBHOOK, webhook.pk)
    return made


def refuse_often(actor: User, what: str, most: int) -> None:
    outcome = take([Taking(Allowance(what, most, _MINUTE), f"user {actor.pk}")])
    if outcome.over is not None:
        raise TooMany(f"You may do this {most} times a minute.", "rate_limited", wait=_MINUTE)


def refuse_full(count: int, what: str) -> None:
    most: int = settings.YARDMASTER_OUTGOING.per_namespace
    if count >= most:
        remedy = "Delete one, or ask an administrator to raise YARDMASTER_WEBHOOKS_PER_NAMESPACE."
        raise Conflict(f"There may be {most} {what}, and there are that many.", "too_many_webhooks", remedy=remedy)


def refuse_address(url: str) -> list[Problem]:
    try:
        target_of(url, settings.YARDMASTER_OUTGOING.policy)
    except SpecRejected as error:
        return list(error.problems)
    return []


def in_order(events: Sequence[str]) -> list[str]:
    """Each once, in the order of the table."""
    return [one for one in EVENTS if one in events]


def _refuse_bad(url: str | None, events: Sequence[str], description: str) -> None:
    found = [] if url is None else refuse_address(url)
    known = ", ".join(EVENTS)
    found += [
        Problem("events", "invalid", "There is no such event.", f"Use some of: {known}.", str(one)[:100])
        for one in events if one not in EVENTS
    ]  # fmt: skip
    if not events:
        found.append(Problem("events", "required", "A webhook needs an event.", "Choose at least one."))
    if len(description) > 200 or "\x00" in description:
        message = "A description is text of at most 200 characters."
        found.append(Problem("description", "too_long", message, "Shorten it."))
    if found:
        raise Invalid(found)


def _subject(webhook: Webhook) -> str:
    return f"webhook:{webhook.pk}"


def _facts(webhook: Webhook) -> dict[str, Any]:
    return {
        "address": webhook.shown, "format": str(webhook.format), "events": list(webhook.events),
        "active": webhook.is_active, "description": webhook.description,
    }  # fmt: skip

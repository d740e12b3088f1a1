"""Send what is due: at least once, one message to a receiver at a time.

A worker takes a webhook by conditional update, sends the oldest message that is due, and records what came of it.
Where it is killed in between, the message is sent again after `ON_THE_WAY`, under the same id. A receiver that fails
rests, so that it costs no more than an attempt in a while, however many messages wait for it; others have theirs
meanwhile. Nothing is sent within a transaction. Not here: what an answer means (`yardmaster.outgoing.retries`).
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from apps.dispatch.leases import Leases
from apps.dispatch.messages import DELIVER_WEBHOOK, enqueue
from apps.errors import DomainError
from apps.webhooks.models import Delivery, Format, State, Webhook
from apps.webhooks.sealed_parts import Parts, parts_of
from apps.webhooks.services import webhook_switch_off
from yardmaster.errors import SpecRejected, YardmasterError
from yardmaster.outgoing.chat import written
from yardmaster.outgoing.posting import Reply, post
from yardmaster.outgoing.retries import TRIED_FOR, Meaning, meaning, next_try, problem_of, rest_until
from yardmaster.outgoing.signing import signature
from yardmaster.outgoing.targets import target_of

log = logging.getLogger(__name__)

ON_THE_WAY = timedelta(minutes=2)
"""Far longer than an attempt takes."""
OF_ONE_OWNER = 2
"""Receivers of one namespace, or one user, that are sent to at once."""
KEPT_FOR, KEPT_MOST = timedelta(days=30), 1_000
AT_ONCE = 200
_LEASES = Leases("busy_with", "busy_until")
Send = Callable[..., Reply]


@dataclass(frozen=True)
class Outcome:
    """What came of one attempt. No reply: none was given, for the reason in `problem`."""

    reply: Reply | None
    problem: str
    took: timedelta


def webhook_deliver(
    webhook_id: uuid.UUID, *, clock: Callable[[], datetime] = timezone.now, send: Send = post
) -> Delivery | None:
    """Send the oldest message that is due to this receiver, unless it rests or another worker sends to it. Returns the
    message. Repeats harmlessly."""
    now, holder = clock(), uuid.uuid4().hex
    free = Webhook.objects.filter(_rested(now), pk=webhook_id)
    webhook = free.first()
    if webhook is None or _owner_is_busy(webhook, now):
        return None
    held = _LEASES.claim(free, holder, now, ON_THE_WAY)
    if held is None:
        return None
    try:
        webhook = held.select_related("namespace").first()
        delivery = None if webhook is None else _next_of(webhook, now)
        if webhook is None or delivery is None:
            return None
        _attempt(webhook, delivery, holder, clock, send)
        return delivery
    finally:
        _LEASES.release(Webhook.objects.filter(pk=webhook_id), holder)
        if _due(clock()).filter(webhook=webhook_id).exists():
            enqueue(DELIVER_WEBHOOK, webhook_id)


def webhooks_sweep(now: datetime) -> None:
    """Wake what is due and was not sent, those first whose last attempt is longest ago; give up what waited for too
    long for a receiver that is away; forget what is old."""
    waiting = Webhook.objects.filter(_rested(now), pk__in=_due(now).values("webhook_id"))
    free = waiting.exclude(busy_until__gt=now).order_by(F("tried_at").asc(nulls_first=True))
    for webhook_id in free.values_list("pk", flat=True)[:AT_ONCE]:
        enqueue(DELIVER_WEBHOOK, webhook_id)
    old = now - TRIED_FOR
    lost = Delivery.objects.filter(state=State.WAITING, created_at__lte=old, webhook__failing_since__lte=old)
    problem = f"Given up: the receiver did not take messages for {TRIED_FOR // timedelta(hours=1)} hours."
    Delivery.objects.filter(pk__in=lost.values("pk")).update(state=State.FAILED, due_at=None, problem=problem)
    locked = Delivery.objects.filter(state=State.WAITING, webhook__user__is_active=False)
    problem = "The user was locked."
    Delivery.objects.filter(pk__in=locked.values("pk")).update(state=State.FAILED, due_at=None, problem=problem)
    _forget(now)


def _forget(now: datetime) -> None:
    over = Delivery.objects.exclude(state=State.WAITING)
    over.filter(pk__in=list(over.filter(created_at__lte=now - KEPT_FOR).values_list("pk", flat=True)[:1_000])).delete()
    busy = Webhook.objects.filter(tried_at__gte=now - timedelta(hours=1)).order_by("-tried_at")[:AT_ONCE]
    for webhook_id in busy.values_list("pk", flat=True):
        of_it = over.filter(webhook=webhook_id).order_by("-pk")
        last = of_it.values_list("pk", flat=True)[KEPT_MOST : KEPT_MOST + 1].first()
        if last is not None:
            of_it.filter(pk__lte=last).delete()


def _rested(now: datetime) -> Q:
    return Q(rests_until__isnull=True) | Q(rests_until__lte=now)


def _due(now: datetime) -> QuerySet[Delivery]:
    sent = Q(webhook__is_active=True) | Q(is_asked_for=True)
    may = Q(webhook__user__isnull=True) | Q(webhook__user__is_active=True)
    return Delivery.objects.filter(sent, may, due_at__lte=now, state=State.WAITING)


def _next_of(webhook: Webhook, now: datetime) -> Delivery | None:
    """The oldest that is due; one that a person waits for comes first."""
    return _due(now).filter(webhook=webhook).order_by("-is_asked_for", "created_at", "pk").first()


def _owner_is_busy(webhook: Webhook, now: datetime) -> bool:
    same = Webhook.objects.filter(namespace=webhook.namespace_id, user=webhook.user_id, busy_until__gt=now)
    return same.exclude(pk=webhook.pk).count() >= OF_ONE_OWNER


def _attempt(webhook: Webhook, delivery: Delivery, holder: str, clock: Callable[[], datetime], send: Send) -> None:
    """One try: counted before anything is sent, recorded while the webhook is still held."""
    delivery.tries += 1
    now = clock()
    Delivery.objects.filter(pk=delivery.pk).update(tries=delivery.tries, tried_at=now)
    begun = time.monotonic()
    reply, problem = None, ""
    try:
        reply = _sent(webhook, delivery, now, send)
    except SpecRejected as error:  # the operator's rules have changed since
        problem = " ".join(f"{one.message} {one.remedy}" for one in error.problems)
    except (YardmasterError, DomainError) as error:
        problem = str(error)
    except Exception:  # the top of the task: a message that cannot be written must neither be lost nor unseen
        log.exception("The delivery %s could not be sent", delivery.pk)
        problem = "The portal could not create this message. See its log."
    outcome = Outcome(reply, problem, timedelta(seconds=time.monotonic() - begun))
    _record(webhook, delivery, holder, outcome, clock())


def _sent(webhook: Webhook, delivery: Delivery, now: datetime, send: Send) -> Reply:
    parts, policy = parts_of(webhook), settings.YARDMASTER_OUTGOING.policy
    body = json.dumps(written(webhook.format, delivery.body), ensure_ascii=False, separators=(",", ":")).encode()
    return send(target_of(parts.url, policy), body, headers_of(webhook, delivery, parts, body, now), policy)


def headers_of(webhook: Webhook, delivery: Delivery, parts: Parts, body: bytes, now: datetime) -> dict[str, str]:
    """What stands above the message. Chats get no more than they need."""
    headers = {"Content-Type": "application/json", "User-Agent": "Yardmaster-Webhook/1", "Connection": "close"}
    if webhook.format != Format.JSON:
        return headers
    timestamp = str(int(now.timestamp()))
    return headers | {
        "Yardmaster-Event": delivery.event,
        "Yardmaster-Delivery": str(delivery.pk),
        "Yardmaster-Timestamp": timestamp,
        "Yardmaster-Signature": signature(parts.keys(now), timestamp, body),
    }


def _record(webhook: Webhook, delivery: Delivery, holder: str, outcome: Outcome, now: datetime) -> None:
    """What came of it. Where another worker has taken the webhook since, it alone writes."""
    reply = outcome.reply
    means = meaning(reply.status) if reply else Meaning.AGAIN
    is_done = means is Meaning.DONE
    asked = reply.retry_after if reply and reply.status in (429, 503) else ""
    failures = 0 if is_done else webhook.failures + 1
    since = None if is_done else webhook.failing_since or now
    rows = _LEASES.held(Webhook.objects.filter(pk=webhook.pk), holder)
    rests = rest_until(failures, outcome.took, now, asked)
    if not rows.update(failures=failures, failing_since=since, rests_until=rests, tried_at=now):
        return
    retry = None if is_done or means is Meaning.GONE else next_try(delivery.created_at, delivery.tries, now, asked)
    delivery.state = State.DELIVERED if is_done else State.WAITING if retry else State.FAILED
    delivery.due_at, delivery.tried_at, delivery.took_ms = retry, now, int(outcome.took.total_seconds() * 1000)
    delivery.status, delivery.excerpt = (reply.status, reply.excerpt) if reply else (None, "")
    delivery.problem = ("" if is_done else outcome.problem or problem_of(reply.status if reply else 0))[:300]
    delivery.save(update_fields=["state", "due_at", "tried_at", "took_ms", "status", "excerpt", "problem"])
    if means is Meaning.GONE:
        webhook_switch_off(webhook, "The receiver answered 410: it accepts no more messages.")
    elif since and now - since >= settings.YARDMASTER_OUTGOING.failing_for:
        days = settings.YARDMASTER_OUTGOING.failing_for.days
        webhook_switch_off(webhook, f"The receiver has failed for {days} days. Last: {delivery.problem}")

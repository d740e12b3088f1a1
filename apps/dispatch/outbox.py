"""Events between apps: what happens in one is read by another that the first knows nothing of.

An event is a row in the transaction of what it tells of: what is rolled back never happened. A message wakes its reader
at once; a sweep finds what a lost message left. An event that cannot be handled is tried again later each time, so that
any number of them leaves room for those that came after.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.dispatch.messages import DELIVER_EVENTS, enqueue
from apps.dispatch.models import OutboxEvent
from yardmaster.backoff import delay
from yardmaster.ids import new_id

log = logging.getLogger(__name__)

ATTEMPT_DECIDED = "attempt.decided"
"""An attempt of the job `subject` has its verdict. Facts: `attempt` (its number), `phase`, `at`."""
BUDGET_REACHED = "budget.reached"
"""The namespace `subject` has reached a level of its budget. Facts: `month` (`2026-11`), `level` (percent), `what` (in
words), `spent` (nothing more starts)."""
MANAGER_LEFT = "manager.left"
"""A manager of the namespace `subject` is none any more, or cannot sign in. Facts: `user` (the id)."""
HAPPENED = "happened"
"""Something that people or other programs may want to hear of; `happened` writes it. `subject` is what it is about.
Facts: `event`, `id` (the event's own), `at`, `namespace`, `kind` (of the subject), `about` (what is told of it)."""
AT_ONCE = 200
FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=10), timedelta(hours=1)


def publish(topic: str, subject: uuid.UUID, **facts: Any) -> None:
    """Write the event, in the running transaction. `facts` must be JSON."""
    OutboxEvent.objects.create(topic=topic, subject=subject, facts=facts)
    enqueue(DELIVER_EVENTS, topic)


def happened(
    event: str, subject: uuid.UUID, namespace_id: uuid.UUID, kind: str, at: datetime | None = None, **about: Any
) -> None:
    """Write that something has happened that may be sent out of the portal, in the running transaction. `about` is
    JSON, and may be told to everyone whom the namespace's managers choose: never a secret, never a line of a log.

    No message wakes its reader, which looks every other second: a thousand launches are not a thousand messages."""
    facts = {
        "event": event, "id": str(new_id()), "at": (at or timezone.now()).isoformat(),
        "namespace": str(namespace_id), "kind": kind, "about": about,
    }  # fmt: skip
    OutboxEvent.objects.create(topic=HAPPENED, subject=subject, facts=facts)


def deliver(topic: str, handle: Callable[[OutboxEvent], None], *, clock: Callable[[], datetime] = timezone.now) -> int:
    """Give the oldest events of the topic that are due to `handle`, each once, and return how many. `handle` runs in
    the transaction that deletes the event: where it fails, the event stays for a later try and the next ones are
    handled all the same."""
    handled = 0
    due = Q(next_try_at__isnull=True) | Q(next_try_at__lte=clock())
    for event in OutboxEvent.objects.filter(due, topic=topic).order_by("pk")[:AT_ONCE]:
        try:
            handled += _deliver_one(event, handle)
        except Exception:  # one event's bug must not hold up the others
            log.exception("The event %s could not be handled", event)
            _put_off(event, clock())
    return handled


def _deliver_one(event: OutboxEvent, handle: Callable[[OutboxEvent], None]) -> bool:
    with transaction.atomic():
        deleted, _ = OutboxEvent.objects.filter(pk=event.pk).delete()
        if deleted:  # else another worker was first
            handle(event)
    return bool(deleted)


def _put_off(event: OutboxEvent, now: datetime) -> None:
    """Unless another worker, which failed as well, has done so."""
    pause = delay(event.failures, FIRST_PAUSE, LONGEST_PAUSE)
    failed = OutboxEvent.objects.filter(pk=event.pk, failures=event.failures)
    failed.update(failures=event.failures + 1, next_try_at=now + pause)

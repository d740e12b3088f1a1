"""Events between apps: what happens in one is read by another that the first knows nothing of.

An event is a row in the transaction of what it tells of: what is rolled back never happened. A message wakes its reader
at once; a sweep finds what a lost message left.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from typing import Any

from django.db import transaction

from apps.dispatch.messages import DELIVER_EVENTS, enqueue
from apps.dispatch.models import OutboxEvent

log = logging.getLogger(__name__)

ATTEMPT_DECIDED = "attempt.decided"
"""An attempt of the job `subject` has its verdict. Facts: `attempt` (its number), `phase`, `at`."""
AT_ONCE = 200


def publish(topic: str, subject: uuid.UUID, **facts: Any) -> None:
    """Write the event, in the running transaction. `facts` must be JSON."""
    OutboxEvent.objects.create(topic=topic, subject=subject, facts=facts)
    enqueue(DELIVER_EVENTS, topic)


def deliver(topic: str, handle: Callable[[OutboxEvent], None]) -> int:
    """Give the oldest events of the topic to `handle`, each once, and return how many. `handle` runs in the transaction
    that deletes the event: where it fails, the event stays and the next ones are handled all the same."""
    handled = 0
    for event in OutboxEvent.objects.filter(topic=topic).order_by("pk")[:AT_ONCE]:
        try:
            handled += _deliver_one(event, handle)
        except Exception:  # one event's bug must not hold up the others
            log.exception("The event %s could not be handled", event)
    return handled


def _deliver_one(event: OutboxEvent, handle: Callable[[OutboxEvent], None]) -> bool:
    with transaction.atomic():
        deleted, _ = OutboxEvent.objects.filter(pk=event.pk).delete()
        if deleted:  # else another worker was first
            handle(event)
    return bool(deleted)

"""Who hears of what has happened: the webhooks of its namespace, and the people who have chosen to be told.

Both read one event in one transaction: it is told to all of them, or stays for a later try.
"""

from __future__ import annotations

from apps.dispatch.models import OutboxEvent
from apps.dispatch.outbox import AT_ONCE, HAPPENED, deliver
from apps.notifications.preempted import KIND, preempted_tell
from apps.webhooks.fanout import event_fan_out

ROUNDS = 10


def happenings_note() -> int:
    """Write what is to be sent of each event since the last call, of very many the oldest. Returns how many there
    were; may be repeated."""
    count = 0
    for _ in range(ROUNDS):
        done = deliver(HAPPENED, _note)
        count += done
        if done < AT_ONCE:
            break
    return count


def _note(event: OutboxEvent) -> None:
    event_fan_out(event)
    if event.facts["event"] == KIND:
        preempted_tell(event)

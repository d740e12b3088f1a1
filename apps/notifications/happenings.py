"""Who hears of what has happened: the webhooks of its namespace, and the people who have chosen to be told (that a job
of theirs gave up its place to another).

Both read one event in one transaction: it is told to all of them, or stays for a later try.
"""

from __future__ import annotations

from datetime import datetime

from apps.dispatch.models import OutboxEvent
from apps.dispatch.outbox import AT_ONCE, HAPPENED, deliver
from apps.jobs.models import Job
from apps.notifications.letter import LONGEST_LINE, LONGEST_NAME, one_line
from apps.notifications.telling import announce
from apps.webhooks.fanout import address_of, event_fan_out

ROUNDS = 10
PREEMPTED = "job.preempted"


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
    if event.facts["event"] == PREEMPTED:
        _preempted_tell(event)


def _preempted_tell(event: OutboxEvent) -> None:
    """Tell the owner, as they have chosen. In the transaction that takes the event; may be repeated."""
    job = Job.objects.for_lists().select_related("namespace", "owner").filter(pk=event.subject).first()
    if job is None or job.owner is None:
        return
    about, name = event.facts["about"], one_line(job.name, LONGEST_NAME)
    url = address_of("job", job.pk)
    why = one_line(str(about.get("message", "")), LONGEST_LINE)
    announce(
        job.owner, PREEMPTED, job.namespace, key=f"{PREEMPTED} {event.facts['id']}",
        subject=f"Job {name} was preempted", text=f"Job {name}\n{url}\n\n{why}\n", url=url,
        now=datetime.fromisoformat(event.facts["at"]),
    )  # fmt: skip

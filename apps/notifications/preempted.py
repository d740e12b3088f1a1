"""The notification that a job gave up its place to another. Not here: how its owner is told (`telling`)."""

from __future__ import annotations

from datetime import datetime

from apps.dispatch.models import OutboxEvent
from apps.jobs.models import Job
from apps.notifications.letter import LONGEST_LINE, LONGEST_NAME, one_line
from apps.notifications.telling import announce
from apps.webhooks.fanout import address_of

KIND = "job.preempted"


def preempted_tell(event: OutboxEvent) -> None:
    """Tell the owner, as they have chosen. In the transaction that takes the event; may be repeated."""
    job = Job.objects.for_lists().select_related("namespace", "owner").filter(pk=event.subject).first()
    if job is None or job.owner is None:
        return
    about, name = event.facts["about"], one_line(job.name, LONGEST_NAME)
    url = address_of("job", job.pk)
    why = one_line(str(about.get("message", "")), LONGEST_LINE)
    announce(
        job.owner, KIND, job.namespace, key=f"{KIND} {event.facts['id']}", subject=f"Job {name} gave up its place",
        text=f"Job {name}\n{url}\n\n{why}\n", url=url, now=datetime.fromisoformat(event.facts["at"]),
    )  # fmt: skip

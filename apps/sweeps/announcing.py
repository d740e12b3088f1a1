"""The one mail about a sweep: it has ended. Its jobs send none. Not here: sending (`apps.notifications.worker`)."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.urls import reverse

from apps.dispatch.messages import SEND_ANNOUNCEMENT, enqueue
from apps.notifications.letter import LONGEST_LINE, LONGEST_NAME, one_line
from apps.notifications.models import Announcement, Event
from apps.notifications.services import choices_of
from apps.sweeps.models import Sweep
from apps.sweeps.selectors import standing
from yardmaster.ids import new_id
from yardmaster.sweeps.space import text_of


def end_announce(sweep: Sweep, now: datetime) -> None:
    """Write a mail to its owner, if they want to hear of jobs that end so; in the running transaction."""
    owner = sweep.owner
    if owner is None or not owner.is_active or not owner.email:
        return
    found = standing(sweep)
    counts = found.counts
    event = Event.SUCCEEDED if counts.get("succeeded") else Event.FAILED if counts.get("failed") else Event.STOPPED
    if not choices_of(owner).wants(event):
        return
    name = one_line(sweep.name, LONGEST_NAME)
    said = ", ".join(f"{count} {state.replace('_', ' ')}" for state, count in sorted(counts.items()))
    lines = [f"{found.ended} of {sweep.count} trials have run: {said}."]
    if sweep.reason:
        lines.append(one_line(sweep.reason, LONGEST_LINE))
    if found.best is not None and found.metric is not None:
        values = ", ".join(f"{key} = {text_of(value)}" for key, value in found.best.values.items())
        best = f"The best {found.metric.tag} is {found.best.best:.5g}, of trial {found.best.number}: {values}."
        lines.append(one_line(best, LONGEST_LINE))
    page = f"{settings.PUBLIC_URL}{reverse('sweep_page', args=[sweep.pk])}"
    body = "\n\n".join([f"The sweep {name} has ended.\n{page}", *lines])
    made = Announcement(
        id=new_id(), user=owner, key=f"sweep.end {sweep.pk}", subject=f"[Yardmaster] Sweep {name} has ended",
        body=f"{body}\n", created_at=now, due_at=now,
    )  # fmt: skip
    Announcement.objects.bulk_create([made], ignore_conflicts=True)
    enqueue(SEND_ANNOUNCEMENT, made.pk)

"""The one notification about a sweep: it has ended. Its jobs send none. Not here: how (`notifications.telling`)."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.urls import reverse

from apps.notifications.letter import LONGEST_LINE, LONGEST_NAME, one_line
from apps.notifications.telling import announce
from apps.sweeps.models import Sweep
from apps.sweeps.selectors import standing
from yardmaster.sweeps.space import text_of


def end_announce(sweep: Sweep, now: datetime) -> None:
    """Tell its owner, as they have chosen; in the running transaction."""
    owner = sweep.owner
    if owner is None:
        return
    found = standing(sweep)
    counts = found.counts
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
    announce(
        owner, "sweep.ended", sweep.namespace, key=f"sweep.ended {sweep.pk}", subject=f"Sweep {name} has ended",
        text=f"{body}\n", url=page, now=now,
    )  # fmt: skip

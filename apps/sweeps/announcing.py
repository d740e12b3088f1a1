"""That a sweep has ended: the one notification about it, as its jobs send none, and the event for webhooks.

Not here: how people are told (`notifications.telling`), and which webhooks hear of it (`webhooks.fanout`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.urls import reverse

from apps.accounts.models import User
from apps.dispatch.outbox import happened
from apps.notifications.letter import LONGEST_LINE, LONGEST_NAME, one_line
from apps.notifications.telling import announce
from apps.sweeps.models import Sweep
from apps.sweeps.selectors import Standing, standing
from yardmaster.sweeps.space import text_of


def end_announce(sweep: Sweep, now: datetime) -> None:
    """Tell its owner, as they have chosen, and the webhooks of its namespace; in the running transaction."""
    found, owner = standing(sweep), sweep.owner
    about: dict[str, Any] = {"name": sweep.name, "owner": str(owner.pk) if owner else None, "trials": sweep.count}
    about |= {"counts": found.counts, "best": _best(found), "message": sweep.reason}
    happened("sweep.ended", sweep.pk, sweep.namespace_id, "sweep", now, **about)
    if owner is not None:
        _owner_tell(owner, sweep, found, now)


def _best(found: Standing) -> dict[str, Any] | None:
    """Its best trial, as a webhook says it; None: no trial has a value, or there is no metric."""
    if found.best is None or found.metric is None:
        return None
    job = str(found.best.job_id) if found.best.job_id else None
    return {
        "trial": found.best.number, "metric": found.metric.tag, "value": found.best.best, "step": found.best.best_step,
        "parameters": found.best.values, "job": job,
    }  # fmt: skip


def _owner_tell(owner: User, sweep: Sweep, found: Standing, now: datetime) -> None:
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

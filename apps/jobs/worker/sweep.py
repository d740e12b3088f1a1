"""Heal what events lose: wake every job whose time to be looked at has come, and have due queues decided."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from apps.dispatch.messages import RECONCILE, enqueue_now
from apps.jobs.models import Job
from apps.jobs.state.queue import sweep_queues
from apps.jobs.worker.quiet import quiet_put_off

log = logging.getLogger(__name__)

AT_ONCE = 500
AGAIN_AFTER = timedelta(seconds=10)
"""A job that was woken and not looked at is woken again after this long: a queue that is behind must not grow."""


def sweep(now: datetime) -> int:
    """Wake the jobs that are due, the longest overdue first, but for those that run and to which nothing happened; and
    send for passes over the queues that are due. Returns how many jobs were."""
    sweep_queues(now)
    due = Job.objects.filter(next_look_at__lte=now)
    ids = list(due.order_by("next_look_at").values_list("pk", flat=True)[:AT_ONCE])
    claimed = now + AGAIN_AFTER
    due.filter(pk__in=ids).update(next_look_at=claimed)
    try:
        quiet = quiet_put_off(ids, claimed, now)
    except Exception:  # only a shortcut: without it every job is looked at
        log.exception("Quiet jobs could not be put off")
        quiet = set()
    for job_id in ids:
        if job_id not in quiet:
            enqueue_now(RECONCILE, job_id)
    return len(ids)

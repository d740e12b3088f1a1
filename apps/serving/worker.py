"""Stop services that no one uses, and see which of them have begun to answer: the time without requests counts from
there. Called by Celery's workers."""

from __future__ import annotations

import logging
import time
from datetime import datetime

from apps.jobs.services import job_stop_unused
from apps.serving.selectors import jobs_without_service, services_running
from apps.serving.services import stop_where_idle
from apps.serving.state import situation_of

log = logging.getLogger(__name__)

TIME_TO_ASK = 5.0
"""Seconds of a sweep in which ports are asked: each takes one at most, and those that were not asked have their turn in
the next sweeps."""


def services_sweep(now: datetime) -> int:
    """Stop those that are idle, and jobs of starts that were interrupted. Returns how many."""
    stopped = 0
    asks_until = time.monotonic() + TIME_TO_ASK
    for service in services_running().order_by("?").iterator(chunk_size=200):
        try:
            situation_of(service, now, ask=time.monotonic() < asks_until)
            stopped += stop_where_idle(service, now)
        except Exception:  # one service must not keep the others running
            log.exception("Whether service %s is idle could not be decided", service.pk)
    for job in jobs_without_service(now):
        stopped += job_stop_unused(job, "Stopped: its start was interrupted.")
    return stopped

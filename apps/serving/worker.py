"""Stop services that no one uses. Called by Celery's workers."""

from __future__ import annotations

import logging
from datetime import datetime

from apps.jobs.services import job_stop_unused
from apps.serving.selectors import jobs_without_service, services_running
from apps.serving.services import stop_where_idle

log = logging.getLogger(__name__)


def services_sweep(now: datetime) -> int:
    """Stop those that are idle, and jobs of starts that were interrupted. Returns how many."""
    stopped = 0
    for service in services_running().iterator(chunk_size=200):
        try:
            stopped += stop_where_idle(service, now)
        except Exception:  # one service must not keep the others running
            log.exception("Whether service %s is idle could not be decided", service.pk)
    for job in jobs_without_service(now):
        stopped += job_stop_unused(job, "Stopped: its start was interrupted.")
    return stopped

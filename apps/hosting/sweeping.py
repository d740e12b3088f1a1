"""Stop what no one uses, and see which rows have begun to answer: the time without use counts from there. Called by
the worker modules of the apps above."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from apps.hosting.models import Hosted
from apps.hosting.selectors import jobs_without_row, running
from apps.hosting.services import stop_where_idle
from apps.hosting.state import situation_of
from apps.jobs.services import job_stop_unused

log = logging.getLogger(__name__)

TIME_TO_ASK = 5.0
"""Seconds of a sweep in which ports are asked: each takes one at most, and those that were not asked have their turn in
the next sweeps."""


H = TypeVar("H", bound=Hosted)


def _may_be_decided(row: Hosted, now: datetime, is_time: bool) -> bool:
    """All uses of it are requests to the portal."""
    return True


def sweep(
    kind: type[H], now: datetime, *, may_be_decided: Callable[[H, datetime, bool], bool] = _may_be_decided
) -> int:
    """Stop those of this kind that are idle, and jobs of starts that were interrupted. Returns how many.

    `may_be_decided(row, now, is_time)` may note uses that the portal does not see, and says whether all are known.
    Without `is_time` it must ask no port.
    """
    stopped = 0
    asks_until = time.monotonic() + TIME_TO_ASK
    for row in running(kind).order_by("?").iterator(chunk_size=200):
        try:
            is_time = time.monotonic() < asks_until
            situation_of(row, now, ask=is_time)
            stopped += may_be_decided(row, now, is_time) and stop_where_idle(row, now)
        except Exception:  # one must not keep the others running
            log.exception("Whether %s %s is idle could not be decided", row.NOUN, row.pk)
    for job in jobs_without_row(kind, now):
        stopped += job_stop_unused(job, "Stopped: its start was interrupted.")
    return stopped

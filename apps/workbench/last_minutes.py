"""What the pages of a session say before it stops. Pure, and so apart from `admission`, which asks tables."""

from __future__ import annotations

from datetime import datetime

from apps.hosting.state import Situation
from apps.workbench.proxy.contract import Notice
from yardmaster.quantity import format_duration

_STEP, _LONG, _LONG_STEP = 10, 150, 60
"""Seconds by which the time that is left is rounded, and from where on to minutes."""


def notice_of(now: Situation, at: datetime, is_personal: bool, page: str) -> Notice | None:
    """None while it does not stop soon. `page`: where it is extended or restarted."""
    if not now.stops_soon or now.stops_at is None:
        return None
    left = max(0, int((now.stops_at - at).total_seconds()))
    left -= left % (_LONG_STEP if left >= _LONG else _STEP)
    stops = f"This session stops in {format_duration(left)}" if left else "This session stops now"
    ends = " Kernels and terminals then end; saved files are kept." if is_personal else ""
    if now.stops_anyway:
        return Notice(
            f"{stops}, even if it is in use: this is the longest that a session may run.{ends}", page, "Restart"
        )
    return Notice(f"{stops} if it is not used.{ends}", page, "Extend")

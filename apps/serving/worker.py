"""Stop services that no one uses. Called by Celery's workers."""

from __future__ import annotations

from datetime import datetime

from apps.hosting.sweeping import sweep
from apps.serving.models import Service


def services_sweep(now: datetime) -> int:
    """Stop those that are idle, and jobs of starts that were interrupted. Returns how many."""
    return sweep(Service, now)

"""What beat sends, and how often. Each entry names a task in `celery_worker.tasks`."""

from __future__ import annotations

from typing import Any

SWEEP_EVERY = 2.0

SCHEDULE: dict[str, dict[str, Any]] = {
    # A sweep that no worker took in time is replaced by the next one.
    "jobs": {"task": "yardmaster.sweep", "schedule": SWEEP_EVERY, "options": {"expires": SWEEP_EVERY * 5}},
    "namespaces": {"task": "yardmaster.sweep_namespaces", "schedule": 5.0, "options": {"expires": 5.0}},
    "probes": {"task": "yardmaster.probe_engines", "schedule": 5.0, "options": {"expires": 5.0}},
    "uploads": {"task": "yardmaster.sweep_uploads", "schedule": 30.0, "options": {"expires": 30.0}},
    "results": {"task": "yardmaster.settle_results", "schedule": 30.0, "options": {"expires": 30.0}},
    "notices": {"task": "yardmaster.sweep_notices", "schedule": 30.0, "options": {"expires": 30.0}},
    "browsers": {"task": "yardmaster.clean_browsers", "schedule": 3600.0, "options": {"expires": 3600.0}},
    "stores": {"task": "yardmaster.clean_stores", "schedule": 3600.0, "options": {"expires": 3600.0}},
    "idempotency": {"task": "yardmaster.clean_idempotency", "schedule": 3600.0, "options": {"expires": 3600.0}},
}

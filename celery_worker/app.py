"""The Celery application: `celery -A celery_worker.app worker` and `… beat`. Who keeps it going; it decides nothing.

Messages are hints that carry an id, so results are thrown away, a message is acknowledged only when its work is done,
and a lost one is replaced by the sweep.
"""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

from celery import Celery
from celery.signals import beat_init, worker_ready
from django.conf import settings

from apps.api.readiness import keep_reporting, report_ready
from celery_worker.broker_loss import survive_broker_loss
from celery_worker.schedule import SCHEDULE

SAME_MESSAGE_AGAIN = 600
"""Seconds after which the broker gives an unacknowledged message to another worker. Far beyond a look at a job: the
sweep is what heals, and it is faster. A large upload may take longer; its lease sends the second worker away."""

survive_broker_loss()
app = Celery("yardmaster", broker=settings.CELERY_BROKER_URL, include=["celery_worker.tasks"])
app.conf.update(
    beat_schedule=SCHEDULE,
    broker_connection_retry_on_startup=True,
    broker_transport_options={
        "visibility_timeout": SAME_MESSAGE_AGAIN,
        "socket_connect_timeout": 5,
        "socket_keepalive": True,
        "health_check_interval": 30,
    },
    enable_utc=True,
    task_acks_late=True,
    task_ignore_result=True,
    task_reject_on_worker_lost=True,
    task_time_limit=120,  # where workers are processes; putting an upload together has its own
    timezone="UTC",
    worker_cancel_long_running_tasks_on_connection_loss=False,
    worker_hijack_root_logger=False,
    worker_prefetch_multiplier=1,
)


def _is_up(name: str) -> None:
    report_ready(name)
    keep_reporting(name)


worker_ready.connect(lambda **_: _is_up("worker"), weak=False)
beat_init.connect(lambda **_: _is_up("beat"), weak=False)

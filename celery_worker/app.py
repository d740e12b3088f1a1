"""The Celery application: `celery -A celery_worker.app worker` and `… beat`. Who keeps it going; it decides nothing.

Messages are hints that carry an id, so results are thrown away, a message is acknowledged only when its work is done,
and a lost one is replaced by the sweep.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

from celery import Celery
from celery.signals import beat_init, task_postrun, task_prerun, worker_ready
from django.conf import settings
from django.db import close_old_connections
from kombu.transport import redis

from apps.api.readiness import keep_reporting, report_ready
from apps.audit.acting import task_note

SAME_MESSAGE_AGAIN = 600
"""Seconds after which the broker gives an unacknowledged message to another worker. Far beyond a look at a job: the
sweep is what heals, and it is faster. A large upload may take longer; its lease sends the second worker away."""

SWEEP_EVERY = 2.0

SCHEDULE: dict[str, dict[str, Any]] = {
    # A sweep that no worker took in time is replaced by the next one.
    "jobs": {"task": "yardmaster.sweep", "schedule": SWEEP_EVERY, "options": {"expires": SWEEP_EVERY * 5}},
    "namespaces": {"task": "yardmaster.sweep_namespaces", "schedule": 5.0, "options": {"expires": 5.0}},
    "quotas": {"task": "yardmaster.sweep_quotas", "schedule": 2.0, "options": {"expires": 10.0}},
    "probes": {"task": "yardmaster.probe_engines", "schedule": 5.0, "options": {"expires": 5.0}},
    "engines": {"task": "yardmaster.look_at_engines", "schedule": 15.0, "options": {"expires": 15.0}},
    "uploads": {"task": "yardmaster.sweep_uploads", "schedule": 30.0, "options": {"expires": 30.0}},
    "results": {"task": "yardmaster.settle_results", "schedule": 30.0, "options": {"expires": 30.0}},
    "models": {"task": "yardmaster.sweep_models", "schedule": 60.0, "options": {"expires": 60.0}},
    "services": {"task": "yardmaster.sweep_services", "schedule": 10.0, "options": {"expires": 10.0}},
    "sessions": {"task": "yardmaster.sweep_sessions", "schedule": 5.0, "options": {"expires": 5.0}},
    "homes": {"task": "yardmaster.sweep_homes", "schedule": 15.0, "options": {"expires": 15.0}},
    "notices": {"task": "yardmaster.sweep_notices", "schedule": 30.0, "options": {"expires": 30.0}},
    "usage": {"task": "yardmaster.sweep_usage", "schedule": 60.0, "options": {"expires": 60.0}},
    "happenings": {"task": "yardmaster.note_happenings", "schedule": 2.0, "options": {"expires": 10.0}},
    "sweeps": {"task": "yardmaster.look_at_sweeps", "schedule": 3.0, "options": {"expires": 10.0}},
    "webhooks": {"task": "yardmaster.sweep_webhooks", "schedule": 10.0, "options": {"expires": 10.0}},
    "schedules": {"task": "yardmaster.sweep_schedules", "schedule": 10.0, "options": {"expires": 10.0}},
    "browsers": {"task": "yardmaster.clean_browsers", "schedule": 3600.0, "options": {"expires": 3600.0}},
    "stores": {"task": "yardmaster.clean_stores", "schedule": 3600.0, "options": {"expires": 3600.0}},
    "retention": {"task": "yardmaster.remove_old", "schedule": 300.0, "options": {"expires": 300.0}},
    "idempotency": {"task": "yardmaster.clean_idempotency", "schedule": 3600.0, "options": {"expires": 3600.0}},
}
"""What beat sends, and how often. Each entry names a task in `celery_worker.tasks` or `celery_worker.periodic`."""


class LossProofQoS(redis.QoS):
    """Speaks to the broker as ever, as long as there is a connection to do it through.

    When the connection is lost, kombu closes it, and only then wants to acknowledge through it what is still being
    worked on, or to give it back; either ends the worker with an AttributeError. Nothing is lost by not trying: the
    broker has these messages on its own list or was restarted without any, and the sweep replaces what is missing.
    """

    def ack(self, delivery_tag: str) -> None:
        if not self._is_cut_off:
            super().ack(delivery_tag)  # type: ignore[no-untyped-call]

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        if not self._is_cut_off:
            super().reject(delivery_tag, requeue)  # type: ignore[no-untyped-call]

    def restore_unacked_once(self, stderr: Any = None) -> None:
        if self._is_cut_off:
            self._on_collect.cancel()
        else:
            super().restore_unacked_once(stderr)  # type: ignore[no-untyped-call]

    @property
    def _is_cut_off(self) -> bool:
        connection = self.channel.connection
        return connection is None or connection.client is None


def survive_broker_loss() -> None:
    """Have every connection of this process do so."""
    redis.Channel.QoS = LossProofQoS


survive_broker_loss()
app = Celery("yardmaster", broker=settings.CELERY_BROKER_URL, include=["celery_worker.tasks", "celery_worker.periodic"])
app.conf.update(
    # Celery's own rule closes every connection around every task: a quarter of an idle worker's time. Django's rule
    # (`CONN_MAX_AGE`, a look at its health) is applied below instead.
    CELERY_DB_REUSE_MAX=sys.maxsize,
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


def end_at_the_first_signal() -> None:
    """Let beat hear of one signal to end, and of no further one.

    Celery's handler takes a lock that is not reentrant: a second signal that interrupts it waits for ever. Several come
    when `make up` is killed: the kernel sends one for each of its threads that had to look after beat.
    """
    ending: list[int] = []

    def once(handle: Callable[[int, FrameType | None], Any]) -> Callable[[int, FrameType | None], None]:
        def first(number: int, frame: FrameType | None) -> None:
            if not ending:
                ending.append(number)
                handle(number, frame)

        return first

    for number in (signal.SIGTERM, signal.SIGINT):
        installed = signal.getsignal(number)
        if callable(installed):
            signal.signal(number, once(installed))


def _beat_is_up() -> None:
    end_at_the_first_signal()
    _is_up("beat")


for around_a_task in (task_prerun, task_postrun):
    around_a_task.connect(lambda **_: close_old_connections(), weak=False)
task_prerun.connect(lambda task, **_: task_note(str(task.name)), weak=False)
task_postrun.connect(lambda **_: task_note(""), weak=False)
worker_ready.connect(lambda **_: _is_up("worker"), weak=False)
beat_init.connect(lambda **_: _beat_is_up(), weak=False)

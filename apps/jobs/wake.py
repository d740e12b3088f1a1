"""Wake a job: send its id to a Celery worker. The one module beside `celery_worker` that knows Celery.

A message is a hint. Whoever wakes a job has written `next_look_at` before, so that the sweep finds it when the
message is lost: a broken broker costs time, never a job and never the request.
"""

from __future__ import annotations

import logging
import time
import uuid
from functools import cache

from celery import Celery
from celery.exceptions import CeleryError
from django.conf import settings
from django.db import transaction
from kombu.exceptions import KombuError
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

RECONCILE = "yardmaster.reconcile"
PATIENCE = 0.5
"""Seconds that one attempt to reach the broker may take."""
PAUSE = 2.0
"""After a failure nothing is sent for this long: many requests shall not each wait for a broker that is away."""

_silent_until = 0.0


def wake(job_id: uuid.UUID) -> None:
    """Have a worker look at the job soon, once the running transaction is committed. Never raises, never waits long."""
    transaction.on_commit(lambda: _send(job_id))


def _send(job_id: uuid.UUID) -> None:
    global _silent_until
    if time.monotonic() < _silent_until:
        return
    try:
        _sender().send_task(RECONCILE, args=[str(job_id)], ignore_result=True, retry=False, expires=300)
    except (CeleryError, KombuError, RedisError, OSError) as error:
        _silent_until = time.monotonic() + PAUSE
        log.warning("The broker did not take the wake-up of job %s; the sweep will: %s", job_id, error)


@cache
def _sender() -> Celery:
    sender = Celery("yardmaster-wake", broker=settings.CELERY_BROKER_URL, set_as_current=False)
    sender.conf.update(
        broker_connection_timeout=PATIENCE,
        broker_transport_options={
            "socket_timeout": PATIENCE,
            "socket_connect_timeout": PATIENCE,
            "max_retries": 0,
            "retry_on_timeout": False,
        },
        task_ignore_result=True,
    )
    return sender

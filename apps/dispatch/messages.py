"""Messages to Celery workers, each with one id: reconcile a job, decide a queue, finish or remove an upload, read a
model, fetch code, send a mail. The one module beside `celery_worker` that knows Celery.

A message is a hint. Its sender has written before, in the database, when the work is due, so that a sweep finds it when
the message is lost: a broker that is away costs time, never a job and never the request.
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
FINISH_UPLOAD = "yardmaster.finish_upload"
REMOVE_UPLOAD = "yardmaster.remove_upload"
SEND_NOTICE = "yardmaster.send_notice"
SEND_ANNOUNCEMENT = "yardmaster.send_announcement"
KEEP_NAMESPACE = "yardmaster.keep_namespace"
KEEP_HOME = "yardmaster.keep_home"
CARRY_OUT_REMOVAL = "yardmaster.carry_out_removal"
ADMIT = "yardmaster.admit"
READ_MODEL = "yardmaster.read_model"
PUBLISH = "yardmaster.publish"
SCAN_BUCKET = "yardmaster.scan_bucket"
MAKE_DATASET = "yardmaster.make_dataset"
COPY_CONNECTION = "yardmaster.copy_connection"
FETCH_CODE = "yardmaster.fetch_code"
CHECK_CONNECTION = "yardmaster.check_connection"
CHECK_SPARK = "yardmaster.check_spark"
DELIVER_EVENTS = "yardmaster.deliver_events"
DELIVER_WEBHOOK = "yardmaster.deliver_webhook"
TIMEOUT = 0.5
"""Seconds that one attempt to reach the broker may take."""
PAUSE = 2.0
"""After a failure nothing is sent for this long: many requests shall not each wait for a broker that is away."""
EXPIRES = 300
"""Seconds after which a message that no worker took is thrown away: by then the sweep has sent others."""

_paused_until = 0.0


def enqueue(task: str, subject: uuid.UUID | str) -> None:
    """Have a worker run this task on this id soon, once the running transaction is committed. Never raises, never waits
    long."""
    transaction.on_commit(lambda: enqueue_now(task, subject))


def enqueue_now(task: str, subject: uuid.UUID | str) -> None:
    """The same at once, where no transaction is running."""
    global _paused_until
    if time.monotonic() < _paused_until:
        return
    try:
        _celery().send_task(task, args=[str(subject)], ignore_result=True, retry=False, expires=EXPIRES)
    except (CeleryError, KombuError, RedisError, OSError) as error:
        _paused_until = time.monotonic() + PAUSE
        log.warning("The broker took no message (%s of %s); the sweep will send it again: %s", task, subject, error)


@cache
def _celery() -> Celery:
    celery = Celery("yardmaster-wake", broker=settings.CELERY_BROKER_URL, set_as_current=False)
    celery.conf.update(
        broker_connection_timeout=TIMEOUT,
        broker_transport_options={
            "socket_timeout": TIMEOUT,
            "socket_connect_timeout": TIMEOUT,
            "max_retries": 0,
            "retry_on_timeout": False,
        },
        task_ignore_result=True,
    )
    return celery

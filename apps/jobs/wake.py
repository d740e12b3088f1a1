"""Send ids to Celery workers: wake a job, decide a queue, finish an upload, send a mail, look after a namespace. The
one module beside `celery_worker` that knows Celery.

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
FINISH_UPLOAD = "yardmaster.finish_upload"
SEND_NOTICE = "yardmaster.send_notice"
KEEP_NAMESPACE = "yardmaster.keep_namespace"
CARRY_OUT_REMOVAL = "yardmaster.carry_out_removal"
ADMIT = "yardmaster.admit"
PATIENCE = 0.5
"""Seconds that one attempt to reach the broker may take."""
PAUSE = 2.0
"""After a failure nothing is sent for this long: many requests shall not each wait for a broker that is away."""
GOOD_FOR = 300
"""Seconds after which a message that no worker took is thrown away: by then the sweep has sent others."""

_silent_until = 0.0


def wake(job_id: uuid.UUID) -> None:
    """Have a worker look at the job soon, once the running transaction is committed. Never raises, never waits long."""
    transaction.on_commit(lambda: _send(RECONCILE, job_id))


def wake_now(job_id: uuid.UUID) -> None:
    """The same without a transaction, for those who touch no database."""
    _send(RECONCILE, job_id)


def wake_queue(engine: str) -> None:
    """Have a worker decide the engine's queue, without a transaction."""
    _send(ADMIT, engine)


def wake_upload(upload_id: uuid.UUID) -> None:
    """Have a worker put an upload together, likewise."""
    transaction.on_commit(lambda: _send(FINISH_UPLOAD, upload_id))


def wake_notice(notice_id: uuid.UUID) -> None:
    """Have a worker send a mail about a job, likewise."""
    transaction.on_commit(lambda: _send(SEND_NOTICE, notice_id))


def wake_namespace(namespace_id: uuid.UUID) -> None:
    """Have a worker look after what engines keep for a namespace, likewise."""
    transaction.on_commit(lambda: _send(KEEP_NAMESPACE, namespace_id))


def wake_namespace_now(namespace_id: uuid.UUID) -> None:
    """The same without a transaction."""
    _send(KEEP_NAMESPACE, namespace_id)


def wake_removal(removal_id: uuid.UUID) -> None:
    """Have a worker carry on with a removal, likewise."""
    transaction.on_commit(lambda: _send(CARRY_OUT_REMOVAL, removal_id))


def _send(task: str, subject: uuid.UUID | str) -> None:
    global _silent_until
    if time.monotonic() < _silent_until:
        return
    try:
        _sender().send_task(task, args=[str(subject)], ignore_result=True, retry=False, expires=GOOD_FOR)
    except (CeleryError, KombuError, RedisError, OSError) as error:
        _silent_until = time.monotonic() + PAUSE
        log.warning("The broker took no message (%s of %s); the sweep will send it again: %s", task, subject, error)


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

"""Tell open pages that a job has changed. A nudge carries ids, never truth: a lost one costs the reader time only.

Whoever changes a job must not wait for the message server: one thread per process sends for all, and what changes
several times in a moment is told once. Not here: who may listen (`consumers`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
import uuid

from channels.layers import get_channel_layer
from django.db import transaction
from redis.exceptions import RedisError

from apps.jobs.models import Job

log = logging.getLogger(__name__)

PAUSE = 0.05
PATIENCE = 1.0
"""Seconds that one message may take."""
QUIET = 60.0
"""Seconds between two complaints about a message server that is away."""

ALL_JOBS = "jobs.all"
"""The group of administrators who watch every namespace."""


def group_of_job(job_id: uuid.UUID) -> str:
    return f"job.{job_id.hex}"


def group_of_namespace(namespace_id: uuid.UUID) -> str:
    return f"jobs.{namespace_id.hex}"


def job_changed(job: Job) -> None:
    """Nudge whoever watches this job or its namespace, soon after the transaction is committed. Never raises."""
    job_id, namespace_id = job.pk, job.namespace_id
    transaction.on_commit(lambda: _sender.add(job_id, namespace_id))


class Sender:
    """Remembers which jobs have changed, and a thread that says so."""

    def __init__(self) -> None:
        self._changed: dict[uuid.UUID, uuid.UUID] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._complained = -QUIET

    def add(self, job_id: uuid.UUID, namespace_id: uuid.UUID) -> None:
        with self._lock:
            self._changed[job_id] = namespace_id
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="job-nudges", daemon=True)
                self._thread.start()
        self._wake.set()

    def _run(self) -> None:
        with asyncio.Runner() as runner:
            while True:
                self._wake.wait()
                self._wake.clear()
                with self._lock:
                    changed, self._changed = self._changed, {}
                try:
                    runner.run(send(changed))
                except (RedisError, OSError, TimeoutError) as error:
                    self._complain(error)
                except Exception:  # the thread must outlive whatever a message server comes up with
                    log.exception("Open pages were not told that jobs have changed")
                time.sleep(PAUSE)

    def _complain(self, error: Exception) -> None:
        now = time.monotonic()
        if now - self._complained >= QUIET:
            self._complained = now
            log.warning("Open pages are not told of changed jobs, so they see them when they next ask: %s", error)


async def send(changed: dict[uuid.UUID, uuid.UUID]) -> None:
    """Nudge the groups of these jobs (namespace by job)."""
    layer = get_channel_layer()
    if layer is None:
        return
    for job_id, namespace_id in changed.items():
        message = {"type": "job.changed", "id": str(job_id)}
        async with asyncio.timeout(PATIENCE):
            for group in (group_of_job(job_id), group_of_namespace(namespace_id), ALL_JOBS):
                await layer.group_send(group, message)


_sender = Sender()


def _after_fork() -> None:
    global _sender
    _sender = Sender()  # threads do not survive a fork


os.register_at_fork(after_in_child=_after_fork)

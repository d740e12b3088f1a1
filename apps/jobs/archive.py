"""Before an engine forgets an attempt: keep the output that only the engine has, and close the streams.

A task that died before its runner began has sent no line; what its engine kept (a container's output) is then all
there is. Of a task that was killed nobody else says that no more lines will come.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from apps.jobs.models import Job
from apps.logs.nudges import log_moved
from apps.logs.store import log_store
from yardmaster.engines.base import Engine, Outputs
from yardmaster.errors import Unavailable
from yardmaster.logs.keys import JobGone, StreamKey
from yardmaster.spec import TrainingSpec

log = logging.getLogger(__name__)

MOST_LINES = 1_000


def keep_outputs(job: Job, spec: TrainingSpec, engine: Engine) -> None:
    """Fill the empty streams of the attempt from the engine and close all of them. Repeating it changes nothing.

    A log store that takes nothing (a full disk) costs these lines, and is logged: quota must not wait for it.
    """
    try:
        for role, index in spec.tasks():
            stream = StreamKey(job.pk, job.attempt, role, index)
            lines = log_store().next_line(stream)
            if lines == 0 and isinstance(engine, Outputs):
                lines = _keep(stream, engine.tail(job.key, role, index, MOST_LINES))
            log_store().mark_end(stream, lines)
            log_moved(job.pk, role, index, lines)
    except (Unavailable, JobGone) as error:
        log.error("The last output of job %s could not be kept: %s", job.pk, error)


def _keep(stream: StreamKey, lines: Iterable[str]) -> int:
    data = b"".join(line.rstrip("\n").encode(errors="replace") + b"\n" for line in lines)
    return log_store().append(stream, 0, data, [(0, time.time_ns() // 1_000_000)]) if data else 0

"""Before an engine forgets an attempt: keep the output that only the engine has, and close the streams.

A task that died before its runner began has sent no line; what its engine kept (a container's output) is then all
there is. That no more lines will come of a task that was killed is said here alone.
"""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Collection, Iterable
from functools import partial

from apps.errors import NotFound
from apps.jobs.models import Job, TaskFact
from apps.jobs.state.log_charges import charged, log_settle
from apps.stores import counted_log, log_moved, log_store
from yardmaster.engines.base import Engine, Outputs
from yardmaster.errors import Unavailable
from yardmaster.job.spec import Role, TrainingSpec
from yardmaster.lifecycle.failures import signal_of
from yardmaster.lifecycle.phases import TaskPhase
from yardmaster.logs.keys import JobGone, StreamKey
from yardmaster.logs.store import END_RESERVE
from yardmaster_runner.exits import CUT_OFF

log = logging.getLogger(__name__)

MOST_LINES = 1_000


def keep_outputs(job: Job, spec: TrainingSpec, engine: Engine) -> None:
    """Fill the empty streams of the attempt from the engine and close all of them; from here on the namespace is
    charged for what there is and no more. Repeating it changes nothing.

    A log store that takes nothing (a full disk) costs these lines, and is logged: quota must not wait for it.
    """
    try:
        tasks = list(spec.tasks())
        killed = _killed(job)
        for role, index in tasks:
            stream = StreamKey(job.pk, job.attempt, role, index)
            lines = log_store().next_line(stream)
            if lines == 0 and isinstance(engine, Outputs):
                lines = _keep(stream, engine.tail(job.key, role, index, MOST_LINES))
            elif lines and (role.value, index) in killed:
                lines = _mark_cut_off(stream, lines)
            charged(stream, partial(counted_log().mark_end, stream, lines, 2 * END_RESERVE * len(tasks)))
            log_moved(job.pk, role, index, lines)
        log_settle(job.pk, job.attempt)
    except (Unavailable, JobGone, NotFound) as error:
        log.error("The last output of job %s could not be kept: %s", job.pk, error)


def _killed(job: Job) -> set[tuple[str, int]]:
    """The tasks that ended without a word of their runner: by the kernel, or with their machine."""
    failed = TaskFact.objects.filter(job=job, attempt=job.attempt, phase=TaskPhase.FAILED.value).exclude(state="ended")
    codes = failed.values_list("role", "index", "exit_code")
    return {(role, index) for role, index, code in codes if code is None or signal_of(code) == signal.SIGKILL}


def _mark_cut_off(stream: StreamKey, lines: int) -> int:
    """A line for what a killed task could not send any more. Returns where the stream ends then."""
    mark = CUT_OFF.encode()
    if log_store().head(stream).ended or [line.text for line in log_store().read(stream, -1, 1).lines] == [mark]:
        return lines
    times = [(0, time.time_ns() // 1_000_000)]
    return charged(stream, lambda: counted_log().append(stream, lines, mark + b"\n", times)).next_line


def keep_unsent_output(job: Job, spec: TrainingSpec, engine: Engine, going: Collection[tuple[Role, int]]) -> None:
    """Copy the output of tasks that ended without sending a line from the engine, which is about to forget them. The
    streams stay open: the tasks in `going`, which are ending, may still send theirs."""
    try:
        for role, index in spec.tasks():
            stream = StreamKey(job.pk, job.attempt, role, index)
            if (role, index) not in going and isinstance(engine, Outputs) and log_store().next_line(stream) == 0:
                _keep(stream, engine.tail(job.key, role, index, MOST_LINES))
    except (Unavailable, JobGone, NotFound) as error:
        log.error("The last output of job %s could not be kept: %s", job.pk, error)


def _keep(stream: StreamKey, lines: Iterable[str]) -> int:
    data = b"".join(line.rstrip("\n").encode(errors="replace") + b"\n" for line in lines)
    times = [(0, time.time_ns() // 1_000_000)]
    return charged(stream, lambda: counted_log().append(stream, 0, data, times)).next_line if data else 0

"""Waiting until jobs are over, across a portal that restarts and connections that break."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Callable, Sequence

from yardmaster_client.changes import LISTEN_FOR, Changes
from yardmaster_client.errors import NotReachable
from yardmaster_client.models import Job
from yardmaster_client.transport import Transport

PATIENCE = 300.0
"""Seconds for which a portal that does not answer is waited for."""
_MOST = 200
"""Jobs that are waited for together: each has a connection of its own."""

Get = Callable[[str], Job]


class Unfinished(TimeoutError):
    """The time was over first. `jobs`: all that were waited for, as they were last seen."""

    def __init__(self, jobs: Sequence[Job], seconds: float) -> None:
        late = [f"{job.name} ({job.phase})" for job in jobs if not job.is_final]
        super().__init__(f"Not over after {seconds:g} s: {', '.join(late[:10])}{', …' if len(late) > 10 else ''}.")
        self.jobs = tuple(jobs)


def wait(
    transport: Transport,
    get: Get,
    job_id: str,
    *,
    timeout: float | None = None,
    each: Callable[[Job], None] | None = None,
    until: Callable[[Job], bool] | None = None,
    on_phase: Callable[[Job], object] | None = None,
    give_up_after: float = PATIENCE,
) -> Job:
    """See `Jobs.wait`."""
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    before: tuple[str, int] | None = None
    with Changes(transport, job_id, details=each is not None) as changes:
        while True:
            job = _got(get, job_id, min(deadline, time.monotonic() + give_up_after))
            if each is not None:
                each(job)
            if on_phase is not None and before != (job.phase, job.attempt):
                on_phase(job)
            before = (job.phase, job.attempt)
            if job.is_final or (until is not None and until(job)):
                return job
            if time.monotonic() > deadline:
                raise TimeoutError(f"{job.name} is still {job.phase} after {timeout:g} s.")
            changes.wait(min(LISTEN_FOR, max(0.0, deadline - time.monotonic())))


def wait_all(
    transport: Transport,
    get: Get,
    job_ids: Sequence[str],
    *,
    timeout: float | None = None,
    on_phase: Callable[[Job], object] | None = None,
) -> Sequence[Job]:
    """See `Jobs.wait_all`. Ctrl-C ends it at once: who waits in the background keeps no program from its end."""
    if len(job_ids) > _MOST:
        raise ValueError(f"{len(job_ids)} jobs are too many to wait for together: at most {_MOST}.")
    seen: dict[str, Job] = {}
    over: set[str] = set()
    news: queue.Queue[tuple[str, Job | BaseException, bool]] = queue.Queue()
    is_ended = threading.Event()

    def follow(job_id: str) -> None:
        try:
            last = wait(
                transport, get, job_id, timeout=timeout, on_phase=lambda job: news.put((job_id, job, False)),
                until=lambda job: is_ended.is_set(),
            )  # fmt: skip
            news.put((job_id, last, True))
        except BaseException as error:  # noqa: BLE001  # raised below, in the thread that waits
            news.put((job_id, error, True))

    wanted = set(job_ids)
    for job_id in wanted:
        threading.Thread(target=follow, args=(job_id,), daemon=True, name=f"wait for {job_id}").start()
    try:
        while len(over) < len(wanted):
            job_id, found, is_last = news.get()
            if is_last:
                over.add(job_id)
            if isinstance(found, Job):
                seen[job_id] = found
                if on_phase is not None and not is_last:
                    on_phase(found)
            elif not isinstance(found, TimeoutError):
                raise found
    finally:
        is_ended.set()
    jobs = [seen[job_id] if job_id in seen else get(job_id) for job_id in job_ids]
    if not all(job.is_final for job in jobs):
        raise Unfinished(jobs, timeout or 0.0)
    return jobs


def _got(get: Get, job_id: str, until: float) -> Job:
    """Asked for again while the portal is away: each try has its own pauses."""
    while True:
        try:
            return get(job_id)
        except NotReachable:
            if time.monotonic() >= until:
                raise

"""`AsyncJobs`: what is made of `Jobs`, and what waits. Who is cancelled ends the waiting in its thread as well."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from functools import partial
from typing import Any

from yardmaster_client import waiting
from yardmaster_client.aio import made_jobs
from yardmaster_client.follow import follow
from yardmaster_client.models import Job, LogGap, LogLine


class AsyncJobs(made_jobs.AsyncJobs):
    """Jobs: launch, look, follow, wait, stop. Terminals in tasks (`shell`) are in the synchronous SDK alone."""

    async def wait(
        self,
        job_id: str,
        *,
        timeout: float | None = None,
        each: Callable[[Job], None] | None = None,
        until: Callable[[Job], bool] | None = None,
        on_phase: Callable[[Job], object] | None = None,
        give_up_after: float = waiting.PATIENCE,
    ) -> Job:
        """As `Jobs.wait`. The callbacks are called in a thread of the SDK, not in the event loop."""
        call = partial(
            self._sync.wait, job_id, timeout=timeout, each=each, on_phase=on_phase, give_up_after=give_up_after
        )
        return await self._until_cancelled(call, until)

    async def watch(
        self, job_id: str, *, lines: int = 8, timeout: float | None = None, until: Callable[[Job], bool] | None = None
    ) -> Job:
        """As `Jobs.watch`."""
        return await self._until_cancelled(partial(self._sync.watch, job_id, lines=lines, timeout=timeout), until)

    async def _until_cancelled(self, call: Callable[..., Job], until: Callable[[Job], bool] | None) -> Job:
        """A call that looks at the job from time to time, and ends soon after who awaits it was cancelled."""
        is_cancelled = threading.Event()

        def stops(job: Job) -> bool:
            return is_cancelled.is_set() or (until is not None and until(job))

        try:
            return await self._run_long(partial(call, until=stops))
        finally:
            is_cancelled.set()

    async def wait_all(
        self,
        job_ids: Sequence[str],
        *,
        timeout: float | None = None,
        on_phase: Callable[[Job], object] | None = None,
    ) -> Sequence[Job]:
        """As `Jobs.wait_all`, with any number of jobs. Raises the first error, and `Unfinished` after `timeout`."""
        wanted = list(dict.fromkeys(job_ids))
        tasks = [asyncio.ensure_future(self.wait(one, timeout=timeout, on_phase=on_phase)) for one in wanted]
        try:
            for done in asyncio.as_completed(tasks):
                await _or_late(done)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        jobs = dict(zip(wanted, [await self._last(*one) for one in zip(wanted, tasks, strict=True)], strict=True))
        found = [jobs[one] for one in job_ids]
        if not all(job.is_final for job in found):
            raise waiting.Unfinished(found, timeout or 0.0)
        return found

    async def _last(self, job_id: str, task: asyncio.Future[Job]) -> Job:
        return await self.get(job_id) if task.exception() is not None else task.result()

    def follow(
        self,
        job_id: str,
        *,
        role: str | None = None,
        index: int | None = None,
        attempt: int | None = None,
        start: int = 0,
        give_up_after: float = 300.0,
    ) -> AsyncGenerator[LogLine | LogGap, None]:
        """As `Jobs.follow`. Use `contextlib.aclosing` where you leave it early."""
        where = {"role": role, "index": index, "attempt": attempt, "start": start, "give_up_after": give_up_after}
        return self._follow(job_id, where)

    async def _follow(self, job_id: str, where: dict[str, Any]) -> AsyncGenerator[LogLine | LogGap, None]:
        is_left = threading.Event()

        def is_over() -> bool:
            return is_left.is_set() or self._sync.get(job_id).is_final

        def begin() -> Iterator[LogLine | LogGap]:
            return follow(self._sync._transport, job_id, is_over=is_over, **where)

        try:
            async with contextlib.aclosing(self._iterate(begin)) as lines:
                async for one in lines:
                    yield one
        finally:
            is_left.set()


async def _or_late(done: Any) -> None:
    """Who is late is counted when all have ended."""
    try:
        await done
    except TimeoutError:
        return

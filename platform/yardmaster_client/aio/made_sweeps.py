"""`Sweeps` for asyncio.

Made by `deploy/setup/async_sdk.py` from the synchronous classes: change those, and run it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from functools import partial
from typing import Any

from yardmaster_client.aio.threads import Asynchronous
from yardmaster_client.sweeps import Sweep, Sweeps, Trial


class AsyncSweeps(Asynchronous):
    """See `sweeps.Sweeps`."""

    _sync: Sweeps

    async def create(
        self,
        spec: Mapping[str, Any],
        plan: Mapping[str, Any],
        *,
        namespace: str | None = None,
        engine: str | None = None,
        accept_never_fits: bool = False,
    ) -> Sweep:
        """Create a sweep of this job. `plan`: parameters, method, trials, seed, metric, parallel, early_stop,
        stop_after_failures, as `POST /sweeps/` takes them."""
        return await self._run(
            partial(
                self._sync.create, spec, plan, namespace=namespace, engine=engine, accept_never_fits=accept_never_fits
            )
        )

    def list(self, *, namespace: str | None = None) -> AsyncGenerator[Sweep, None]:
        """The newest first."""
        return self._iterate(partial(self._sync.list, namespace=namespace))

    async def get(self, sweep_id: str) -> Sweep:
        return await self._run(partial(self._sync.get, sweep_id))

    def trials(self, sweep_id: str) -> AsyncGenerator[Trial, None]:
        """By number."""
        return self._iterate(partial(self._sync.trials, sweep_id))

    async def stop(self, sweep_id: str) -> Sweep:
        """Also the trials that run."""
        return await self._run(partial(self._sync.stop, sweep_id))

    async def pause(self, sweep_id: str) -> Sweep:
        """Launch no more trials."""
        return await self._run(partial(self._sync.pause, sweep_id))

    async def resume(self, sweep_id: str) -> Sweep:
        return await self._run(partial(self._sync.resume, sweep_id))

    async def delete(self, sweep_id: str, *, with_jobs: bool = False) -> None:
        """One that has ended; its jobs are kept unless `with_jobs`."""
        await self._run(partial(self._sync.delete, sweep_id, with_jobs=with_jobs))

    async def wait(
        self, sweep_id: str, *, timeout: float | None = None, each: Callable[[Sweep], None] = lambda one: None
    ) -> Sweep:
        """Until it has ended, or is paused. Calls `each` with what is known meanwhile.

        Raises:
            TimeoutError: it took longer.
        """
        return await self._run_long(partial(self._sync.wait, sweep_id, timeout=timeout, each=each))

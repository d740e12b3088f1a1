"""The SDK for asyncio: the same methods, awaited, and `async for` where the synchronous one gives an iterator.

    from yardmaster_client.aio import AsyncYardmaster
    async with AsyncYardmaster.from_environment() as portal:
        jobs = await asyncio.gather(*[portal.jobs.wait(one.id) async for one in portal.jobs.list(phase="RUNNING")])

It runs the synchronous SDK in threads, so that there is one implementation of transfers, repeats and errors; most of
its methods are made from it (`deploy/setup/async_sdk.py`). It raises the same errors.
"""

from __future__ import annotations

from types import TracebackType

from yardmaster_client.aio.jobs import AsyncJobs
from yardmaster_client.aio.made_portal import AsyncYardmaster as _Made
from yardmaster_client.aio.made_schedules import AsyncSchedules, AsyncTemplates
from yardmaster_client.aio.made_services import AsyncServices, AsyncSessions
from yardmaster_client.aio.made_shared import AsyncImages, AsyncSparkClusters
from yardmaster_client.aio.made_stores import AsyncCodeStore, AsyncModels, AsyncStore
from yardmaster_client.aio.made_sweeps import AsyncSweeps
from yardmaster_client.aio.threads import Threads
from yardmaster_client.models import Dataset, DatasetVersion
from yardmaster_client.portal import Yardmaster

__all__ = [
    "AsyncCodeStore",
    "AsyncImages",
    "AsyncJobs",
    "AsyncModels",
    "AsyncServices",
    "AsyncSessions",
    "AsyncSparkClusters",
    "AsyncStore",
    "AsyncSweeps",
    "AsyncYardmaster",
]


class AsyncYardmaster(_Made):
    """A portal, seen by one user. Use it as an asynchronous context manager, or call `close`."""

    def __init__(self, url: str, token: str = "") -> None:
        self._begin(Yardmaster(url, token))

    @classmethod
    def from_environment(cls) -> AsyncYardmaster:
        """As `Yardmaster.from_environment`. Raises `NotSignedIn`."""
        return cls.over(Yardmaster.from_environment())

    @classmethod
    def over(cls, portal: Yardmaster) -> AsyncYardmaster:
        """Over a synchronous one, which is closed with it."""
        made = cls.__new__(cls)
        made._begin(portal)
        return made

    def _begin(self, portal: Yardmaster) -> None:
        threads = Threads()
        super().__init__(portal, threads)
        self.jobs = AsyncJobs(portal.jobs, threads)
        self.datasets: AsyncStore[Dataset, DatasetVersion] = AsyncStore(portal.datasets, threads)
        self.code = AsyncCodeStore(portal.code, threads)
        self.models = AsyncModels(portal.models, threads)
        self.services = AsyncServices(portal.services, threads)
        self.sessions = AsyncSessions(portal.sessions, threads)
        self.images = AsyncImages(portal.images, threads)
        self.spark_clusters = AsyncSparkClusters(portal.spark_clusters, threads)
        self.sweeps = AsyncSweeps(portal.sweeps, threads)
        self.templates = AsyncTemplates(portal.templates, threads)
        self.schedules = AsyncSchedules(portal.schedules, threads)

    async def close(self) -> None:
        await self._run(self._sync.close)
        self._threads.close()

    async def __aenter__(self) -> AsyncYardmaster:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

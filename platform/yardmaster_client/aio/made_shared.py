"""`Images`, `SparkClusters` for asyncio.

Made by `deploy/setup/async_sdk.py` from the synchronous classes: change those, and run it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import partial
from typing import Any

from yardmaster_client.aio.threads import Asynchronous
from yardmaster_client.images import Image, Images
from yardmaster_client.spark_clusters import SparkCluster, SparkClusters


class AsyncImages(Asynchronous):
    """See `images.Images`."""

    _sync: Images

    def list(self, *, namespace: str | None = None) -> AsyncGenerator[Image, None]:
        """Those that you may use, or that this namespace may use, the newest first."""
        return self._iterate(partial(self._sync.list, namespace=namespace))

    async def get(self, name: str) -> Image:
        return await self._run(partial(self._sync.get, name))

    async def create(self, name: str, reference: str, **facts: Any) -> Image:
        """Add an image (administrators). `facts`: python, tensorflow, strategies, gpus, description, pull_secret,
        everyone, namespaces, enabled, packages."""
        return await self._run(partial(self._sync.create, name, reference, **facts))

    async def change(self, name: str, **facts: Any) -> Image:
        """Change what is said of it (administrators). Jobs that are queued or running keep what they have."""
        return await self._run(partial(self._sync.change, name, **facts))

    async def delete(self, name: str) -> None:
        """Remove it from the catalogue (administrators)."""
        await self._run(partial(self._sync.delete, name))


class AsyncSparkClusters(Asynchronous):
    """See `spark_clusters.SparkClusters`."""

    _sync: SparkClusters

    def list(self, *, namespace: str | None = None) -> AsyncGenerator[SparkCluster, None]:
        """Those that your namespaces may use, or that this one may use, the newest first."""
        return self._iterate(partial(self._sync.list, namespace=namespace))

    async def get(self, name: str) -> SparkCluster:
        return await self._run(partial(self._sync.get, name))

    async def create(self, name: str, master: str, driver_address: str, **facts: Any) -> SparkCluster:
        """Register a cluster (administrators). `facts`: python, secret, most_executors, most_cores, most_memory,
        most_cores_at_once, everyone, namespaces, enabled."""
        return await self._run(partial(self._sync.create, name, master, driver_address, **facts))

    async def change(self, name: str, **facts: Any) -> SparkCluster:
        """Change what is said of it (administrators). Tasks that start later are told the new values."""
        return await self._run(partial(self._sync.change, name, **facts))

    async def check(self, name: str) -> SparkCluster:
        """Have the portal look whether its master answers (administrators): `state` is checking until it has."""
        return await self._run(partial(self._sync.check, name))

    async def delete(self, name: str) -> None:
        """Remove it (administrators). Refused while jobs or sessions use it."""
        await self._run(partial(self._sync.delete, name))

"""`Services`, `Sessions` for asyncio.

Made by `deploy/setup/async_sdk.py` from the synchronous classes: change those, and run it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from yardmaster_client.aio.threads import Asynchronous
from yardmaster_client.services import Service, Services
from yardmaster_client.sessions import Session, Sessions, Size


class AsyncServices(Asynchronous):
    """See `services.Services`."""

    _sync: Services

    def list(self, *, namespace: str | None = None) -> AsyncGenerator[Service, None]:
        """Those that run, the newest first."""
        return self._iterate(partial(self._sync.list, namespace=namespace))

    async def get(self, service_id: str) -> Service:
        return await self._run(partial(self._sync.get, service_id))

    async def start(self, model_version: str, *, idle_limit: int | None = None, **more: Any) -> Service:
        """Serve this version; one that is served already is returned, with `idle_limit` (seconds) if it is given.
        `more`: cpu, memory (bytes, or "2Gi"), engine, accept_never_fits, confirm_foreign_model."""
        return await self._run(partial(self._sync.start, model_version, idle_limit=idle_limit, **more))

    async def of(self, model_version: str) -> Service | None:
        """The service of this version that runs now."""
        return await self._run(partial(self._sync.of, model_version))

    async def stop(self, service_id: str) -> Service:
        return await self._run(partial(self._sync.stop, service_id))

    async def extend(self, service_id: str, *, idle_limit: int | None = None) -> Service:
        """Count the time without requests from now."""
        return await self._run(partial(self._sync.extend, service_id, idle_limit=idle_limit))

    async def wait(
        self, service_id: str, *, timeout: float | None = None, each: Callable[[Service], None] | None = None
    ) -> Service:
        """Until it is ready, or will not be. Raises TimeoutError where it is neither after `timeout` seconds."""
        return await self._run_long(partial(self._sync.wait, service_id, timeout=timeout, each=each))

    async def predict(self, model_version: str, body: Mapping[str, Any], *, method: str = "predict") -> dict[str, Any]:
        """What the model says of `{"instances": […]}` or `{"inputs": …}`; with the method `classify` or `regress` of
        `{"examples": […]}`. Raises PortalError with the model server's words."""
        return await self._run(partial(self._sync.predict, model_version, body, method=method))


class AsyncSessions(Asynchronous):
    """See `sessions.Sessions`."""

    _sync: Sessions

    def list(self, *, namespace: str | None = None, kind: str | None = None) -> AsyncGenerator[Session, None]:
        """Also those that were stopped, the newest first. Of many no port is asked: one that was not seen to be ready
        is said to load."""
        return self._iterate(partial(self._sync.list, namespace=namespace, kind=kind))

    async def get(self, session_id: str) -> Session:
        return await self._run(partial(self._sync.get, session_id))

    async def sizes(self) -> tuple[Size, ...]:
        return await self._run(partial(self._sync.sizes))

    async def start(
        self, kind: str, *, namespace: str | None = None, jobs: Sequence[str] = (), size: str | None = None, **more: Any
    ) -> Session:
        """Start a TensorBoard (of these jobs, or of the whole namespace) or one's own Jupyter. One that runs already is
        returned. `more`: idle_limit (seconds), engine, environment (packages), spark_executors and spark_cluster
        (of a Jupyter), spark_cores and spark_memory (of each executor on that cluster), accept_never_fits."""
        return await self._run(partial(self._sync.start, kind, namespace=namespace, jobs=jobs, size=size, **more))

    async def stop(self, session_id: str) -> Session:
        """Its quota is returned, and the files of a Jupyter stay."""
        return await self._run(partial(self._sync.stop, session_id))

    async def restart(self, session_id: str, *, size: str | None = None) -> Session:
        """Stop it and start it again, with another size if one is named."""
        return await self._run(partial(self._sync.restart, session_id, size=size))

    async def extend(self, session_id: str, *, idle_limit: int | None = None) -> Session:
        """Count the time without use from now."""
        return await self._run(partial(self._sync.extend, session_id, idle_limit=idle_limit))

    async def delete_files(self, session_id: str) -> None:
        """Delete for good what a stopped Jupyter keeps. It takes a moment, and returns the storage quota."""
        await self._run(partial(self._sync.delete_files, session_id))

    async def wait(
        self, session_id: str, *, timeout: float | None = None, each: Callable[[Session], None] | None = None
    ) -> Session:
        """Until it is ready, or will not be. Raises TimeoutError where it is neither after `timeout` seconds."""
        return await self._run_long(partial(self._sync.wait, session_id, timeout=timeout, each=each))

    async def address(self, session: Session) -> str:
        """Where a browser opens it."""
        return await self._run(partial(self._sync.address, session))

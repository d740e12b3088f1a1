"""`Templates`, `Schedules` for asyncio.

Made by `deploy/setup/async_sdk.py` from the synchronous classes: change those, and run it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import partial
from typing import Any

from yardmaster_client.aio.threads import Asynchronous
from yardmaster_client.models import Job
from yardmaster_client.schedules import Schedule, ScheduleRun, Schedules, Template, Templates


class AsyncTemplates(Asynchronous):
    """See `schedules.Templates`."""

    _sync: Templates

    def list(self, *, namespace: str | None = None, name: str | None = None) -> AsyncGenerator[Template, None]:
        """The newest first; without a namespace those of all that one is in."""
        return self._iterate(partial(self._sync.list, namespace=namespace, name=name))

    async def get(self, template_id: str) -> Template:
        return await self._run(partial(self._sync.get, template_id))

    async def create(
        self,
        name: str,
        *,
        job: str | None = None,
        spec: Mapping[str, Any] | None = None,
        namespace: str | None = None,
        description: str = "",
        engine: str | None = None,
        latest: Sequence[str] = (),
        parameters: Sequence[Mapping[str, Any]] = (),
    ) -> Template:
        """Save a job, by its id, or a specification as a template. `latest`: what is taken in its latest version at
        each launch, such as `code` and `inputs.0`."""
        return await self._run(
            partial(
                self._sync.create,
                name,
                job=job,
                spec=spec,
                namespace=namespace,
                description=description,
                engine=engine,
                latest=latest,
                parameters=parameters,
            )
        )

    async def change(self, template_id: str, **changes: Any) -> Template:
        """name, description, spec, engine, latest, parameters: what the job is becomes a new revision."""
        return await self._run(partial(self._sync.change, template_id, **changes))

    async def launch(
        self,
        template_id: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        name: str = "",
        accept_never_fits: bool = False,
        confirm_foreign_model: bool = False,
        revision: int | None = None,
    ) -> Job:
        """Queue a job with these values; what is left out has its default. `revision`: the newest unless named."""
        return await self._run(
            partial(
                self._sync.launch,
                template_id,
                parameters,
                name=name,
                accept_never_fits=accept_never_fits,
                confirm_foreign_model=confirm_foreign_model,
                revision=revision,
            )
        )

    async def delete(self, template_id: str) -> None:
        """Its jobs stay."""
        await self._run(partial(self._sync.delete, template_id))


class AsyncSchedules(Asynchronous):
    """See `schedules.Schedules`."""

    _sync: Schedules

    def list(self, *, namespace: str | None = None, name: str | None = None) -> AsyncGenerator[Schedule, None]:
        """The newest first; without a namespace those of all that one is in."""
        return self._iterate(partial(self._sync.list, namespace=namespace, name=name))

    async def get(self, schedule_id: str) -> Schedule:
        return await self._run(partial(self._sync.get, schedule_id))

    async def create(self, name: str, *, template: str, cron: str, **more: Any) -> Schedule:
        """Launch a template, by its id, at these times. `more`: time_zone, parameters, starts_at, ends_at, overlap
        (skip, queue or stop), grace (seconds), keeps."""
        return await self._run(partial(self._sync.create, name, template=template, cron=cron, **more))

    async def change(self, schedule_id: str, **changes: Any) -> Schedule:
        """What `create` takes, but the template."""
        return await self._run(partial(self._sync.change, schedule_id, **changes))

    async def pause(self, schedule_id: str) -> Schedule:
        return await self._run(partial(self._sync.pause, schedule_id))

    async def resume(self, schedule_id: str) -> Schedule:
        return await self._run(partial(self._sync.resume, schedule_id))

    async def run(self, schedule_id: str) -> Job:
        """Launch its template now, as yourself."""
        return await self._run(partial(self._sync.run, schedule_id))

    def runs(self, schedule_id: str) -> AsyncGenerator[ScheduleRun, None]:
        """What became of its times, the newest first."""
        return self._iterate(partial(self._sync.runs, schedule_id))

    async def delete(self, schedule_id: str) -> None:
        """With its history. Its jobs stay."""
        await self._run(partial(self._sync.delete, schedule_id))

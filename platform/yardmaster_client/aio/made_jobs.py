"""`Jobs` for asyncio.

Made by `deploy/setup/async_sdk.py` from the synchronous classes: change those, and run it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from yardmaster_client.aio.threads import Asynchronous
from yardmaster_client.jobs import Jobs
from yardmaster_client.models import Job, LogGap, LogLine, Output
from yardmaster_client.uploads import Progress


class AsyncJobs(Asynchronous):
    """See `jobs.Jobs`."""

    _sync: Jobs

    async def launch(
        self,
        spec: Mapping[str, Any],
        *,
        namespace: str | None = None,
        engine: str | None = None,
        accept_never_fits: bool = False,
        confirm_foreign_model: bool = False,
    ) -> Job:
        """Queue a job. One that can never start as limits and machines are now is queued only with
        `accept_never_fits`, one that runs another's model as the portal only with `confirm_foreign_model`.

        Raises:
            PortalError: 409 `never_fits`, whose `facts` hold the `numbers` and the `largest_fit` that could start.
        """
        return await self._run(
            partial(
                self._sync.launch,
                spec,
                namespace=namespace,
                engine=engine,
                accept_never_fits=accept_never_fits,
                confirm_foreign_model=confirm_foreign_model,
            )
        )

    async def prepare(
        self, version_id: str, wanted: Mapping[str, Any], *, namespace: str | None = None, engine: str | None = None
    ) -> Job:
        """Queue a job that prepares a dataset version; `wanted` as `POST /dataset-versions/{id}/prepare/` takes it."""
        return await self._run(partial(self._sync.prepare, version_id, wanted, namespace=namespace, engine=engine))

    async def predict_over(
        self, model_version: str, wanted: Mapping[str, Any], *, namespace: str | None = None, engine: str | None = None
    ) -> Job:
        """Queue a job that predicts over a dataset; `wanted` as `POST /model-versions/{id}/batch/` takes it."""
        return await self._run(
            partial(self._sync.predict_over, model_version, wanted, namespace=namespace, engine=engine)
        )

    async def published(self, job_id: str, *, wait: bool = False) -> dict[str, Any] | None:
        """What the job publishes: `{"state", "dataset", "version", "number", "problem", …}`; None: nothing. With
        `wait` only when it is no longer pending."""
        return await self._run_long(partial(self._sync.published, job_id, wait=wait))

    async def check(
        self, spec: Mapping[str, Any], *, namespace: str | None = None, engine: str | None = None
    ) -> dict[str, Any]:
        """Would it run? Creates nothing; `{"verdict": "fits_now" | "waits" | "never_fits", "reason", "message", …}`."""
        return await self._run(partial(self._sync.check, spec, namespace=namespace, engine=engine))

    async def import_tfjob(self, text: str, *, namespace: str | None = None) -> dict[str, Any]:
        """The job file that the one TFJob (kubeflow.org/v1) of a YAML text stands for, and what is not the same:
        `{"job_file", "spec", "notes": [{"kind", "field", "message", "remedy", "upload"}], "is_ready"}`. Creates
        nothing; code and datasets are looked up in the namespace, by default one's own."""
        return await self._run(partial(self._sync.import_tfjob, text, namespace=namespace))

    async def export(self, job_id: str, **options: Any) -> str:
        """The job as Kubernetes manifests that need no portal, as YAML. Options: image (of its tasks), and claim (a
        PersistentVolumeClaim for data, logs and models)."""
        return await self._run(partial(self._sync.export, job_id, **options))

    async def export_spec(
        self, spec: Mapping[str, Any], *, namespace: str | None = None, engine: str | None = None, **options: Any
    ) -> str:
        """The same of a job that is not launched, whose code version exists."""
        return await self._run(partial(self._sync.export_spec, spec, namespace=namespace, engine=engine, **options))

    def list(self, **filters: Any) -> AsyncGenerator[Job, None]:
        """Newest first, or by `ordering` (`-metric:accuracy`, `duration`). Filters: phase, namespace, strategy, owner,
        search, queue_state, reason, tag (several are a list), archived, where (`loss < 0.3`). `columns`: further
        values, such as `metric:loss,parameter:lr`."""
        return self._iterate(partial(self._sync.list, **filters))

    async def get(self, job_id: str) -> Job:
        return await self._run(partial(self._sync.get, job_id))

    async def why(self, job_id: str) -> dict[str, Any]:
        return await self._run(partial(self._sync.why, job_id))

    async def stop(self, job_id: str) -> Job:
        return await self._run(partial(self._sync.stop, job_id))

    async def release(self, job_id: str, task: str) -> None:
        """End the time for which this task, whose script has failed, is held open."""
        await self._run(partial(self._sync.release, job_id, task))

    async def stacks(self, job_id: str, task: str) -> None:
        """Have this running task write where its threads stand to its log, within seconds."""
        await self._run(partial(self._sync.stacks, job_id, task))

    async def retry(
        self,
        job_id: str,
        *,
        spec: Mapping[str, Any] | None = None,
        resume: bool | None = None,
        accept_never_fits: bool = False,
        confirm_foreign_model: bool = False,
    ) -> Job:
        """Begin a new attempt, with another whole specification where `spec` is given. `resume`: it continues from the
        newest checkpoint, or starts afresh; None: it continues unless the job has succeeded. What can never start, or
        has to be confirmed, is refused as by `launch`."""
        return await self._run(
            partial(
                self._sync.retry,
                job_id,
                spec=spec,
                resume=resume,
                accept_never_fits=accept_never_fits,
                confirm_foreign_model=confirm_foreign_model,
            )
        )

    async def change(
        self,
        job_id: str,
        *,
        name: str | None = None,
        note: str | None = None,
        tags: Sequence[str] | None = None,
        archived: bool | None = None,
    ) -> Job:
        """Change what people wrote on the job; None leaves a value as it is. What runs does not change. `tags` are all
        that it has afterwards; one that is archived is left out of lists."""
        return await self._run(partial(self._sync.change, job_id, name=name, note=note, tags=tags, archived=archived))

    async def pin(self, job_id: str, *, pinned: bool = True) -> None:
        """Keep the job on top of your own list, or no longer."""
        await self._run(partial(self._sync.pin, job_id, pinned=pinned))

    async def delete(self, job_id: str) -> None:
        await self._run(partial(self._sync.delete, job_id))

    async def tasks(self, job_id: str) -> tuple[dict[str, Any], ...]:
        return await self._run(partial(self._sync.tasks, job_id))

    async def model(self, job_id: str) -> dict[str, Any]:
        return await self._run(partial(self._sync.model, job_id))

    async def notebook(self, job_id: str) -> str:
        """The text of an .ipynb file that connects to the job's servers and drives them.

        Raises:
            PortalError: 404 where the job runs a script of its own, 409 while its servers are not up.
        """
        return await self._run(partial(self._sync.notebook, job_id))

    def events(self, job_id: str) -> AsyncGenerator[dict[str, Any], None]:
        """What happened to the job, oldest first."""
        return self._iterate(partial(self._sync.events, job_id))

    def outputs(self, job_id: str, attempt: int | None = None) -> AsyncGenerator[Output, None]:
        """The files that the job's tasks wrote below their log directories, by path."""
        return self._iterate(partial(self._sync.outputs, job_id, attempt))

    async def outputs_download(
        self,
        job_id: str,
        folder: Path,
        attempt: int | None = None,
        progress: Progress = lambda done, total: None,
        *,
        only: Sequence[str] = (),
    ) -> Sequence[Path]:
        """All of them into `folder`, or those that one of the patterns such as `*.csv` is for."""
        return await self._run(partial(self._sync.outputs_download, job_id, folder, attempt, progress, only=only))

    async def scalars(self, job_id: str, **which: Any) -> Sequence[dict[str, Any]]:
        """The curves that the job's event files hold: `run`, `tag`, and `points` of [step, unix time, value]. Which:
        run, tag, attempt, and points (how many of each at most)."""
        return await self._run(partial(self._sync.scalars, job_id, **which))

    async def streams(self, job_id: str) -> tuple[dict[str, Any], ...]:
        """The logs that there are: `attempt`, `role`, `index`, `lines`, `bytes`, `ended`, `gaps`."""
        return await self._run(partial(self._sync.streams, job_id))

    def lines(
        self, job_id: str, *, role: str | None = None, index: int = 0, attempt: int | None = None, start: int = 0
    ) -> AsyncGenerator[LogLine | LogGap, None]:
        """Everything that is there now: of one task by number, or of all tasks by time. A negative `start` counts from
        the end."""
        return self._iterate(partial(self._sync.lines, job_id, role=role, index=index, attempt=attempt, start=start))

    def search(
        self, job_id: str, text: str = "", options: Mapping[str, Any] | None = None
    ) -> AsyncGenerator[LogLine, None]:
        """Lines that hold `text`, all of them. Options: regex, case (1 or 0), level, role, index, attempt."""
        return self._iterate(partial(self._sync.search, job_id, text, options))

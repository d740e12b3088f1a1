"""`portal.jobs`: launch, look, follow, wait, stop; and what a job gave."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from yardmaster_client import notebook, waiting
from yardmaster_client.downloads import RemoteFile, download
from yardmaster_client.follow import follow
from yardmaster_client.models import (
    Job,
    LogGap,
    LogLine,
    Output,
    read,
    read_line,
)
from yardmaster_client.shell import Shell
from yardmaster_client.signed import Passing
from yardmaster_client.transport import Transport
from yardmaster_client.uploads import Progress


class Jobs:
    """Jobs: launch, look, follow, stop."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def launch(
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
        asked = _answers(accept_never_fits, confirm_foreign_model)
        return read(Job, self._transport.post("jobs/", _request(spec, namespace, engine) | asked))

    def prepare(
        self, version_id: str, wanted: Mapping[str, Any], *, namespace: str | None = None, engine: str | None = None
    ) -> Job:
        """Queue a job that prepares a dataset version; `wanted` as `POST /dataset-versions/{id}/prepare/` takes it."""
        where = {key: value for key, value in (("namespace", namespace), ("engine", engine)) if value}
        return read(Job, self._transport.post(f"dataset-versions/{version_id}/prepare/", {**wanted, **where}))

    def predict_over(
        self, model_version: str, wanted: Mapping[str, Any], *, namespace: str | None = None, engine: str | None = None
    ) -> Job:
        """Queue a job that predicts over a dataset; `wanted` as `POST /model-versions/{id}/batch/` takes it."""
        where = {key: value for key, value in (("namespace", namespace), ("engine", engine)) if value}
        return read(Job, self._transport.post(f"model-versions/{model_version}/batch/", {**wanted, **where}))

    def published(self, job_id: str, *, wait: bool = False) -> dict[str, Any] | None:
        """What the job publishes: `{"state", "dataset", "version", "number", "problem", …}`; None: nothing. With
        `wait` only when it is no longer pending."""
        while True:
            found = self._transport.get(f"jobs/{job_id}/")["published"]
            if not wait or found is None or found["state"] != "pending":
                return None if found is None else dict(found)
            time.sleep(1.0)

    def check(
        self, spec: Mapping[str, Any], *, namespace: str | None = None, engine: str | None = None
    ) -> dict[str, Any]:
        """Would it run? Creates nothing; `{"verdict": "fits_now" | "waits" | "never_fits", "reason", "message", …}`."""
        return dict(self._transport.post("jobs/check/", _request(spec, namespace, engine)))

    def import_tfjob(self, text: str, *, namespace: str | None = None) -> dict[str, Any]:
        """The job file that the one TFJob (kubeflow.org/v1) of a YAML text stands for, and what is not the same:
        `{"job_file", "spec", "notes": [{"kind", "field", "message", "remedy", "upload"}], "is_ready"}`. Creates
        nothing; code and datasets are looked up in the namespace, by default one's own."""
        given = {"namespace": namespace} if namespace else {}
        return dict(self._transport.post("jobs/import/", {"text": text, **given}))

    def export(self, job_id: str, **options: Any) -> str:
        """The job as Kubernetes manifests that need no portal, as YAML. Options: image (of its tasks), and claim (a
        PersistentVolumeClaim for data, logs and models)."""
        data = bytearray()
        self._transport.download(f"jobs/{job_id}/export/", Passing(data.extend), **options)
        return data.decode()

    def export_spec(
        self, spec: Mapping[str, Any], *, namespace: str | None = None, engine: str | None = None, **options: Any
    ) -> str:
        """The same of a job that is not launched, whose code version exists."""
        given = {name: value for name, value in options.items() if value is not None}
        return str(self._transport.post("jobs/export/", _request(spec, namespace, engine) | given)["manifests"])

    def list(self, **filters: Any) -> Iterator[Job]:
        """Newest first, or by `ordering` (`-metric:accuracy`, `duration`). Filters: phase, namespace, strategy, owner,
        search, queue_state, reason, tag (several are a list), archived, where (`loss < 0.3`). `columns`: further
        values, such as `metric:loss,parameter:lr`."""
        return (read(Job, row) for row in self._transport.pages("jobs/", **filters))

    def get(self, job_id: str) -> Job:
        return read(Job, self._transport.get(f"jobs/{job_id}/"))

    def why(self, job_id: str) -> dict[str, Any]:
        return dict(self._transport.get(f"jobs/{job_id}/why/"))

    def stop(self, job_id: str) -> Job:
        return read(Job, self._transport.post(f"jobs/{job_id}/stop/"))

    def shell(self, job_id: str, task: str, command: Sequence[str] = ()) -> Shell:
        """A terminal in a running task, such as `worker-0`; with `command` that command alone, without a terminal."""
        return Shell(self._transport, job_id, task, command)

    def release(self, job_id: str, task: str) -> None:
        """End the time for which this task, whose script has failed, is held open."""
        self._transport.post(f"jobs/{job_id}/tasks/{task}/release/")

    def stacks(self, job_id: str, task: str) -> None:
        """Have this running task write where its threads stand to its log, within seconds."""
        self._transport.post(f"jobs/{job_id}/tasks/{task}/stacks/")

    def retry(
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
        asked: dict[str, Any] = {} if spec is None else {"spec": dict(spec)}
        asked |= {} if resume is None else {"resume": resume}
        asked |= _answers(accept_never_fits, confirm_foreign_model)
        return read(Job, self._transport.post(f"jobs/{job_id}/retry/", asked))

    def change(
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
        given = {"name": name, "note": note, "tags": tags, "archived": archived}
        body = {field: value for field, value in given.items() if value is not None}
        return read(Job, self._transport.patch(f"jobs/{job_id}/", body))

    def pin(self, job_id: str, *, pinned: bool = True) -> None:
        """Keep the job on top of your own list, or no longer."""
        address = f"jobs/{job_id}/pin/"
        if pinned:
            self._transport.put(address, None)
        else:
            self._transport.delete(address)

    def delete(self, job_id: str) -> None:
        self._transport.delete(f"jobs/{job_id}/")

    def tasks(self, job_id: str) -> tuple[dict[str, Any], ...]:
        answer = self._transport.get(f"jobs/{job_id}/tasks/")
        return tuple(answer["results"] if isinstance(answer, dict) else answer)

    def model(self, job_id: str) -> dict[str, Any]:
        return dict(self._transport.get(f"jobs/{job_id}/model/"))

    def notebook(self, job_id: str) -> str:
        """The text of an .ipynb file that connects to the job's servers and drives them.

        Raises:
            PortalError: 404 where the job runs a script of its own, 409 while its servers are not up.
        """
        data = bytearray()
        self._transport.download(f"jobs/{job_id}/notebook/", Passing(data.extend))
        return data.decode()

    def events(self, job_id: str) -> Iterator[dict[str, Any]]:
        """What happened to the job, oldest first."""
        after: int | None = 0
        while after is not None:
            page = self._transport.get(f"jobs/{job_id}/events/", after=after)
            yield from page["results"]
            after = page["next"]

    def outputs(self, job_id: str, attempt: int | None = None) -> Iterator[Output]:
        """The files that the job's tasks wrote below their log directories, by path."""
        after: str | None = ""
        while after is not None:
            page = self._transport.get(f"jobs/{job_id}/outputs/", attempt=attempt, after=after, page_size=1000)
            yield from (read(Output, row) for row in page["results"])
            after = page["next"]

    def outputs_download(
        self,
        job_id: str,
        folder: Path,
        attempt: int | None = None,
        progress: Progress = lambda done, total: None,
        *,
        only: Sequence[str] = (),
    ) -> Sequence[Path]:
        """All of them into `folder`, or those that one of the patterns such as `*.csv` is for."""
        wanted = (one for one in self.outputs(job_id, attempt) if is_wanted(one.path, only))
        files = [RemoteFile(one.path, one.size, "", one.url) for one in wanted]
        return download(self._transport, files, folder, progress)

    def scalars(self, job_id: str, **which: Any) -> Sequence[dict[str, Any]]:
        """The curves that the job's event files hold: `run`, `tag`, and `points` of [step, unix time, value]. Which:
        run, tag, attempt, and points (how many of each at most)."""
        return tuple(self._transport.get(f"jobs/{job_id}/scalars/", **which)["results"])

    def streams(self, job_id: str) -> tuple[dict[str, Any], ...]:
        """The logs that there are: `attempt`, `role`, `index`, `lines`, `bytes`, `ended`, `gaps`."""
        return tuple(self._transport.get(f"jobs/{job_id}/logs/")["streams"])

    def lines(
        self, job_id: str, *, role: str | None = None, index: int = 0, attempt: int | None = None, start: int = 0
    ) -> Iterator[LogLine | LogGap]:
        """Everything that is there now: of one task by number, or of all tasks by time. A negative `start` counts from
        the end."""
        where = {"role": role, "index": index if role else None, "attempt": attempt, "limit": 10_000}
        place: dict[str, Any] = {"from": start}
        while True:
            page = self._transport.get(f"jobs/{job_id}/logs/lines/", **where, **place)
            for row in page["gaps"]:
                yield LogGap(row["role"], row["index"], row["first_line"], row["lines"], row.get("detail", ""))
            yield from (read_line(row) for row in page["lines"])
            following = {"from": page["next"]} if role else {"cursor": page["next"]}
            if page["ended"] or following == place:  # a page of many gaps has no lines
                return
            place = following

    def search(self, job_id: str, text: str = "", options: Mapping[str, Any] | None = None) -> Iterator[LogLine]:
        """Lines that hold `text`, all of them. Options: regex, case (1 or 0), level, role, index, attempt."""
        place: str | None = None
        while True:
            query = {"q": text, "limit": 1000, **(options or {}), "from": place}
            page = self._transport.get(f"jobs/{job_id}/logs/search/", **query)
            yield from (read_line(row) for row in page["matches"])
            place = page["next"]
            if place is None:
                return

    def follow(self, job_id: str, **where: Any) -> Iterator[LogLine | LogGap]:
        """Log lines as they come, until the job is over and everything was sent (`follow.follow`)."""
        return follow(self._transport, job_id, is_over=lambda: self.get(job_id).is_final, **where)

    def watch(
        self, job_id: str, *, lines: int = 8, timeout: float | None = None, until: Callable[[Job], bool] | None = None
    ) -> Job:
        """As `wait`, and shows the job meanwhile: in a notebook its phase, its progress, its last `lines` of output and
        a link to its page; elsewhere a line for each change. Interrupting it leaves the job as it is."""
        output = notebook.Output()

        def show(job: Job) -> None:
            last = [one for one in self.lines(job_id, start=-lines) if isinstance(one, LogLine)] if lines else []
            words = [f"{one.role}-{one.index} | {one.text}" for one in last[-lines:]]
            output.show(notebook.job_as_html(job, words, self._transport.url), notebook.job_as_text(job))

        return self.wait(job_id, timeout=timeout, each=show, until=until)

    def wait(
        self,
        job_id: str,
        *,
        timeout: float | None = None,
        each: Callable[[Job], None] | None = None,
        until: Callable[[Job], bool] | None = None,
        on_phase: Callable[[Job], object] | None = None,
        give_up_after: float = waiting.PATIENCE,
    ) -> Job:
        """Until the job is final, or `until` says so of it. Calls `each` with every state seen, its progress too;
        without it fewer are looked at. `on_phase` is called with the first state and where the phase has changed.

        Raises:
            TimeoutError: that is not so after `timeout` seconds. NotReachable: the portal has not answered for
                `give_up_after` seconds.
        """
        return waiting.wait(
            self._transport, self.get, job_id, timeout=timeout, each=each, until=until, on_phase=on_phase,
            give_up_after=give_up_after,
        )  # fmt: skip

    def wait_all(
        self,
        job_ids: Sequence[str],
        *,
        timeout: float | None = None,
        on_phase: Callable[[Job], object] | None = None,
    ) -> Sequence[Job]:
        """Until all of them are final, in the order given. `on_phase` as of `wait`.

        Raises:
            Unfinished: some are not after `timeout` seconds; `jobs` has all as they were last seen.
        """
        return waiting.wait_all(self._transport, self.get, job_ids, timeout=timeout, on_phase=on_phase)


def is_wanted(path: str, patterns: Sequence[str]) -> bool:
    """Whether one of the patterns is for this path, `*` also for what lies in folders. Without patterns all are."""
    return not patterns or any(fnmatchcase(path, one) for one in patterns)


def _request(spec: Mapping[str, Any], namespace: str | None, engine: str | None) -> dict[str, Any]:
    return {"spec": dict(spec)} | _only(namespace=namespace, engine=engine)


def _answers(accept_never_fits: bool, confirm_foreign_model: bool) -> dict[str, bool]:
    asked = {"accept_never_fits": accept_never_fits, "confirm_foreign_model": confirm_foreign_model}
    return {name: True for name, is_said in asked.items() if is_said}


def _only(**values: str | None) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}

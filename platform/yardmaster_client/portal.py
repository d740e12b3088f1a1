"""`Yardmaster`: everything that a program can ask of the portal, by subject."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, TypeVar

from yardmaster_client import uploads
from yardmaster_client.credentials import load_credentials
from yardmaster_client.follow import follow
from yardmaster_client.models import (
    Code,
    CodeVersion,
    Dataset,
    DatasetVersion,
    Job,
    LogGap,
    LogLine,
    Model,
    Namespace,
    read,
)
from yardmaster_client.transport import Transport

Item = TypeVar("Item", bound=Dataset | Code)
Version = TypeVar("Version", bound=DatasetVersion | CodeVersion)


class Yardmaster:
    """A portal, seen by one user. Use it as a context manager, or call `close`."""

    def __init__(self, url: str, token: str = "") -> None:
        self.transport = Transport(url, token)
        self.jobs = Jobs(self.transport)
        self.datasets: Store[Dataset, DatasetVersion] = Store(self.transport, "dataset", Dataset, DatasetVersion)
        self.code: Store[Code, CodeVersion] = Store(self.transport, "code", Code, CodeVersion)

    @classmethod
    def from_environment(cls) -> Yardmaster:
        """From YARDMASTER_URL and YARDMASTER_TOKEN, else from what `yardmaster login` has stored.

        Raises:
            LookupError: neither is there.
        """
        stored = load_credentials()
        url = os.environ.get("YARDMASTER_URL") or (stored.url if stored else "")
        token = os.environ.get("YARDMASTER_TOKEN") or (stored.token if stored else "")
        if not url or not token:
            raise LookupError("Not signed in: run `yardmaster login`, or set YARDMASTER_URL and YARDMASTER_TOKEN.")
        return cls(url, token)

    @classmethod
    def sign_in(cls, url: str, username: str, password: str, *, name: str = "command line") -> Yardmaster:
        """With a new personal token in exchange for a password."""
        with Yardmaster(url) as stranger:
            body = {"username": username, "password": password, "name": name}
            return cls(url, stranger.transport.post("auth/token/", body)["token"])

    def me(self) -> dict[str, Any]:
        return dict(self.transport.get("me/"))

    def namespaces(self) -> Iterator[Namespace]:
        return (read(Namespace, row) for row in self.transport.pages("namespaces/"))

    def models(self, **filters: Any) -> Iterator[Model]:
        return (read(Model, row) for row in self.transport.pages("models/", **filters))

    def close(self) -> None:
        self.transport.close()

    def __enter__(self) -> Yardmaster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Jobs:
    """Jobs: launch, look, follow, stop."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def launch(self, spec: Mapping[str, Any], *, namespace: str | None = None, engine: str | None = None) -> Job:
        return read(Job, self._transport.post("jobs/", _request(spec, namespace, engine)))

    def check(
        self, spec: Mapping[str, Any], *, namespace: str | None = None, engine: str | None = None
    ) -> dict[str, Any]:
        """Would it run? Creates nothing; `{"verdict": "fits_now" | "waits" | "never_fits", "reason", "message", …}`."""
        return dict(self._transport.post("jobs/check/", _request(spec, namespace, engine)))

    def list(self, **filters: Any) -> Iterator[Job]:
        """Newest first. Filters: phase, namespace, strategy, owner, search."""
        return (read(Job, row) for row in self._transport.pages("jobs/", **filters))

    def get(self, job_id: str) -> Job:
        return read(Job, self._transport.get(f"jobs/{job_id}/"))

    def why(self, job_id: str) -> dict[str, Any]:
        return dict(self._transport.get(f"jobs/{job_id}/why/"))

    def stop(self, job_id: str) -> Job:
        return read(Job, self._transport.post(f"jobs/{job_id}/stop/"))

    def retry(self, job_id: str) -> Job:
        return read(Job, self._transport.post(f"jobs/{job_id}/retry/"))

    def delete(self, job_id: str) -> None:
        self._transport.delete(f"jobs/{job_id}/")

    def tasks(self, job_id: str) -> tuple[dict[str, Any], ...]:
        answer = self._transport.get(f"jobs/{job_id}/tasks/")
        return tuple(answer["results"] if isinstance(answer, dict) else answer)

    def model(self, job_id: str) -> dict[str, Any]:
        return dict(self._transport.get(f"jobs/{job_id}/model/"))

    def follow(self, job_id: str, **where: Any) -> Iterator[LogLine | LogGap]:
        """Log lines as they come, until the job is over and everything was sent (`follow.follow`)."""
        return follow(self._transport, job_id, is_over=lambda: self.get(job_id).is_final, **where)

    def wait(self, job_id: str, *, timeout: float | None = None, each: Callable[[Job], None] = lambda job: None) -> Job:
        """Until the job is final. Calls `each` with every state seen.

        Raises:
            TimeoutError: it is not final after `timeout` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            job = self.get(job_id)
            each(job)
            if job.is_final:
                return job
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"{job.name} is still {job.phase} after {timeout:g} s.")
            time.sleep(0.5)


class Store(Generic[Item, Version]):
    """Datasets, or code: named things with immutable versions."""

    def __init__(self, transport: Transport, kind: str, item: type[Item], version: type[Version]) -> None:
        self._transport, self._kind, self._item, self._version = transport, kind, item, version
        self._path = "datasets" if kind == "dataset" else "code"

    def list(self, **filters: Any) -> Iterator[Item]:
        return (read(self._item, row) for row in self._transport.pages(f"{self._path}/", **filters))

    def get(self, item_id: str) -> Item:
        return read(self._item, self._transport.get(f"{self._path}/{item_id}/"))

    def find(self, name: str, *, namespace: str | None = None) -> Item | None:
        """The one with exactly this name, or None."""
        rows = self.list(search=name, namespace=namespace)
        return next((item for item in rows if item.name == name), None)

    def versions(self, item_id: str) -> Iterator[Version]:
        return (read(self._version, row) for row in self._transport.pages(f"{self._path}/{item_id}/versions/"))

    def put(
        self,
        name: str,
        paths: Iterable[Path],
        *,
        namespace: str | None = None,
        note: str = "",
        description: str = "",
        resume: str | None = None,
        unpack: bool = False,
        progress: uploads.Progress = lambda done, total: None,
    ) -> Item:
        """Upload `paths` as a new version of `name`, which is made where it does not exist."""
        existing = self.find(name, namespace=namespace)
        upload = uploads.upload(
            self._transport, self._kind, uploads.find_files(paths),
            namespace=namespace, resume=resume, unpack=unpack, progress=progress,
        )  # fmt: skip
        if existing:
            self._transport.post(f"{self._path}/{existing.id}/versions/", {"upload": upload, "note": note})
            return self.get(existing.id)
        body = {"name": name, "upload": upload, "description": description}
        return read(self._item, self._transport.post(f"{self._path}/", body | _only(namespace=namespace)))

    def delete(self, item_id: str) -> None:
        self._transport.delete(f"{self._path}/{item_id}/")


def _request(spec: Mapping[str, Any], namespace: str | None, engine: str | None) -> dict[str, Any]:
    return {"spec": dict(spec)} | _only(namespace=namespace, engine=engine)


def _only(**values: str | None) -> dict[str, str]:
    return {name: value for name, value in values.items() if value}

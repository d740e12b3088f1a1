"""Sessions of the workbench: TensorBoards and Jupyters. Start, wait, open, stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from yardmaster_client.models import read
from yardmaster_client.transport import Transport

LOOK_EVERY = 1.0


@dataclass(frozen=True)
class KeptFiles:
    """What a Jupyter keeps when it is stopped. `size` in bytes, of the namespace's storage; `reserved`: used or not."""

    size: int
    reserved: bool = False
    deleting: bool = False
    message: str = ""


@dataclass(frozen=True)
class Selection:
    """The jobs that a TensorBoard of a namespace shows, the newest ones, and `of` how many."""

    jobs: int
    of: int
    message: str = ""


@dataclass(frozen=True)
class Session:
    """A TensorBoard of a namespace, or one's own Jupyter. `kind` is tensorboard or jupyter; `state` is queued,
    starting, loading, ready, stopping, stopped or failed."""

    id: str
    kind: str
    name: str
    state: str
    message: str = ""
    """What it waits for, or why it ended."""
    remedy: str = ""
    namespace: str = ""
    owner: str = ""
    jobs: tuple[str, ...] = ()
    """The ids of the jobs that a TensorBoard shows; none: all of its namespace."""
    selection: Selection | None = None
    """Which of the namespace's jobs a TensorBoard shows; None: all."""
    job: str | None = None
    """The job that runs it."""
    size: str = ""
    spark_executors: int = 0
    """Of the Spark cluster that a Jupyter has."""
    spark_cluster: str = ""
    """The registered one that they are of; empty: they are within the session."""
    spark_cores: int | None = None
    """Of each executor there; None: they share the session's size."""
    spark_memory: int | None = None
    """The same in bytes."""
    url: str = ""
    """Below the portal's address: opens it, in a browser that is signed in. It stays the same."""
    idle_limit: int = 0
    restarts: bool = False
    """It is started again once it has stopped."""
    taken_over_by: str | None = None
    started_by: str | None = None
    started_at: datetime | None = None
    last_used_at: datetime | None = None
    stops_at: datetime | None = None
    stops_soon: bool = False
    stops_anyway: bool = False
    """At `stops_at` it has run for as long as a session may, and is stopped also if it is used."""
    files: KeptFiles | None = None

    @property
    def runs(self) -> bool:
        """Whether it is ready, or on its way."""
        return self.state in ("queued", "starting", "loading", "ready")


@dataclass(frozen=True)
class Size:
    """A preset of the portal's: cores, and bytes of memory."""

    name: str
    cpu: float
    memory: int


class Sessions:
    """TensorBoards and Jupyters."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, namespace: str | None = None, kind: str | None = None) -> Iterator[Session]:
        """Also those that were stopped, the newest first. Of many no port is asked: one that was not seen to be ready
        is said to load."""
        return (read(Session, row) for row in self._transport.pages("sessions/", namespace=namespace, kind=kind))

    def get(self, session_id: str) -> Session:
        return read(Session, self._transport.get(f"sessions/{session_id}/"))

    def sizes(self) -> tuple[Size, ...]:
        return tuple(read(Size, row) for row in self._transport.get("sessions/sizes/"))

    def start(
        self, kind: str, *, namespace: str | None = None, jobs: Sequence[str] = (), size: str | None = None, **more: Any
    ) -> Session:
        """Start a TensorBoard (of these jobs, or of the whole namespace) or one's own Jupyter. One that runs already is
        returned. `more`: idle_limit (seconds), engine, environment (packages), spark_executors and spark_cluster
        (of a Jupyter), spark_cores and spark_memory (of each executor on that cluster), accept_never_fits."""
        body = {"kind": kind, "namespace": namespace, "jobs": [*jobs] or None, "size": size, **more}
        sent = {name: value for name, value in body.items() if value is not None}
        return read(Session, self._transport.post("sessions/", sent))

    def stop(self, session_id: str) -> Session:
        """Its quota is returned, and the files of a Jupyter stay."""
        return read(Session, self._transport.post(f"sessions/{session_id}/stop/"))

    def restart(self, session_id: str, *, size: str | None = None) -> Session:
        """Stop it and start it again, with another size if one is named."""
        return read(Session, self._transport.post(f"sessions/{session_id}/restart/", {"size": size or ""}))

    def extend(self, session_id: str, *, idle_limit: int | None = None) -> Session:
        """Count the time without use from now."""
        body = {} if idle_limit is None else {"idle_limit": idle_limit}
        return read(Session, self._transport.post(f"sessions/{session_id}/extend/", body))

    def delete_files(self, session_id: str) -> None:
        """Delete for good what a stopped Jupyter keeps. It takes a moment, and returns the storage quota."""
        self._transport.delete(f"sessions/{session_id}/files/")

    def wait(
        self, session_id: str, *, timeout: float | None = None, each: Callable[[Session], None] | None = None
    ) -> Session:
        """Until it is ready, or will not be. Raises TimeoutError where it is neither after `timeout` seconds."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            found = self.get(session_id)
            if each is not None:
                each(found)
            if found.state == "ready" or not (found.runs or found.restarts):
                return found
            if until is not None and time.monotonic() > until:
                raise TimeoutError(f"{found.name} is still {found.state} after {timeout:g} s.")
            time.sleep(LOOK_EVERY)

    def address(self, session: Session) -> str:
        """Where a browser opens it."""
        return f"{self._transport.url}{session.url}"

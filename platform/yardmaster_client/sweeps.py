"""Sweeps: one job many times with other values. What may be tried is said by the portal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from yardmaster_client.models import read
from yardmaster_client.transport import Transport


@dataclass(frozen=True)
class Trial:
    """One trial. `job` is None before its launch, and once its job is deleted; `best` is that of the metric."""

    number: int
    values: dict[str, Any] = field(default_factory=dict)
    state: str = ""
    job: str | None = None
    stop_reason: str = ""
    steps: int | None = None
    value: float | None = None
    best: float | None = None
    best_step: int | None = None
    curve: tuple[Any, ...] = ()
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True)
class Sweep:
    """A sweep. `counts` and `best` are of one that was asked for by itself."""

    id: str
    name: str
    state: str
    count: int
    namespace: str = ""
    namespace_slug: str = ""
    owner: str = ""
    engine: str = ""
    reason: str = ""
    waiting: str = ""
    plan: dict[str, Any] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    best: dict[str, Any] | None = None
    warnings: tuple[dict[str, Any], ...] = ()
    created_at: datetime | None = None
    ended_at: datetime | None = None


class Sweeps:
    """Sweeps: create, look, wait, stop."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
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
        where = {key: value for key, value in (("namespace", namespace), ("engine", engine)) if value}
        body = {"spec": dict(spec), "plan": dict(plan), "accept_never_fits": accept_never_fits, **where}
        return read(Sweep, self._transport.post("sweeps/", body))

    def list(self, *, namespace: str | None = None) -> Iterator[Sweep]:
        """The newest first."""
        return (read(Sweep, row) for row in self._transport.pages("sweeps/", namespace=namespace))

    def get(self, sweep_id: str) -> Sweep:
        return read(Sweep, self._transport.get(f"sweeps/{sweep_id}/"))

    def trials(self, sweep_id: str) -> Iterator[Trial]:
        """By number."""
        return (read(Trial, row) for row in self._transport.pages(f"sweeps/{sweep_id}/trials/", page_size=200))

    def stop(self, sweep_id: str) -> Sweep:
        """Also the trials that run."""
        return read(Sweep, self._transport.post(f"sweeps/{sweep_id}/stop/"))

    def pause(self, sweep_id: str) -> Sweep:
        """Launch no more trials."""
        return read(Sweep, self._transport.post(f"sweeps/{sweep_id}/pause/"))

    def resume(self, sweep_id: str) -> Sweep:
        return read(Sweep, self._transport.post(f"sweeps/{sweep_id}/resume/"))

    def delete(self, sweep_id: str, *, with_jobs: bool = False) -> None:
        """One that has ended; its jobs are kept unless `with_jobs`."""
        self._transport.delete(f"sweeps/{sweep_id}/{'?jobs=true' if with_jobs else ''}")

    def wait(self, sweep_id: str, *, timeout: float | None = None, each: Callable[[Sweep], None] = lambda one: None
             ) -> Sweep:  # fmt: skip
        """Until it has ended, or is paused. Calls `each` with what is known meanwhile.

        Raises:
            TimeoutError: it took longer.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            found = self.get(sweep_id)
            each(found)
            if found.state in ("ended", "paused"):
                return found
            if end is not None and time.monotonic() >= end:
                raise TimeoutError(f"The sweep {found.name} is still {found.state} after {timeout:g} s.")
            time.sleep(2.0)

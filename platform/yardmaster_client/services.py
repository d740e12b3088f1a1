"""Models that are served: start, wait, ask, stop."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from yardmaster_client.models import read
from yardmaster_client.transport import Transport

LOOK_EVERY = 1.0
_PREDICT = 90.0
"""Seconds; the portal waits 60 for the model."""


@dataclass(frozen=True)
class Service:
    """A version of a model that is served. `state` is queued, starting, loading, ready, stopping, stopped or failed."""

    id: str
    model_name: str
    model_version: str
    number: int
    state: str
    message: str = ""
    remedy: str = ""
    job: str | None = None
    url: str = ""
    """Where TensorFlow Serving's REST API begins, below the portal's address."""
    idle_limit: int = 0
    requests: int = 0
    started_by: str | None = None
    started_at: datetime | None = None
    last_used_at: datetime | None = None
    stops_at: datetime | None = None
    stops_soon: bool = False

    @property
    def runs(self) -> bool:
        """Whether it is ready, or on its way."""
        return self.state in ("queued", "starting", "loading", "ready")


class Services:
    """Model servers."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, *, namespace: str | None = None) -> Iterator[Service]:
        """Those that run, the newest first."""
        return (read(Service, row) for row in self._transport.pages("services/", namespace=namespace))

    def get(self, service_id: str) -> Service:
        return read(Service, self._transport.get(f"services/{service_id}/"))

    def start(self, model_version: str, *, idle_limit: int | None = None, **more: Any) -> Service:
        """Serve this version; one that is served already is returned, with `idle_limit` (seconds) if it is given.
        `more`: cpu, memory (bytes, or "2Gi"), engine, accept_never_fits, confirm_foreign_model."""
        body: Mapping[str, Any] = {"model_version": model_version, "idle_limit": idle_limit, **more}
        sent = {name: value for name, value in body.items() if value is not None}
        return read(Service, self._transport.post("services/", sent))

    def of(self, model_version: str) -> Service | None:
        """The service of this version that runs now."""
        return next((one for one in self.list() if one.model_version == model_version), None)

    def stop(self, service_id: str) -> Service:
        return read(Service, self._transport.post(f"services/{service_id}/stop/"))

    def extend(self, service_id: str, *, idle_limit: int | None = None) -> Service:
        """Count the time without requests from now."""
        body = {} if idle_limit is None else {"idle_limit": idle_limit}
        return read(Service, self._transport.post(f"services/{service_id}/extend/", body))

    def wait(
        self, service_id: str, *, timeout: float | None = None, each: Callable[[Service], None] | None = None
    ) -> Service:
        """Until it is ready, or will not be. Raises TimeoutError where it is neither after `timeout` seconds."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            found = self.get(service_id)
            if each is not None:
                each(found)
            if found.state == "ready" or not found.runs:
                return found
            if until is not None and time.monotonic() > until:
                raise TimeoutError(f"{found.model_name} is still {found.state} after {timeout:g} s.")
            time.sleep(LOOK_EVERY)

    def predict(self, model_version: str, body: Mapping[str, Any], *, method: str = "predict") -> dict[str, Any]:
        """What the model says of `{"instances": […]}` or `{"inputs": …}`; with the method `classify` or `regress` of
        `{"examples": […]}`. Raises PortalError with the model server's words."""
        patient = Transport(self._transport.url, self._transport.token, timeout=_PREDICT)
        try:
            # Written here: it may have NaN, which the HTTP library refuses.
            return dict(patient.post(f"model-versions/{model_version}/{method}/", json.dumps(body).encode()))
        finally:
            patient.close()

"""A served model without TensorFlow: the real model server, whose model adds up rows, behind the gate of a task."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from apps.hosting import state
from apps.jobs.models import Job
from apps.jobs.state.task_auth import token_of
from apps.registry.models import ModelVersion
from tests.integration.jobs.conftest import engine_settings, stores, world
from tests.integration.model_versions import job_of, version_of
from yardmaster.engines.base import Address
from yardmaster_runner.gate import Gate
from yardmaster_runner.service_token import service_token
from yardmaster_runner.serving.api import Api
from yardmaster_runner.serving.http_server import Server
from yardmaster_runner.serving.signatures import DEFAULT, BadRequest, Signature, Tensor

__all__ = ["engine_settings", "stores", "world"]

ROWS = Signature(DEFAULT, {"x": Tensor("x", "float32", (None, 2))}, {"sum": Tensor("sum", "float32", (None,))})


class Sums:
    """A model that adds up its rows; without NumPy, whose arrays the server would make."""

    kind = "SavedModel"
    signatures: Mapping[str, Signature] = {DEFAULT: ROWS}


@dataclass
class Served:
    """The server's API, and the gate before it, which learns of which task it is."""

    api: Api
    gate: Gate

    @property
    def address(self) -> Address:
        return Address("127.0.0.1", self.gate.port)

    def load(self, job: Job) -> None:
        """The model of this job's current attempt is in memory now."""
        self.gate.key = service_token(token_of(job.pk, job.attempt))
        self.api.loaded = Sums()  # type: ignore[assignment]


class ApiOfSums(Api):
    """As the real one, but for the arrays."""

    def _call(self, verb: str, body: bytes) -> Any:
        from yardmaster_runner.serving import requests

        if verb != "predict":
            return 200, {"results": [verb, json.loads(body)["examples"]]}
        asked = requests.read(body, self._ready().signatures)
        rows = asked.values["x"]
        if any(len(row) != 2 for row in rows):
            raise BadRequest("The input x has another shape. Expected x: float32 [?, 2].")
        if rows == [[0, 0]]:
            return 200, {"predictions": ["x" * 2_000_000]}
        self._count(failed=False)
        return 200, requests.answer(asked, {"sum": [sum(row) for row in rows]})


@pytest.fixture
def served(world, tmp_path, monkeypatch) -> Iterator[Served]:
    """What answers at the address of every task of the staged engine; it loads until a test says otherwise. However
    slow the machine is, a look at it is waited for, and the next one may come at once."""
    monkeypatch.setattr(state, "HEALTH", 20.0)
    monkeypatch.setattr(state, "SLOW", 60.0)
    gate = Gate("127.0.0.1:0", "not known yet", str(tmp_path))
    api = ApiOfSums("digits", "1", 1 << 20)
    server = Server(gate.socket_path, api.answer, 1 << 20)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    found = Served(api, gate)
    world.engine.served_at = found.address
    yield found
    server.shutdown()
    thread.join()
    server.server_close()
    gate.close()


@pytest.fixture
def version(world, ada) -> ModelVersion:
    """A version of the model `digits` of ada."""
    makers = [{"part": "run", "user": str(ada.pk), "name": "ada"}]
    return version_of(job_of(ada, phase="SUCCEEDED", cleaned_up_at=world.now), source={"makers": makers})

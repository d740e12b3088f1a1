"""`yardmaster datasets make`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from yardmaster_client.cli.main import run
from yardmaster_client.portal import Yardmaster

MADE = {"id": "m1", "name": "keras-mnist", "state": "ready", "received": 11 << 20, "problem": None,
        "dataset_version": "v1"}  # fmt: skip


class Portal:
    """Answers as a portal would, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.end: dict[str, Any] = MADE

    def __enter__(self) -> Portal:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def dataset_make(self, source: str, *, namespace: str) -> dict[str, Any]:
        self.asked.append((source, namespace))
        return MADE | {"state": "making"}

    def dataset_make_wait(self, made: str, each: Any) -> dict[str, Any]:
        self.asked.append(made)
        each(MADE | {"state": "making", "received": 5})
        return self.end


@pytest.fixture
def portal(monkeypatch: pytest.MonkeyPatch) -> Portal:
    made = Portal()
    monkeypatch.setattr(Yardmaster, "from_environment", lambda: made)
    return made


def test_it_waits_and_says_how_a_job_uses_it(portal: Portal, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["datasets", "make", "keras/mnist", "--namespace", "vision"]) == 0
    assert portal.asked == [("keras/mnist", "vision"), "m1"]
    said = capsys.readouterr().out
    assert "inputs: [{dataset: keras-mnist}]\nenvironment: {KERAS_HOME: $DATA_DIR}" in said


def test_a_failure_is_said_with_its_remedy(portal: Portal, capsys: pytest.CaptureFixture[str]) -> None:
    problem = {"code": "download_failed", "detail": "The portal cannot reach h.", "remedy": "Name a mirror."}
    portal.end = MADE | {"state": "failed", "problem": problem, "dataset_version": None}
    assert run(["datasets", "make", "keras/mnist"]) != 0
    said = capsys.readouterr().err
    assert "The portal cannot reach h." in said
    assert "Name a mirror." in said


def test_json(portal: Portal, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["datasets", "make", "keras/mnist", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == MADE

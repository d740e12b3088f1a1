"""`yardmaster jobs stop` says that the job is being stopped, or how it has ended."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.client.flaky_server import FlakyServer
from yardmaster_client.cli.main import run

ID = "01a2271b-8165-7cc5-8d05-0123456789ab"
ROW: dict[str, Any] = {"id": ID, "name": "ignite-growing", "phase": "RUNNING"}
STOPPED = ROW | {"phase": "STOPPED", "reason": "Stopped", "message": "Ada stopped it."}


@pytest.fixture
def answers(server: FlakyServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What the portal says by the end of the address; else the job that runs."""
    said: dict[str, Any] = {}
    server.by_path = lambda asked: (200, next((row for end, row in said.items() if asked.path.endswith(end)), ROW))
    monkeypatch.setenv("YARDMASTER_URL", server.url)
    monkeypatch.setenv("YARDMASTER_TOKEN", "token")
    return said


@pytest.mark.parametrize(
    ("options", "after", "expected"),
    [
        ([], ROW, "Stopping ignite-growing. Phase: RUNNING."),
        ([], ROW | {"phase": "STOPPING"}, "Stopping ignite-growing. Phase: STOPPING."),
        ([], STOPPED, "STOPPED ignite-growing: Ada stopped it."),
        (["--wait"], STOPPED, "STOPPED ignite-growing: Ada stopped it."),
    ],
)
def test_stop_says_that_the_job_is_being_stopped_or_has_stopped(
    answers: dict[str, Any], capsys: pytest.CaptureFixture[str], options: list[str], after: Any, expected: str
) -> None:
    answers["/stop/"] = ROW if options else after
    answers[f"/jobs/{ID}/"] = after  # what waiting sees
    assert run(["jobs", "stop", ID, *options]) == 0
    assert expected in capsys.readouterr().err.splitlines()


def test_stop_prints_the_job_as_json(answers: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["jobs", "stop", ID, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["phase"] == "RUNNING"

"""`yardmaster jobs notebook`: where the file comes to lie, and what it never does to one that is there."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest

from tests.unit.client.flaky_server import Asked, FlakyServer
from yardmaster_client import Yardmaster
from yardmaster_client.cli.main import run

JOB = str(uuid.UUID(int=7))
NOTEBOOK = '{"cells": ["grpc://10.0.0.1:2222 – ready"]}\n'


@pytest.fixture(autouse=True)
def _signed_in(server: FlakyServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("YARDMASTER_URL", server.url)
    monkeypatch.setenv("YARDMASTER_TOKEN", "secret")
    monkeypatch.chdir(tmp_path)


def serve(server: FlakyServer, notebook: tuple[int, object]) -> None:
    def answer(asked: Asked) -> tuple[int, object]:
        if asked.path.endswith("/notebook/"):
            return notebook
        return 200, {"id": JOB, "name": "servers", "phase": "RUNNING", "strategy": "in_graph"}

    server.by_path = answer


@pytest.fixture
def served(server: FlakyServer) -> FlakyServer:
    serve(server, (200, NOTEBOOK.encode()))
    return server


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize(
    ("given", "place"),
    [
        ([], f"in-graph-{JOB}.ipynb"),
        (["-o", "drive.ipynb"], "drive.ipynb"),
        (["-o", "folder"], f"folder/in-graph-{JOB}.ipynb"),
    ],
)
def test_it_lies_where_it_is_wanted(tmp_path: Path, capsys: pytest.CaptureFixture[str], given: list[str], place: str):
    (tmp_path / "folder").mkdir()
    assert run(["jobs", "notebook", JOB, *given]) == 0
    assert (tmp_path / place).read_text(encoding="utf-8") == NOTEBOOK
    assert place in capsys.readouterr().err
    assert run(["jobs", "notebook", JOB, *given, "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"job": JOB, "file": place}


@pytest.mark.usefixtures("served")
def test_a_file_that_is_there_stays_as_it_is_unless_forced(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "mine.ipynb").write_text("hours of work")
    assert run(["jobs", "notebook", JOB, "-o", "mine.ipynb"]) == 2
    assert "--force" in capsys.readouterr().err
    assert (tmp_path / "mine.ipynb").read_text() == "hours of work"
    assert run(["jobs", "notebook", JOB, "-o", "mine.ipynb", "--force"]) == 0
    assert (tmp_path / "mine.ipynb").read_text(encoding="utf-8") == NOTEBOOK


@pytest.mark.usefixtures("served")
def test_a_folder_that_is_not_there_is_wrong_usage(tmp_path: Path):
    assert run(["jobs", "notebook", JOB, "-o", "nowhere/drive.ipynb"]) == 2


@pytest.mark.parametrize("status", [404, 409])
def test_what_the_portal_refuses_is_said_and_leaves_no_file(
    server: FlakyServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], status: int
):
    serve(server, (status, {"code": "x", "detail": "The job has no notebook.", "remedy": "Read the page."}))
    (tmp_path / "mine.ipynb").write_text("hours of work")
    assert run(["jobs", "notebook", JOB, "-o", "mine.ipynb", "--force"]) == 1
    assert "has no notebook" in capsys.readouterr().err
    assert run(["jobs", "notebook", JOB]) == 1
    assert [one.name for one in tmp_path.iterdir()] == ["mine.ipynb"]
    assert (tmp_path / "mine.ipynb").read_text() == "hours of work"


def test_the_sdk_gives_its_text(served: FlakyServer):
    with Yardmaster(served.url, "secret") as portal:
        assert portal.jobs.notebook(JOB) == NOTEBOOK

"""The command and the SDK against a real portal: its web process and message server, on a port of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.real.portal import RealPortal, light_portal
from yardmaster_client import Yardmaster
from yardmaster_client.cli.main import run

__all__ = ["light_portal"]

PASSWORD = "correct horse battery"


@pytest.fixture(scope="session")
def ada(light_portal: RealPortal) -> Iterator[Yardmaster]:
    """An administrator, so that she may use the local engine."""
    with Yardmaster(light_portal.url, light_portal.token_of("ada", is_staff=True)) as portal:
        yield portal


@dataclass(frozen=True)
class Ran:
    """What a run of the command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def yardmaster(
    ada: Yardmaster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Ran]:
    """Runs the command signed in as ada; keyword arguments are environment variables. Inside this process, because one
    of its own takes a second to start (`test_the_command_runs_as_a_program` has one)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("COLUMNS", "200")

    def run_command(*arguments: object, **environment: str) -> Ran:
        told = {"YARDMASTER_URL": ada.transport.url, "YARDMASTER_TOKEN": ada.transport.token, **environment}
        for name, value in told.items():
            monkeypatch.setenv(name, value)
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        return Ran(code, *capsys.readouterr())

    return run_command


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A folder with a training script."""
    folder = tmp_path / "training"
    folder.mkdir()
    (folder / "train.py").write_text("print('hello')\n")
    return folder


@pytest.fixture
def job_file(tmp_path: Path) -> Path:
    file = tmp_path / "job.yaml"
    file.write_text(
        "name: hello\n"
        "strategy: single\n"
        "roles:\n"
        "  worker: {replicas: 1, cpu: 0.1, memory: 64Mi}\n"
        "code: training\n"
        "entry_point: train.py\n"
    )
    return file

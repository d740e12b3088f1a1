"""`yardmaster datasets`: what is asked of the portal, and what is said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from yardmaster_client.cli import datasets
from yardmaster_client.cli.main import run
from yardmaster_client.models import Dataset, DatasetVersion
from yardmaster_client.portal import Yardmaster
from yardmaster_client.stores import Store

MANY = 2_500


class Transport:
    """Lists of a portal whose version has many files; notes which pages were asked for."""

    def __init__(self) -> None:
        self.pages_asked: list[int] = []

    def pages(self, path: str, *, page_size: int = 50, **params: Any) -> Iterator[dict[str, Any]]:
        for at in range(0 if path.endswith("/files/") else MANY, MANY, page_size):
            self.pages_asked.append(page_size)
            yield from ({"path": f"f{number:04}", "size": 1} for number in range(at, min(at + page_size, MANY)))


@pytest.fixture
def portal(monkeypatch: pytest.MonkeyPatch) -> Transport:
    transport = Transport()
    store: Any = Store(transport, "dataset", Dataset, DatasetVersion)  # type: ignore[arg-type]
    made = SimpleNamespace(datasets=store, code=store)
    monkeypatch.setattr(Yardmaster, "from_environment", lambda: _Entered(made))
    monkeypatch.setattr(datasets, "find_version", lambda *_: DatasetVersion("v1", 1, files=MANY))
    monkeypatch.setattr(datasets, "find_item", lambda *_: Dataset("d1", "many"))
    return transport


class _Entered:
    def __init__(self, portal: Any) -> None:
        self._portal = portal

    def __enter__(self) -> Any:
        return self._portal

    def __exit__(self, *_: object) -> None:
        return None


def test_the_first_files_of_a_large_version_are_shown_and_the_others_on_demand(
    portal: Transport, capsys: pytest.CaptureFixture[str]
):
    assert run(["datasets", "show", "many"]) == 0
    said = capsys.readouterr()
    assert ("f0049" in said.out, "f0050" in said.out, portal.pages_asked) == (True, False, [50])
    assert "2,450 more files" in said.err
    assert "yardmaster datasets ls many" in " ".join(said.err.split())
    assert run(["datasets", "show", "many", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["files"]) == 50
    assert run(["code", "show", "many"]) == 0
    assert "datasets ls" not in capsys.readouterr().err


def test_all_files_are_asked_for_a_thousand_at_a_time(portal: Transport, capsys: pytest.CaptureFixture[str]):
    assert run(["datasets", "show", "many", "--all-files", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["files"]) == MANY
    assert portal.pages_asked == [1_000] * 3

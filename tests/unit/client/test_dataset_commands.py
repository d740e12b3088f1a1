"""`yardmaster datasets`: what is asked of the portal, and what is said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from yardmaster_client.cli import datasets
from yardmaster_client.cli.main import run
from yardmaster_client.local_files import find_files
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


@pytest.mark.parametrize(
    ("path", "name"),
    [("reviews.tar.gz", "reviews"), ("a.b.ZIP", "a.b"), ("table.csv", "table"), (".tar", ".tar"), ("x.tar.zst", "x")],
)
def test_an_upload_is_called_as_its_file_without_endings(tmp_path: Path, path: str, name: str):
    (tmp_path / path).touch()
    assert datasets.name_of(tmp_path / path) == name


class Uploads:
    """A store that takes what it is given."""

    def put(self, name: str, paths: list[Path], *, left_out: Any, follow_links: bool, **_: Any) -> Dataset:
        find_files(paths, follow_links=follow_links, left_out=left_out)
        return Dataset("d1", name)


def test_an_upload_says_which_links_it_leaves_out_and_how_an_archive_is_extracted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(Yardmaster, "from_environment", lambda: _Entered(SimpleNamespace(datasets=Uploads())))
    (tmp_path / "data.tar.gz").touch()
    for number in range(7):
        (tmp_path / f"link{number}").symlink_to(tmp_path / "data.tar.gz")
    assert run(["datasets", "upload", str(tmp_path), "--name", "x"]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "7 links are left out" in said
    assert "and 2 more): --follow-links" in said
    assert run(["datasets", "upload", str(tmp_path), "--name", "x", "--follow-links"]) == 0
    assert "left out" not in capsys.readouterr().err
    assert run(["datasets", "upload", str(tmp_path / "data.tar.gz")]) == 0
    assert "--unpack" in capsys.readouterr().err
    assert run(["datasets", "upload", str(tmp_path / "data.tar.gz"), "--unpack"]) == 0
    assert "--unpack" not in capsys.readouterr().err


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

"""One file from its address to its place."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from tests.unit.client.flaky_server import flaky_server
from yardmaster_runner import download as fetching
from yardmaster_runner import stage
from yardmaster_runner.cache import CachedVersion
from yardmaster_runner.download import Corrupt, download
from yardmaster_runner.http_hosts import Hosts
from yardmaster_runner.order import Bundle, RemoteFile
from yardmaster_runner.stage import Stager

DATA = bytes(range(256)) + b"end"


def _file(data: bytes, path: str = "a.bin") -> RemoteFile:
    return RemoteFile(path, len(data), hashlib.sha256(data).hexdigest(), "")


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "_own_space", lambda: memoryview(bytearray(64)))


def test_a_file_of_many_pieces_lies_in_a_folder_that_was_not_there(tmp_path: Path) -> None:
    with flaky_server() as store:
        store.answers = [(200, DATA)]
        hosts = Hosts()
        for name in ("a.bin", "b.bin"):
            download(hosts, _file(DATA), store.url, str(tmp_path / "deep" / "er" / name), str(tmp_path))
        assert len({asked.peer for asked in store.asked}) == 1
        hosts.forget(store.url)
    assert [(tmp_path / "deep" / "er" / name).read_bytes() for name in ("a.bin", "b.bin")] == [DATA, DATA]
    assert [one.name for one in tmp_path.iterdir()] == ["deep"]


def test_a_piece_that_is_damaged_leaves_nothing(tmp_path: Path) -> None:
    with flaky_server() as store:
        store.answers = [(200, DATA[:200] + b"?" + DATA[201:])]
        hosts = Hosts()
        with pytest.raises(Corrupt):
            download(hosts, _file(DATA), store.url, str(tmp_path / "deep" / "a.bin"), str(tmp_path))
        hosts.forget(store.url)
    assert list(tmp_path.iterdir()) == []


def test_each_folder_is_made_also_where_there_are_more_than_are_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage, "MOST_FOLDERS", 2)
    asked: list[str] = []
    made = os.makedirs

    def noted(folder: str, *args: object, **kwargs: object) -> None:
        asked.append(os.path.relpath(folder, tmp_path))
        made(folder, *args, **kwargs)

    def fetched(stager: Stager, version: CachedVersion, bundle: Bundle, file: RemoteFile) -> None:
        place = Path(version.path_of(file))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(b"x")

    monkeypatch.setattr(Stager, "_fetch", fetched)
    files = tuple(_file(b"x", f"{folder}/{name}") for folder in "abcd" for name in "123")
    (tmp_path / "cache").mkdir()
    stager = Stager(Hosts(), str(tmp_path / "cache"), lambda: None, lambda version, path: None)
    monkeypatch.setattr(stage.os, "makedirs", noted)
    stager.place(Bundle("v1", "", files), str(tmp_path / "data"), is_copied=False)
    assert sorted(str(one.relative_to(tmp_path / "data")) for one in (tmp_path / "data").rglob("?/?")) == [
        one.path for one in files
    ]
    assert [one for one in asked if one.startswith("data/")] == ["data/a", "data/b", "data/c", "data/d"]

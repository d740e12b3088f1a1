"""Removing the logs of attempts that are over, while their job stays."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.unit.logs.conftest import JOB, numbered, stream
from yardmaster.errors import Unavailable
from yardmaster.ids import short
from yardmaster.logs.expiry import attempts_delete
from yardmaster.logs.store import LogStore


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.rglob("*") if one.name[0] != ".")


def interrupted(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin to remove the log of the first attempt."""

    def breaks(*_: object) -> None:
        raise OSError(5, "the disk does not answer")

    with monkeypatch.context() as broken:
        broken.setattr(shutil, "rmtree", breaks)
        with pytest.raises(Unavailable):
            attempts_delete(store, JOB, 1)


def test_attempts_up_to_one_go_and_later_ones_stay(store: LogStore) -> None:
    for attempt in (1, 2, 10):
        store.append(stream(attempt=attempt), 0, numbered(0, 3))
    attempts_delete(store, JOB, 2)
    attempts_delete(store, JOB, 2)
    assert [one.key.attempt for one in store.streams(JOB)] == [10]
    assert store.append(stream(attempt=10), 3, b"more\n").next_line == 4


def test_what_an_interrupted_call_left_goes_with_the_next_or_with_the_job(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for finish in (lambda: attempts_delete(store, JOB, 1), lambda: store.delete_job(JOB)):
        store.append(stream(), 0, numbered(0, 3))
        interrupted(store, monkeypatch)
        assert not store.streams(JOB), "no reader sees it half-removed"
        assert "worker-0" in names(store.root)
        finish()
        assert "worker-0" not in names(store.root)


def test_the_root_is_looked_through_once_for_what_older_versions_left(
    store: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = store.root / f".deleted-{short(JOB)}-0123abcd" / "worker-0"
    left.mkdir(parents=True)
    attempts_delete(store, JOB, 1)
    assert not left.parent.exists()
    assert "worker-0" not in names(store.root), "it was not only brought to another place"
    looked: list[Path] = []
    glob, iterdir = Path.glob, Path.iterdir
    monkeypatch.setattr(Path, "glob", lambda self, *given: looked.append(self) or glob(self, *given))
    monkeypatch.setattr(Path, "iterdir", lambda self: looked.append(self) or iterdir(self))
    attempts_delete(store, JOB, 1)
    assert looked
    assert store.root not in looked, "it has a folder for each job"


def test_a_folder_that_may_not_be_read_is_unavailable(store: LogStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.append(stream(), 0, numbered(0, 3))

    def refused(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refused)
    with pytest.raises(Unavailable, match="Permission denied"):
        attempts_delete(store, JOB, 1)

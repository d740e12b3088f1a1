"""The homes on this machine, as real folders: measured and removed within bounds, without following a link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from yardmaster.engines.base import KeepsHomes
from yardmaster.engines.local.engine import LocalEngine
from yardmaster.engines.supervision import homes
from yardmaster.ids import new_id

MIB = 1 << 20


@pytest.fixture
def home(tmp_path: Path) -> Path:
    found = tmp_path / "workbench" / "namespace" / "owner"
    found.mkdir(parents=True)
    return found


def written(path: Path, size: int = MIB) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(os.urandom(size))
        os.fsync(file.fileno())
    return path


def deep(folder: Path, levels: int) -> None:
    """Deeper than any path may be long."""
    at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(levels):
        os.mkdir("d" * 50, dir_fd=at)
        below = os.open("d" * 50, os.O_RDONLY | os.O_DIRECTORY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)


def test_it_takes_what_its_files_take_on_the_disk(home: Path, tmp_path: Path):
    written(home / "data" / "a", 2 * MIB)
    elsewhere = written(tmp_path / "elsewhere" / "large", 8 * MIB)
    (home / "link").symlink_to(elsewhere.parent)
    with (home / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    found = homes.used(home)
    assert found.is_whole
    assert 2 * MIB <= found.size < 3 * MIB


def test_one_that_was_never_there_takes_nothing_and_is_gone(tmp_path: Path):
    absent = tmp_path / "workbench" / "namespace" / "owner"
    assert homes.used(absent) == homes.HomeUse(0)
    assert homes.remove(absent)


@pytest.mark.parametrize("bound", [{"entries": 10}, {"seconds": 0.0}])
def test_what_is_not_counted_is_said(home: Path, bound: dict):
    for n in range(20):
        (home / f"file-{n}").write_text("some")
    assert not homes.used(home, **bound).is_whole


def test_it_is_removed_with_what_no_one_may_read_and_no_path_reaches(home: Path, tmp_path: Path):
    elsewhere = written(tmp_path / "elsewhere" / "kept", 10)
    (home / "link").symlink_to(elsewhere.parent)
    (home / "file-link").symlink_to(elsewhere)
    closed = home / "closed" / "within"
    written(closed / "file", 10)
    closed.chmod(0o500)
    closed.parent.chmod(0)
    deep(home, 200)
    assert not homes.used(home).is_whole
    assert homes.remove(home)
    assert not home.parent.exists()
    assert elsewhere.is_file()


def test_a_removal_is_continued_and_a_new_home_is_not_half_removed(home: Path):
    for n in range(20):
        written(home / f"folder-{n}" / "file", 10)
    assert not homes.remove(home, seconds=0.0)
    assert not home.exists(), "it has another name from the first step on"
    assert homes.used(home).size > 0, "what is left still takes space"
    assert homes.remove(home)
    assert homes.used(home).size == 0


def test_a_home_that_is_a_link_is_removed_alone(tmp_path: Path, home: Path):
    elsewhere = written(tmp_path / "elsewhere" / "kept", 10)
    home.rmdir()
    home.symlink_to(elsewhere.parent)
    assert homes.remove(home)
    assert elsewhere.is_file()


def test_the_engine_has_one_for_each_user_in_each_namespace(tmp_path: Path):
    engine = LocalEngine(tmp_path)
    assert isinstance(engine, KeepsHomes)
    assert engine.home_size() == 0
    mine, others = (new_id(), new_id()), (new_id(), new_id())
    for namespace_id, owner_id in (mine, others):
        written(tmp_path / "workbench" / str(namespace_id) / str(owner_id) / "file")
    assert engine.home_use(*mine).size >= MIB
    assert engine.remove_home(*mine)
    assert engine.home_use(*mine).size == 0
    assert engine.home_use(*others).size >= MIB

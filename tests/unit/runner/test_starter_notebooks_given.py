"""Starter notebooks in a user's home: given once, never over what the user wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from yardmaster_runner.workbench.starters import FOLDER, examples, put


@pytest.fixture
def top(tmp_path: Path) -> Path:
    folder = tmp_path / "examples"
    for name, text in (("notebooks/1.ipynb", "one"), ("digits/single.py", "train")):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def home(tmp_path: Path, top: Path) -> Path:
    put(str(tmp_path / "home"), str(top))
    return tmp_path / "home" / FOLDER


def again(home: Path, top: Path) -> list[str]:
    put(str(home.parent), str(top))
    return sorted(str(path.relative_to(home)) for path in home.rglob("[!.]*") if path.is_file())


def test_all_are_there_after_the_first_start_with_what_they_need(home: Path, top: Path):
    assert (home / "1.ipynb").read_text() == "one"
    assert (home / "digits" / "single.py").read_text() == "train"
    assert again(home, top) == ["1.ipynb", "digits/single.py"]


def test_what_was_changed_or_removed_stays_so(home: Path, top: Path):
    (home / "1.ipynb").write_text("mine")
    (home / "digits" / "single.py").unlink()
    assert again(home, top) == ["1.ipynb"]
    assert (home / "1.ipynb").read_text() == "mine"


def test_a_newer_one_takes_the_place_of_one_that_is_unchanged_and_lies_beside_one_that_is_not(home: Path, top: Path):
    (home / "1.ipynb").write_text("mine")
    for name in ("notebooks/1.ipynb", "digits/single.py"):
        (top / name).write_text("newer")
    names = again(home, top)
    assert (home / "digits" / "single.py").read_text() == "newer"
    assert (home / "1.ipynb").read_text() == "mine"
    beside = next(name for name in names if name.startswith("1 (version "))
    assert (home / beside).read_text() == "newer"
    assert again(home, top) == names


def test_a_home_that_cannot_be_written_holds_up_nothing(tmp_path: Path, top: Path, capfd):
    (tmp_path / "home").write_text("a file")
    put(str(tmp_path / "home"), str(top))
    assert "the starter notebooks could not be written" in "".join(capfd.readouterr())


def test_the_projects_own_are_found():
    assert list(Path(examples(), "notebooks").glob("*.ipynb"))

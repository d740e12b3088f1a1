"""What Keras finds of an attached dataset: in every version of it."""

from __future__ import annotations

import os
from pathlib import Path

from yardmaster_runner.keras_home import OTHER_NAMES, lead_there


def home_in(work: Path) -> Path:
    (work / "home").mkdir()
    (work / "data" / "datasets").mkdir(parents=True)
    return work / "home"


def test_the_home_of_keras_2_leads_to_the_folder_that_keras_3_is_given(tmp_path: Path) -> None:
    home = home_in(tmp_path)
    archive = tmp_path / "data" / "datasets" / "cifar-10-batches-py.tar.gz"
    archive.write_bytes(b"archive")
    for _ in range(2):
        lead_there({"HOME": str(home), "KERAS_HOME": str(tmp_path / "data")}, str(tmp_path))
    assert (home / ".keras" / "datasets" / archive.name).read_bytes() == b"archive"
    for name in OTHER_NAMES[archive.name]:
        assert (archive.parent / name).read_bytes() == b"archive"
    assert not any("100" in one for one in os.listdir(archive.parent))


def test_what_the_script_has_in_its_home_stays_and_nothing_is_made_elsewhere(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    home, elsewhere = home_in(work), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (home / ".keras").mkdir()
    lead_there({"HOME": str(home), "KERAS_HOME": str(work / "data")}, str(work))
    assert not (home / ".keras").is_symlink()
    lead_there({"HOME": str(elsewhere), "KERAS_HOME": str(work / "data")}, str(work))
    for wrong in ("", "data", str(work / "absent")):
        lead_there({"HOME": str(work), "KERAS_HOME": wrong}, str(work))
    lead_there({"KERAS_HOME": str(work / "data")}, str(work))
    assert not list(elsewhere.iterdir())
    assert not (work / ".keras").exists()

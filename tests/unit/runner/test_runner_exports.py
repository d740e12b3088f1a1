"""What of a model directory is kept of a script that was stopped."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from yardmaster_runner.exports import find_export

COMPLETE = [
    "saved_model.pb",
    "variables/variables.index",
    "variables/variables.data-00000-of-00001",
    "assets/vocab.txt",
]


def make(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(b"x")


def test_all_is_kept_of_a_script_that_ended_well(tmp_path):
    make(tmp_path, "model.keras", "notes.txt")
    found = find_export(str(tmp_path), is_finished=True)
    assert (found.paths, found.problem) == (["model.keras", "notes.txt"], "")


@pytest.mark.parametrize("prefix", ["", "1700000000/"])
def test_a_complete_saved_model_is_kept_of_a_script_that_did_not_end_well(tmp_path, prefix):
    make(tmp_path, *(prefix + path for path in COMPLETE))
    found = find_export(str(tmp_path), is_finished=False)
    assert (found.paths, found.problem) == (sorted(prefix + path for path in COMPLETE), "")


@pytest.mark.parametrize("paths", [["saved_model.pb"], [f"{one}/{path}" for one in "12" for path in COMPLETE]])
def test_a_saved_model_without_variables_and_several_are_kept(tmp_path, paths):
    make(tmp_path, *paths)
    assert find_export(str(tmp_path), is_finished=False).paths == sorted(paths)


def test_a_keras_file_is_kept_when_its_directory_is_written(tmp_path):
    with zipfile.ZipFile(tmp_path / "model.keras", "w") as made:
        made.writestr("config.json", "{}")
    whole = (tmp_path / "model.keras").read_bytes()
    assert find_export(str(tmp_path), is_finished=False).paths == ["model.keras"]
    (tmp_path / "model.keras").write_bytes(whole[:-30])
    assert find_export(str(tmp_path), is_finished=False).paths == []


# Without its variables altogether it counts as one that has none: TensorFlow writes them first.
@pytest.mark.parametrize("missing", COMPLETE[:3])
def test_half_a_saved_model_is_not_kept(tmp_path, missing):
    make(tmp_path, *(path for path in COMPLETE if path != missing))
    found = find_export(str(tmp_path), is_finished=False)
    assert found.paths == []
    assert "the model was not saved: the script did not end with exit code 0" in found.problem


def test_a_saved_model_that_lacks_a_shard_is_not_kept(tmp_path):
    make(tmp_path, "saved_model.pb", "variables/variables.index", "variables/variables.data-00000-of-00002")
    assert find_export(str(tmp_path), is_finished=False).paths == []


def test_the_folder_of_an_export_under_way_is_not_kept_and_the_complete_one_is(tmp_path):
    make(tmp_path, *(f"100/{path}" for path in COMPLETE), *(f"temp-200/{path}" for path in COMPLETE))
    found = find_export(str(tmp_path), is_finished=False)
    assert found.paths == sorted(f"100/{path}" for path in COMPLETE)
    assert "a part of it was not saved" in found.problem


def test_a_file_whose_end_no_structure_shows_is_not_kept(tmp_path):
    make(tmp_path, "model.keras")
    found = find_export(str(tmp_path), is_finished=False)
    assert found.paths == []
    assert "model.keras" in found.problem


def test_an_empty_folder_is_no_problem(tmp_path):
    assert find_export(str(tmp_path / "none"), is_finished=False).problem == ""


OF_LOGS = ["checkpoint", "ckpt-1.index", "ckpt-1.data-00000-of-00001", "events.out.tfevents.1", "notes.txt"]


@pytest.mark.parametrize("prefix", ["", "export/1/"])
@pytest.mark.parametrize("is_finished", [True, False])
def test_of_one_directory_for_logs_and_the_model_complete_models_alone_are_kept(tmp_path, prefix, is_finished):
    make(tmp_path, *OF_LOGS, *(prefix + path for path in COMPLETE), prefix + "fingerprint.pb", "half/saved_model.pb")
    make(tmp_path, "half/variables/variables.index", "latest.weights.h5")
    found = find_export(str(tmp_path), is_finished=is_finished, models_alone=True)
    assert (found.paths, found.problem) == (sorted(prefix + path for path in [*COMPLETE, "fingerprint.pb"]), "")


def test_single_files_of_one_directory_are_models_once_the_script_has_ended_well(tmp_path):
    make(tmp_path, *OF_LOGS, "model.h5", "small.tflite", "best.weights.h5")
    with zipfile.ZipFile(tmp_path / "model.keras", "w") as made:
        made.writestr("config.json", "{}")
    kept = [find_export(str(tmp_path), is_finished=one, models_alone=True).paths for one in (True, False)]
    assert kept == [["model.h5", "model.keras", "small.tflite"], ["model.keras"]]
    assert find_export(str(tmp_path / "none"), is_finished=True, models_alone=True).paths == []

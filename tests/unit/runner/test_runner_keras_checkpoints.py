"""What Keras 3 saves: found when it is complete, copied, put back."""

import json
import os
import struct
import zipfile
from types import SimpleNamespace

import pytest

from yardmaster_runner import keras_checkpoints
from yardmaster_runner.checkpoints import find_complete, has_checkpoint, put_back, snapshot
from yardmaster_runner.keeper import CheckpointKeeper
from yardmaster_runner.keras_checkpoints import remove_torn_backups, step_of
from yardmaster_runner.output_files import is_of_checkpoint

LATER = float("inf")


def hdf5(path, size=200, end=200):
    """A file with a superblock of version 0, as h5py writes it, that says where it ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head = b"\x89HDF\r\n\x1a\n" + bytes(8) + bytes(24) + struct.pack("<Q", end)
    path.write_bytes((head + bytes(size))[:size])


def backup(folder, epoch=3, end=200):
    hdf5(folder / "latest.weights.h5", end=end)
    (folder / "training_metadata.json").write_text(json.dumps({"epoch": epoch, "batch": 0}))


def keras(path, at=None):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("config.json", "{}")
    if at is not None:
        os.utime(path, (at, at))


def found(folder, now=LATER):
    return [(one.step, sorted(one.files)) for one in find_complete(str(folder), now)]


def test_a_backup_is_a_checkpoint_of_its_epoch(tmp_path):
    backup(tmp_path / "backup")
    (tmp_path / "backup" / "latest.weights.h5.bkp").write_bytes(b"older")
    assert found(tmp_path) == [(3, ["backup/latest.weights.h5", "backup/training_metadata.json"])]
    assert has_checkpoint(str(tmp_path))


def test_a_backup_that_has_just_changed_may_not_be_complete(tmp_path):
    backup(tmp_path)
    written = (tmp_path / "training_metadata.json").stat().st_mtime
    assert found(tmp_path, written + 0.1) == []
    assert len(found(tmp_path, written + 1.0)) == 1


@pytest.mark.parametrize("metadata", ["", "[]", '{"epoch": "x"}', None])
def test_a_backup_without_whole_metadata_is_not_complete(tmp_path, metadata):
    backup(tmp_path)
    (tmp_path / "training_metadata.json").unlink()
    if metadata is not None:
        (tmp_path / "training_metadata.json").write_text(metadata)
    assert found(tmp_path) == []


def test_weights_that_are_newer_than_the_metadata_are_still_being_written(tmp_path):
    backup(tmp_path)
    os.utime(tmp_path / "training_metadata.json", (1, 1))
    assert found(tmp_path) == []


def test_weights_that_are_cut_off_are_not_complete_and_make_room_for_what_is_kept(tmp_path, monkeypatch):
    backup(tmp_path, end=300)
    assert found(tmp_path) == []
    written = (tmp_path / "latest.weights.h5").stat().st_mtime
    monkeypatch.setattr(keras_checkpoints, "time", SimpleNamespace(time=lambda: written + 0.4))
    remove_torn_backups(str(tmp_path))
    assert has_checkpoint(str(tmp_path)), "it was written a moment ago"
    monkeypatch.setattr(keras_checkpoints, "time", SimpleNamespace(time=lambda: written + 0.6))
    remove_torn_backups(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_two_tasks_that_start_at_once_may_remove_the_same_torn_backup(tmp_path, monkeypatch):
    backup(tmp_path, end=300)

    def another_is_faster():
        (tmp_path / "latest.weights.h5").unlink()
        return LATER

    monkeypatch.setattr(keras_checkpoints, "time", SimpleNamespace(time=another_is_faster))
    remove_torn_backups(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_torn_backup_stays_where_keras_has_the_one_before_it_and_so_does_a_whole_one(tmp_path):
    backup(tmp_path / "double", end=300)
    (tmp_path / "double" / "latest.weights.h5.bkp").write_bytes(b"older")
    backup(tmp_path / "whole")
    for folder in ("double", "whole"):
        os.utime(tmp_path / folder / "latest.weights.h5", (1, 1))
    remove_torn_backups(str(tmp_path))
    assert {len(list((tmp_path / "double").iterdir())), len(list((tmp_path / "whole").iterdir()))} == {2, 3}


def test_else_it_is_the_newest_whole_file_of_a_model_checkpoint(tmp_path):
    keras(tmp_path / "epoch-01.keras", at=1)
    hdf5(tmp_path / "02-0.76.weights.h5")
    os.utime(tmp_path / "02-0.76.weights.h5", (2, 2))
    assert found(tmp_path) == [(2, ["02-0.76.weights.h5"])]
    (tmp_path / "epoch-03.keras").write_bytes((tmp_path / "epoch-01.keras").read_bytes()[:-30])
    assert found(tmp_path) == [(2, ["02-0.76.weights.h5"])], "the third is not whole"
    keras(tmp_path / "epoch-03.keras")
    written = (tmp_path / "epoch-03.keras").stat().st_mtime
    assert found(tmp_path, written + 0.1) == [(2, ["02-0.76.weights.h5"])], "the third may still change"
    assert found(tmp_path, written + 1.0) == [(3, ["epoch-03.keras"])]


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("02-0.76.keras", 2), ("weights.07-0.12.weights.h5", 7), ("resnet50_epoch_12.keras", 12), ("best.keras", None),
        ("loss-0.25.keras", None),
    ],
)  # fmt: skip
def test_the_step_is_read_from_a_name(name, step):
    assert step_of(name) == step


def test_a_snapshot_is_a_copy_for_keras_writes_into_its_files(tmp_path):
    log = tmp_path / "log"
    backup(log / "backup")
    whole = (log / "backup" / "latest.weights.h5").read_bytes()
    complete = find_complete(str(log), LATER)
    paths = snapshot(str(log), complete, str(tmp_path / "out"))
    with (log / "backup" / "latest.weights.h5").open("r+b") as file:
        file.write(b"written again")
    assert (tmp_path / "out" / "backup" / "latest.weights.h5").read_bytes() == whole
    with pytest.raises(OSError, match=r"latest\.weights\.h5 was written again"):
        snapshot(str(log), complete, str(tmp_path / "again"))
    new = tmp_path / "new"
    put_back(str(tmp_path / "out"), str(new), paths)
    assert found(new) == [(3, ["backup/latest.weights.h5", "backup/training_metadata.json"])]


def test_a_backup_is_not_an_output_as_well_but_files_with_names_of_their_own_are():
    assert is_of_checkpoint("backup/latest.weights.h5")
    assert is_of_checkpoint("backup/training_metadata.json.bkp")
    assert not is_of_checkpoint("best.keras")


def test_what_is_kept_is_not_replaced_by_less_while_the_script_saves_again(tmp_path):
    """A `ModelCheckpoint` has saved, and the backup of the same epoch is being written."""
    log, sent = tmp_path / "log", []

    class Uploads:
        def send(self, kind, files, more):
            sent.append((more["step"], sorted(file.path for file in files)))

    keeper = CheckpointKeeper(Uploads(), str(log), str(tmp_path / "scratch"), lambda: 0)
    backup(log / "backup", epoch=1)
    assert keeper.keep_newest(settled=True)
    keras(log / "best.keras")
    hdf5(log / "backup" / "latest.weights.h5", end=300)
    assert not keeper.keep_newest(settled=True)
    backup(log / "backup", epoch=2)
    assert keeper.keep_newest(settled=True)
    pair = ["backup/latest.weights.h5", "backup/training_metadata.json"]
    assert sent == [(1, pair), (2, [*pair, "best.keras"])]
    (log / "backup" / "latest.weights.h5").unlink()
    (log / "backup" / "training_metadata.json").unlink()
    keras(log / "best.keras")
    assert keeper.keep_newest(settled=True), "the script has removed its backup"

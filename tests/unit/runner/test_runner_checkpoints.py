import os

import pytest

from yardmaster_runner.checkpoints import find_complete, has_checkpoint, newest_prefix, put_back, snapshot

LATER = float("inf")


def save(folder, prefix="model.ckpt-20", shards=1, meta=False, state=None):
    """A checkpoint as TensorFlow leaves it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{prefix}.index").write_text("index")
    for shard in range(shards):
        (folder / f"{prefix}.data-{shard:05}-of-{shards:05}").write_text(f"data of {prefix}")
    if meta:
        (folder / f"{prefix}.meta").write_text("graph")
    (folder / "checkpoint").write_text(f'model_checkpoint_path: "{state or prefix}"\nall_model_checkpoint_paths: "x"\n')


def found(folder, now=LATER):
    return [(one.step, sorted(one.files)) for one in find_complete(str(folder), now)]


def test_a_checkpoint_with_everything_is_complete(tmp_path):
    save(tmp_path, shards=2, meta=True)
    names = ["checkpoint", "model.ckpt-20.data-00000-of-00002", "model.ckpt-20.data-00001-of-00002"]
    assert found(tmp_path) == [(20, [*names, "model.ckpt-20.index", "model.ckpt-20.meta"])]


@pytest.mark.parametrize("missing", ["checkpoint", "model.ckpt-20.index", "model.ckpt-20.data-00001-of-00002"])
def test_one_that_lacks_a_file_is_not_complete(tmp_path, missing):
    save(tmp_path, shards=2)
    (tmp_path / missing).unlink()
    assert found(tmp_path) == []


def test_one_that_has_just_changed_may_not_be_complete(tmp_path):
    save(tmp_path)
    written = (tmp_path / "checkpoint").stat().st_mtime
    assert found(tmp_path, written + 0.1) == []
    assert len(found(tmp_path, written + 1.0)) == 1


def test_shards_of_another_checkpoint_are_not_taken_for_its_own(tmp_path):
    save(tmp_path, "ckpt-2", shards=1)
    (tmp_path / "ckpt-2.data-00000-of-00001").rename(tmp_path / "ckpt-20.data-00000-of-00001")
    assert found(tmp_path) == []


def test_names_without_a_step_and_absolute_paths_are_understood(tmp_path):
    save(tmp_path, "weights", state=str(tmp_path / "weights"))
    assert newest_prefix(str(tmp_path)) == "weights"
    assert found(tmp_path)[0][0] is None


def test_every_directory_counts_but_the_workers_throw_aways(tmp_path):
    save(tmp_path / "backup" / "chief", "ckpt-3")
    save(tmp_path, "ckpt-40")
    save(tmp_path / "workertemp_1", "ckpt-3")
    os.utime(tmp_path / "backup" / "chief" / "checkpoint", (1, 1))
    os.utime(tmp_path / "backup" / "chief" / "ckpt-3.index", (1, 1))
    os.utime(tmp_path / "backup" / "chief" / "ckpt-3.data-00000-of-00001", (1, 1))
    assert [step for step, _ in found(tmp_path)] == [3, 40]


def test_a_snapshot_outlives_the_files_and_names_no_absolute_path(tmp_path):
    log = tmp_path / "log"
    save(log / "sub", state=str(log / "sub" / "model.ckpt-20"))
    paths = snapshot(str(log), find_complete(str(log), LATER), str(tmp_path / "out"))
    for path in list((log / "sub").iterdir()):
        path.unlink()
    assert sorted(paths) == [
        "sub/checkpoint",
        "sub/model.ckpt-20.data-00000-of-00001",
        "sub/model.ckpt-20.index",
    ]
    text = (tmp_path / "out" / "sub" / "checkpoint").read_text()
    assert text == 'model_checkpoint_path: "model.ckpt-20"\nall_model_checkpoint_paths: "model.ckpt-20"\n'
    assert (tmp_path / "out" / "sub" / "model.ckpt-20.data-00000-of-00001").read_text() == "data of model.ckpt-20"


def test_a_checkpoint_that_vanishes_meanwhile_is_an_error_not_half_a_copy(tmp_path):
    save(tmp_path / "log")
    complete = find_complete(str(tmp_path / "log"), LATER)
    (tmp_path / "log" / "model.ckpt-20.index").unlink()
    with pytest.raises(FileNotFoundError):
        snapshot(str(tmp_path / "log"), complete, str(tmp_path / "out"))


def test_putting_back_replaces_nothing_and_leaves_no_temporary_file(tmp_path):
    save(tmp_path / "staged")
    log = tmp_path / "log"
    log.mkdir()
    (log / "model.ckpt-20.index").write_text("newer")
    paths = sorted(path.name for path in (tmp_path / "staged").iterdir())
    put_back(str(tmp_path / "staged"), str(log), paths)
    put_back(str(tmp_path / "staged"), str(log), paths)
    assert sorted(path.name for path in log.iterdir()) == paths
    assert (log / "model.ckpt-20.index").read_text() == "newer"
    assert has_checkpoint(str(log))
    assert found(log)[0][0] == 20


def test_an_empty_folder_has_no_checkpoint(tmp_path):
    assert not has_checkpoint(str(tmp_path))
    assert found(tmp_path) == []
    assert newest_prefix(str(tmp_path)) == ""

"""Publishing a version to the data volume, finding it there, and removing it: complete or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest

from yardmaster_runner import program_inputs, removing, volume_copy, volume_remove
from yardmaster_runner.cache import CachedVersion
from yardmaster_runner.exits import CannotRun
from yardmaster_runner.order import Bundle, RemoteFile, read_order
from yardmaster_runner.own_programs import Orders
from yardmaster_runner.reasons import LONGEST_MESSAGE
from yardmaster_runner.volume import OnVolume, link

VERSION = "0193e5a4-7c1b-7abc-8def-0123456789ac"
FILES = {"a.txt": b"one", "train/0.tfrecord": b"two" * 1000}
SIZE = sum(map(len, FILES.values()))


def bundle() -> Bundle:
    files = [RemoteFile(path, len(data), hashlib.sha256(data).hexdigest(), "") for path, data in FILES.items()]
    return Bundle(VERSION, "", tuple(files))


def orders(tmp_path: Path, **options: object) -> Orders:
    """What the runner gives, when it has fetched the files into its cache on the volume."""
    volume, cache = tmp_path / "volume", tmp_path / "volume" / "datasets" / VERSION / "incoming"
    said = {"files": len(FILES), "bytes": SIZE, **options}
    return Orders(said, "", "", "", "", "", 0, 1, inputs={"": VERSION}, cache_dir=str(cache), data_volume=str(volume))


def fetched(given: Orders) -> Orders:
    version = CachedVersion(given.cache_dir, bundle())
    with version.locked():
        for file in bundle().files:
            place = Path(version.path_of(file))
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(FILES[file.path])
        version.keep(list(bundle().files))
    return given


def test_a_version_is_published_checked_and_marked_last(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    given = fetched(orders(tmp_path))
    assert volume_copy.main(given) == 0
    there = OnVolume(given.data_volume, VERSION)
    assert there.complete() == {"version": VERSION, "files": 2, "bytes": SIZE}
    assert {str(one.relative_to(there.files)) for one in Path(there.files).rglob("*") if one.is_file()} == {*FILES}
    assert not Path(given.cache_dir).exists()
    assert "published: 2 files" in capsys.readouterr().out
    assert volume_copy.main(given) == 0  # again: it is there


def test_no_name_of_a_file_takes_another_ones_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    names = ("a", "a.yardmaster-new", "a.new", "placing")
    monkeypatch.setitem(globals(), "FILES", dict.fromkeys(names, b"x"))
    given = fetched(orders(tmp_path, files=4, bytes=4))
    there = OnVolume(given.data_volume, VERSION)
    Path(there.placing).mkdir(parents=True)
    Path(there.placing, "cut-off").write_text("x")
    assert volume_copy.main(given) == 0
    assert {one.name for one in Path(there.files).iterdir()} == set(names)
    assert {one.name for one in Path(there.folder).iterdir()} == {"files", "complete.json"}


def test_a_file_that_is_read_back_as_another_is_named_and_nothing_is_marked(tmp_path: Path, capsys):
    given = fetched(orders(tmp_path))
    next(Path(given.cache_dir).rglob("a.txt")).write_bytes(b"two")
    assert volume_copy.main(given) == 65
    assert "a.txt is not on the volume as it was fetched" in capsys.readouterr().err
    assert OnVolume(given.data_volume, VERSION).complete() is None


def test_a_version_that_did_not_come_whole_is_not_marked(tmp_path: Path, capsys):
    given = fetched(orders(tmp_path, files=3))
    assert volume_copy.main(given) == 65
    assert "2 files" in capsys.readouterr().err
    assert OnVolume(given.data_volume, VERSION).complete() is None


def test_what_an_interrupted_start_left_is_finished_by_the_next(tmp_path: Path):
    given = fetched(orders(tmp_path))
    half = Path(OnVolume(given.data_volume, VERSION).files)
    half.mkdir()
    (half / "a.txt").write_bytes(b"on")
    assert volume_copy.main(given) == 0
    assert (half / "a.txt").read_bytes() == b"one"


def test_a_volume_without_links_gets_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("os.link", refuse)
    assert volume_copy.main(fetched(orders(tmp_path))) == 0


def test_a_job_finds_the_files_at_the_folder_of_its_input(tmp_path: Path):
    given = fetched(orders(tmp_path))
    volume_copy.publish(given)
    for target in (tmp_path / "work" / "data", tmp_path / "work2" / "data" / "train"):
        target.mkdir(parents=True)
        for _ in range(2):  # also when the task starts again
            link(given.data_volume, VERSION, str(target))
            assert (target / "a.txt").read_bytes() == b"one"


def test_a_preparation_lists_what_it_reads_on_the_volume(tmp_path: Path):
    volume_copy.publish(fetched(orders(tmp_path)))
    link(str(tmp_path / "volume"), VERSION, str(tmp_path / "data" / "words"))
    spec = {"strategy": "batch", "roles": {"worker": {}}, "program": "prepare"}
    one = {"version": VERSION, "name": "words", "source": "volume", "files": []}
    order = read_order({"job": "j", "attempt": 1, "spec": spec, "code": None, "inputs": [one]})
    listed = program_inputs.listed(order, lambda bundle: [bundle.files], lambda name: str(tmp_path / "data" / name))
    assert {file.path: file.size for file in listed} == {f"words/{path}": len(data) for path, data in FILES.items()}


def test_what_is_not_there_or_not_whole_ends_the_start_with_what_to_do(tmp_path: Path):
    given = orders(tmp_path)
    (tmp_path / "volume" / "datasets" / VERSION / "files").mkdir(parents=True)
    with pytest.raises(CannotRun) as refused:
        link(given.data_volume, VERSION, str(tmp_path / "data"))
    assert refused.value.ending.reason == "InputNotOnVolume"
    assert "Publish it again" in refused.value.ending.message
    with pytest.raises(CannotRun):
        link(given.data_volume, "../" + VERSION, str(tmp_path / "data"))


def test_removing_takes_the_version_and_leaves_the_others(tmp_path: Path):
    given = fetched(orders(tmp_path))
    volume_copy.publish(given)
    other = tmp_path / "volume" / "datasets" / "another"
    shutil.copytree(OnVolume(given.data_volume, VERSION).folder, other)
    gone = Orders({"version": VERSION}, "", "", "", "", "", 0, 1, data_volume=given.data_volume)
    assert volume_remove.main(gone) == 0
    assert [one.name for one in other.parent.iterdir()] == ["another"]
    assert json.loads((other / "complete.json").read_text())["files"] == 2
    assert volume_remove.main(gone) == 0


def test_removing_logs_takes_those_of_the_jobs_that_are_named_and_follows_no_link(tmp_path: Path):
    for name in ("gone", "kept"):
        (tmp_path / "jobs" / name / "1").mkdir(parents=True)
        (tmp_path / "jobs" / name / "1" / "events").write_text("x")
    (tmp_path / "jobs" / "gone" / "1" / "out").symlink_to(tmp_path / "jobs" / "kept")
    cleaned = Orders({"jobs": "gone,never-there"}, "", "", "", "", "", 0, 1, log_volume=str(tmp_path))
    assert volume_remove.main(cleaned) == 0
    assert [one.name for one in (tmp_path / "jobs").iterdir()] == ["kept"]
    assert (tmp_path / "jobs" / "kept" / "1" / "events").exists()


def test_logs_of_a_job_that_cannot_be_removed_keep_no_others_and_are_named(tmp_path: Path, monkeypatch, capsys):
    asked = [f"job-{number}" for number in range(1, 7)]
    for name in asked:
        (tmp_path / "jobs" / name / "1").mkdir(parents=True)

    def stuck(folder: str) -> None:
        if Path(folder).name in ("job-1", "job-2", "job-5"):
            raise PermissionError(13, "Permission denied", folder)
        removing.remove_tree(folder)

    monkeypatch.setattr(volume_remove, "remove_tree", stuck)
    given = Orders({"jobs": ",".join(asked)}, "", "", "", "", "", 0, 1, log_volume=str(tmp_path))
    assert volume_remove.main(given) == 1
    assert sorted(one.name for one in (tmp_path / "jobs").iterdir()) == ["job-1", "job-2", "job-5"]
    message = capsys.readouterr().err.strip()
    assert "logs of 3 of 6 jobs, numbers 1-2, 5: [Errno 13]" in message
    assert volume_remove.left_of(message, asked) == ["job-1", "job-2", "job-5"]
    assert volume_remove.left_of(message, asked[1:]) is None
    assert volume_remove.left_of("not removed: [Errno 5] Input/output error", asked) is None


def test_what_is_left_of_many_jobs_fits_into_a_message():
    numbers = range(1, 251, 2)
    message = f"not removed: {volume_remove.Left(list(numbers), 250, OSError('x' * 500))}"
    assert len(message) <= LONGEST_MESSAGE
    assert volume_remove.left_of(message, [str(one) for one in range(1, 251)]) == [str(one) for one in numbers]


def test_folders_that_their_owner_may_not_change_are_opened_and_removed(tmp_path: Path, monkeypatch):
    folder, outside = tmp_path / "jobs" / "gone", tmp_path / "outside"
    (folder / "1" / "closed" / "inner").mkdir(parents=True)
    outside.mkdir(mode=0o500)
    (folder / "1" / "link").symlink_to(outside)
    opened = os.open

    def as_its_owner(path: str, flags: int, **more: int) -> int:  # also as root, for whom modes do not count
        found = opened(path, flags, **more)
        if os.fstat(found).st_mode & 0o700 != 0o700:
            os.close(found)
            raise PermissionError(13, "Permission denied", path)
        return found

    monkeypatch.setattr(removing.os, "open", as_its_owner)
    for closed, mode in (("closed/inner", 0), ("closed", 0), ("", 0o500)):
        (folder / "1" / closed).chmod(mode)
    given = Orders({"jobs": "gone"}, "", "", "", "", "", 0, 1, log_volume=str(tmp_path))
    assert volume_remove.main(given) == 0
    assert not folder.exists()
    assert outside.stat().st_mode & 0o777 == 0o500


def test_folders_in_each_other_as_deep_as_no_path_reaches_keep_no_others(tmp_path: Path, monkeypatch):
    for name in ("deep", "other"):
        (tmp_path / "jobs" / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "jobs" / "deep")
    for number in range(3_000):
        Path("a").mkdir()
        Path(f"file-{number}").touch()
        os.chdir("a")
    monkeypatch.chdir(tmp_path)
    given = Orders({"jobs": "deep,other"}, "", "", "", "", "", 0, 1, log_volume=str(tmp_path))
    assert volume_remove.main(given) == 0
    assert list((tmp_path / "jobs").iterdir()) == []


def test_wide_folders_with_the_same_names_are_removed_with_what_an_interrupted_try_left(tmp_path: Path):
    for outer in ("a", "b", "c"):
        for inner in ("a", "b", "0-0"):
            (tmp_path / "gone" / outer / inner / "a").mkdir(parents=True)
            (tmp_path / "gone" / outer / inner / "a" / "file").touch()
    removing.remove_tree(str(tmp_path / "gone"))
    assert list(tmp_path.iterdir()) == []

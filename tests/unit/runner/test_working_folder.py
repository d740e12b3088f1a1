"""Which files of the working folder are kept, under which names, and what is the model among them."""

from __future__ import annotations

import os
import time
import zipfile
from pathlib import Path

import pytest

from yardmaster_runner import working_folder
from yardmaster_runner.order import Limits
from yardmaster_runner.output_files import OutputFile
from yardmaster_runner.working_folder import OUTSIDE, WorkingFolder, choose, in_words, states_of, words_of

GIB = 1 << 30
EVENTS = "events.out.tfevents.1.host"
HDF5 = b"\x89HDF\r\n\x1a\n" + b"0" * 100


def make(folder: Path, *paths: str, content: bytes = b"x") -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """A working folder with a script and a data file that came with it."""
    make(tmp_path / "code", "train.py", "data/in.csv")
    (tmp_path / "log").mkdir()
    return tmp_path / "code"


def working(code: Path, staged: tuple[str, ...] = ("train.py", "data/in.csv"), **limits: int) -> WorkingFolder:
    log = code.parent / "log"
    return WorkingFolder(str(code), str(log), states_of(str(code), staged), Limits(**limits))


def names(folder: WorkingFolder, *, is_last: bool = True) -> list[str]:
    return sorted(one.stored_as for one in folder.listing(is_last).files)


def test_new_and_changed_files_are_outputs_and_the_staged_ones_are_not(code):
    folder = working(code)
    make(code, "results.csv", "out/plot.png")
    make(code, "data/in.csv", content=b"changed")
    assert names(folder) == ["data/in.csv", "out/plot.png", "results.csv"]


def test_a_file_of_the_same_size_that_was_written_again_is_an_output(code):
    folder = working(code)
    state = (code / "train.py").stat()
    (code / "new").write_bytes(b"y")
    os.replace(code / "new", code / "train.py")
    os.utime(code / "train.py", ns=(state.st_atime_ns, state.st_mtime_ns))
    assert names(folder) == ["train.py"]


def test_what_an_earlier_start_left_is_an_output_still(code):
    make(code, "history.json")
    assert names(working(code)) == ["history.json"]


@pytest.mark.parametrize(
    "path", ["__pycache__/a.cpython-311.pyc", "helper.pyc", ".git/config", "venv/bin/python", "a/node_modules/b.js"]
)
def test_what_tools_make_is_no_output(code, path):
    make(code, path)
    assert names(working(code)) == []


def test_links_and_special_files_are_passed_over(code, tmp_path):
    make(tmp_path, "outside/secret.txt")
    (code / "link.txt").symlink_to(tmp_path / "outside" / "secret.txt")
    (code / "folder").symlink_to(tmp_path / "outside")
    os.mkfifo(code / "pipe")
    assert names(working(code)) == []


def test_checkpoints_in_the_working_folder_are_outputs(code):
    paths = ["ckpt/checkpoint", "ckpt/model-3.index", "ckpt/model-3.data-00000-of-00001", "best.weights.h5"]
    make(code, *paths)
    assert names(working(code)) == sorted(paths)


def test_before_the_end_only_event_files_are_sent(code):
    make(code, "logs/train/" + EVENTS, "results.csv")
    folder = working(code)
    assert names(folder, is_last=False) == ["logs/train/" + EVENTS]
    assert names(folder) == ["logs/train/" + EVENTS, "results.csv"]


def test_a_name_that_the_log_directory_has_as_well_is_below_a_folder_of_ours(code, tmp_path):
    make(tmp_path / "log", "train/" + EVENTS, "metrics.csv")
    make(code, "train/" + EVENTS, "metrics.csv", "other.csv")
    folder = working(code)
    assert names(folder) == ["other.csv", f"{OUTSIDE}/metrics.csv", f"{OUTSIDE}/train/{EVENTS}"]
    assert [run for _, run in folder.event_files(True)] == [f"{OUTSIDE}/train"]


def test_a_name_stays_when_the_log_directory_gets_the_same_later(code, tmp_path):
    make(code, "train/" + EVENTS)
    folder = working(code)
    assert names(folder, is_last=False) == ["train/" + EVENTS]
    make(tmp_path / "log", "train/" + EVENTS)
    assert names(folder) == ["train/" + EVENTS]


# --- limits ----------------------------------------------------------------------------------------------------------


def file(path: str, size: int) -> OutputFile:
    return OutputFile(path, size, 0, 1)


def test_the_largest_files_are_left_out_and_event_files_last():
    files = [file("big.bin", 12 * GIB), file("a.csv", 10), file("b.csv", 20), file(EVENTS, 100)]
    choice = choose(files, 125, 10)
    assert [one.path for one in choice.kept] == [EVENTS, "a.csv"]
    assert [one.path for one in choice.left_out] == ["big.bin", "b.csv"]


def test_a_file_more_than_the_number_is_left_out():
    choice = choose([file(str(number), number) for number in range(5)], GIB, 3)
    assert [one.path for one in choice.left_out] == ["4", "3"]


def test_what_is_left_out_is_named_with_its_size_and_the_limit():
    said = words_of([file("big.bin", 12 * GIB)], Limits())
    assert said == "not kept: big.bin (12.0 GiB): over the limit of 2.0 GiB and 2000 files for the working folder"
    many = words_of([file(f"{number}.bin", GIB) for number in range(25)], Limits())
    assert "19.bin (1.0 GiB) and 5 more (5.0 GiB)" in many
    assert words_of([], Limits()) == ""


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.0 KiB"), (5 << 40, "5.0 TiB")],
)
def test_sizes_in_words(size, words):
    assert in_words(size) == words


# --- event files -----------------------------------------------------------------------------------------------------


def test_event_files_are_found_in_any_folder_and_their_folder_is_the_run(code):
    make(code, EVENTS, "a/b/c/" + EVENTS, ".git/" + EVENTS)
    assert [run for _, run in working(code).event_files(True)] == ["a/b/c", OUTSIDE]


def test_event_files_that_came_with_the_code_are_not_read(code):
    make(code, "old/" + EVENTS)
    assert working(code, ("train.py", "data/in.csv", "old/" + EVENTS)).event_files(True) == []


def test_the_search_for_event_files_is_bounded(code, monkeypatch):
    make(code, "/".join("a" * 12) + "/" + EVENTS, *(f"{number}/{EVENTS}" for number in range(6)))
    assert len(working(code).event_files(True)) == 6
    monkeypatch.setattr(working_folder, "MOST_EVENT_FILES", 4)
    assert len(working(code).event_files(True)) == 4
    monkeypatch.setattr(working_folder, "MOST_ENTRIES", 2)
    assert working(code).event_files(True) == []


# --- models ----------------------------------------------------------------------------------------------------------


def saved_model(code: Path, folder: str, shards: int = 1) -> list[str]:
    paths = ["saved_model.pb", "fingerprint.pb", "variables/variables.index", "variables/variables.data-00000-of-00001"]
    make(code, *(f"{folder}/{path}" if folder else path for path in paths[: 4 if shards else 3]))
    return sorted(paths)


def keras(code: Path, path: str) -> None:
    (code / path).parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(code / path, "w") as archive:
        archive.writestr("config.json", "{}")


def test_a_saved_model_comes_before_keras_and_hdf5(code):
    paths = saved_model(code, "model")
    keras(code, "m.keras")
    make(code, "m.h5", content=HDF5)
    found = working(code).find_model(is_finished=True)
    assert found is not None
    assert (found.found_in, sorted(found.paths), found.prefix) == ("model", paths, "model/")
    (code / "model" / "saved_model.pb").unlink()
    assert working(code).find_model(is_finished=True).found_in == "m.keras"
    (code / "m.keras").unlink()
    found = working(code).find_model(is_finished=True)
    assert (found.found_in, found.paths) == ("m.h5", ["m.h5"])


def test_of_several_the_newest_is_the_model(code):
    now = time.time()
    for number, name in enumerate(("b", "c", "a")):
        keras(code, f"checkpoints/{name}.keras")
        os.utime(code / f"checkpoints/{name}.keras", (now + number, now + number))
    found = working(code).find_model(is_finished=True)
    assert (found.found_in, found.paths) == ("checkpoints/a.keras", ["a.keras"])


def test_at_the_top_only_the_files_of_the_saved_model_are_of_it(code):
    paths = saved_model(code, "")
    make(code, "results.csv")
    found = working(code).find_model(is_finished=True)
    assert (found.found_in, sorted(found.paths)) == (".", paths)


def test_what_is_cut_off_or_holds_weights_alone_is_no_model(code):
    saved_model(code, "half", shards=0)
    make(code, "cut.keras", "no.h5", "best.weights.h5", content=b"PK")
    assert working(code).find_model(is_finished=True) is None
    make(code, "m.h5", content=HDF5)
    assert working(code).find_model(is_finished=False) is None, "it may have been writing it"


def test_a_model_that_came_with_the_code_is_not_the_jobs(code):
    keras(code, "pretrained.keras")
    assert working(code, ("train.py", "data/in.csv", "pretrained.keras")).find_model(is_finished=True) is None


def test_what_is_kept_as_the_model_is_no_output_and_not_left_out(code):
    keras(code, "m.keras")
    make(code, "results.csv")
    folder = working(code, working_bytes=10)
    assert "m.keras" in folder.left_out()
    folder.model = folder.find_model(is_finished=True)
    assert folder.left_out() == ""
    assert names(folder) == ["results.csv"]

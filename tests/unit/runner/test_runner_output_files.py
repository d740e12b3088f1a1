"""Which files below a log directory are outputs, and which bytes of them are to be sent."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from yardmaster_runner import output_files
from yardmaster_runner.output_files import (
    BATCH_FILES,
    SMALL,
    Kept,
    OutputFile,
    batches,
    kept_of,
    list_files,
    open_below,
    pieces_to_send,
)

EVENTS = "train/events.out.tfevents.1.host"
ALWAYS = 1 << 62


def names(folder: Path) -> list[str]:
    return sorted(one.path for one in list_files(str(folder)).files)


def make(folder: Path, *paths: str, content: bytes = b"x") -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)


def test_files_are_listed_with_their_paths_below_the_folder(tmp_path):
    make(tmp_path, EVENTS, "plots/a.png", "metrics.csv")
    assert names(tmp_path) == ["metrics.csv", "plots/a.png", EVENTS]


def test_checkpoints_are_left_to_their_own_keeper(tmp_path):
    make(tmp_path, "checkpoint", "ckpt-5.index", "ckpt-5.data-00000-of-00001", "ckpt-5.meta", "workertemp_1/ckpt.index")
    assert names(tmp_path) == []


def test_the_variables_of_a_saved_model_are_no_checkpoint(tmp_path):
    paths = [
        "export/saved_model.pb",
        "export/variables/variables.index",
        "export/variables/variables.data-00000-of-00001",
    ]
    make(tmp_path, *paths)
    assert names(tmp_path) == sorted(paths)


def test_links_and_special_files_are_passed_over(tmp_path):
    outside = tmp_path / "outside"
    make(outside, "secret.txt")
    log = tmp_path / "log"
    make(log, "kept.txt")
    (log / "file").symlink_to(outside / "secret.txt")
    (log / "folder").symlink_to(outside)
    os.mkfifo(log / "pipe")
    assert names(log) == ["kept.txt"]


@pytest.mark.parametrize("name", ["a\nb", "a\\b", "tail ", "dot.", "x" * 210, "\u202ename"])
def test_names_that_the_portal_refuses_are_left_out_and_counted(tmp_path, name):
    make(tmp_path, "kept.txt", name)
    found = list_files(str(tmp_path))
    assert [one.path for one in found.files] == ["kept.txt"]
    assert "1 files have names" in found.left_out


def test_a_name_that_is_no_text_is_left_out(tmp_path):
    (tmp_path / os.fsdecode(b"\xff")).write_bytes(b"x")
    assert list_files(str(tmp_path)).files == []


def test_no_more_files_are_listed_than_an_attempt_may_have(tmp_path, monkeypatch):
    monkeypatch.setattr(output_files, "MOST_FILES", 3)
    make(tmp_path, *(f"{n}.txt" for n in range(9)))
    found = list_files(str(tmp_path))
    assert len(found.files) == 3
    assert "more than 3 files" in found.left_out


def test_a_file_is_opened_below_the_folder_alone(tmp_path):
    log, outside = tmp_path / "log", tmp_path / "outside"
    make(log, "a/b.txt")
    make(outside, "b.txt", content=b"secret")
    os.close(open_below(str(log), "a/b.txt"))
    (log / "a" / "b.txt").unlink()
    (log / "a" / "b.txt").symlink_to(outside / "b.txt")
    with pytest.raises(OSError, match=r".*"):
        open_below(str(log), "a/b.txt")
    (log / "a" / "b.txt").unlink()
    (log / "a").rmdir()
    (log / "a").symlink_to(outside)
    with pytest.raises(OSError, match=r".*"):
        open_below(str(log), "a/b.txt")


def test_a_pipe_in_the_place_of_a_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        open_below(str(tmp_path), "pipe")


def seen(path: str, size: int, modified: int = 1, inode: int = 7) -> OutputFile:
    return OutputFile(path, size, modified, inode)


def test_a_file_that_has_not_changed_is_not_sent_again():
    file = seen("a.csv", 10)
    (piece,) = pieces_to_send([file], {}, ALWAYS)
    assert (piece.start, piece.length) == (0, 10)
    assert pieces_to_send([file], {"a.csv": piece.kept}, ALWAYS) == []
    (again,) = pieces_to_send([seen("a.csv", 12, 2)], {"a.csv": piece.kept}, ALWAYS)
    assert (again.start, again.length) == (0, 12)


def test_only_what_was_added_to_an_event_file_is_sent():
    kept = {EVENTS: Kept((1000,), 1, 7)}
    (piece,) = pieces_to_send([seen(EVENTS, 1100, 2)], kept, ALWAYS)
    assert (piece.start, piece.length, piece.ends) == (1000, 100, (1000, 1100))


def test_a_segment_takes_in_the_earlier_ones_that_are_not_larger():
    kept = {EVENTS: Kept((1000, 1100), 1, 7)}
    (piece,) = pieces_to_send([seen(EVENTS, 1250, 2)], kept, ALWAYS)
    assert (piece.start, piece.ends) == (1000, (1000, 1250))


def test_an_event_file_under_the_name_of_another_is_sent_whole():
    kept = {EVENTS: Kept((1000,), 1, 7)}
    for file in (seen(EVENTS, 2000, 2, inode=8), seen(EVENTS, 500, 2)):
        (piece,) = pieces_to_send([file], kept, ALWAYS)
        assert piece.start == 0


def test_what_the_portal_has_of_event_files_is_not_sent_again_after_a_restart():
    kept = kept_of([{"path": EVENTS, "size": 1000}])
    assert pieces_to_send([seen(EVENTS, 1000)], kept, ALWAYS) == []
    (piece,) = pieces_to_send([seen(EVENTS, 1001)], kept, ALWAYS)
    assert piece.start == 1000


def test_a_file_that_grows_for_a_month_has_few_segments_and_its_bytes_are_sent_few_times():
    dice, size, sent, kept = random.Random(1), 0, 0, {}
    for _ in range(20_000):
        size += dice.randrange(1, 20_000)
        (piece,) = pieces_to_send([seen(EVENTS, size)], kept, ALWAYS)
        sent += piece.length
        kept[EVENTS] = piece.kept
        assert len(piece.ends) <= 32
    assert sent < size * 16


def test_a_large_file_is_sent_once_it_has_not_changed_for_a_while():
    large = seen("weights.h5", SMALL + 1, modified=100)
    assert pieces_to_send([large], {}, quiet_before=99) == []
    assert len(pieces_to_send([large], {}, quiet_before=100)) == 1


def test_event_files_come_first_and_small_files_travel_together():
    files = [seen(f"{n}.png", 10) for n in range(BATCH_FILES)] + [seen(EVENTS, 20), seen("big", SMALL + 1)]
    found = batches(pieces_to_send(files, {}, ALWAYS))
    assert found[0][0].file.path == EVENTS
    assert [len(batch) for batch in found] == [BATCH_FILES, 1, 1]
    assert found[-1][0].file.path == "big"

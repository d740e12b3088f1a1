"""Which files are records, and which splits and classes their folders and names give."""

from __future__ import annotations

import os
import tracemalloc
from unittest import mock

import hypothesis
import pytest
from hypothesis import strategies as st

from yardmaster_runner import program_inputs
from yardmaster_runner.prepare.files import File, Files, Paths, in_order
from yardmaster_runner.prepare.folder import partners, share_of
from yardmaster_runner.prepare.layout import choose, layout_of, notes_on
from yardmaster_runner.prepare.pieces import Wholes
from yardmaster_runner.prepare.splits import Splits
from yardmaster_runner.prepare.trouble import PrepareError
from yardmaster_runner.prepare.work import Options, Work

REVIEWS = [
    *(f"train/{name}/{number}.txt" for name in ("neg", "pos", "unsup") for number in range(9)),
    *(f"test/{name}/{number}.txt" for name in ("neg", "pos") for number in range(9)),
    "train/urls_pos.txt", "test/urls_neg.txt", "README", "imdb.vocab", "train/labeledBow.feat",
]  # fmt: skip
FLOWERS = [f"{name}/{number}.jpg" for name in ("roses", "tulips") for number in range(9)]


def chosen_of(paths, form="auto", skip=False):
    return choose([File(path, 1) for path in sorted(paths)], form, skip)


def given(paths, form="csv"):
    layout = layout_of(form, paths)
    return [layout.split_of(path) for path in paths]


@pytest.mark.parametrize("top", ["", "aclImdb/", "input/data/"])
def test_folders_that_hold_all_others_are_no_class_and_hide_no_split(top):
    chosen = chosen_of(top + path for path in REVIEWS)
    assert {chosen.layout.class_of(one.path) for one in chosen.files} == {"neg", "pos", "unsup"}
    assert chosen.splits == {"train", "test"}
    assert len(chosen.files) == 45
    assert [one.path for one in chosen.beside] == [top + "test/urls_neg.txt", top + "train/urls_pos.txt"]
    assert notes_on(chosen, ["neg", "pos", "unsup"]) == [
        f"left out, in no class folder or split: 2 files ({top}test/urls_neg.txt, {top}train/urls_pos.txt)",
        f"left out, of other formats: 3 files ({top}README, {top}imdb.vocab, {top}train/labeledBow.feat)",
    ]


@pytest.mark.parametrize("top", ["", "flower_photos/", "a/b/c/"])
def test_classes_without_splits_below_a_top_folder(top):
    chosen = chosen_of([*(top + path for path in FLOWERS), "LICENSE.txt", "cover.jpg"])
    assert {chosen.layout.class_of(one.path) for one in chosen.files} == {"roses", "tulips"}
    assert (chosen.splits, [one.path for one in chosen.beside]) == (set(), ["cover.jpg"])


def test_a_split_that_holds_all_files_is_none_of_the_top_folders():
    chosen = chosen_of(f"data/train/{path}" for path in FLOWERS)
    assert chosen.splits == {"train"}
    assert {chosen.layout.class_of(one.path) for one in chosen.files} == {"roses", "tulips"}


def test_folders_below_a_class_are_no_classes_and_files_without_folders_have_none():
    assert layout_of("images", ["cat/x/1.png", "dog/1.png"]).class_of("cat/x/1.png") == "cat"
    assert chosen_of(["1.png", "2.png"]).files == [File("1.png", 1), File("2.png", 1)]
    assert given(["1.png", "test.png", "train.png"], "images") == ["", "", ""]


def test_one_class_is_warned_of():
    chosen = chosen_of(["photos/1.png", "photos/2.png"])
    assert [chosen.layout.class_of(one.path) for one in chosen.files] == ["photos", "photos"]
    assert notes_on(chosen, ["photos"]) == [
        "warning: all files are of one class, 'photos': classes are folders beside each other"
    ]


def test_many_files_beside_the_classes_are_data_that_was_laid_out_wrongly():
    paths = [*FLOWERS, *(f"{number}.jpg" for number in range(20))]
    with pytest.raises(PrepareError, match=r"^20 files \(0.jpg, 1.jpg, 10.jpg, …\): in no class folder; move .* skip"):
        chosen_of(paths)
    assert len(chosen_of(paths, skip=True).files) == len(FLOWERS)


def test_files_outside_the_given_splits_are_left_out():
    paths = [*(f"train/{path}" for path in FLOWERS), *(f"test/{path}" for path in FLOWERS), "extra/roses/1.jpg"]
    assert [one.path for one in chosen_of(paths).beside] == ["extra/roses/1.jpg"]
    with pytest.raises(PrepareError, match="in none of the given splits; move them into the folder train"):
        chosen_of([*paths, *(f"more/{number}/{path}" for path in FLOWERS for number in range(9))])


def test_a_task_stages_what_the_program_reads(tmp_path):
    files = [File("top/" + path, 1) for path in REVIEWS]
    parts = [program_inputs.needed({}, files, str(tmp_path / "list"), task, 2) for task in range(2)]
    assert sorted([*parts[0], *parts[1]]) == [one.path for one in chosen_of(one.path for one in files).files]


@pytest.mark.parametrize(
    ("paths", "splits"),
    [
        (["train.csv", "test.csv"], ["train", "test"]),
        (["data/Train.csv", "data/dev.csv"], ["train", "validation"]),
        (["x_train.npy", "x_test.npy", "y_train.npy", "y_test.npy"], ["train", "test", "train", "test"]),
        (["train-00001.jsonl", "train-00002-of-2.jsonl", "val_01.jsonl"], ["train", "train", "validation"]),
        (["mnist_train.csv", "mnist_test.csv"], ["train", "test"]),
        (["all.csv", "test.csv"], ["", "test"]),
        (["train/a.csv", "validation/test.csv"], ["train", "validation"]),
        (["train.csv"], [""]),
        (["train-1.csv", "train-2.csv"], ["", ""]),
        (["sales.csv", "ab_test.csv"], ["", ""]),
        (["trainers.csv", "latest.csv"], ["", ""]),
    ],
)
def test_names_of_tables_and_arrays_give_splits_where_they_name_two(paths, splits):
    assert given(paths) == splits


@pytest.mark.parametrize("x", ["x", "X"])
def test_labels_of_arrays_are_in_the_split_of_their_arrays(x):
    paths = [f"{x}_train.npy", f"{x}_test.npy", "y_train.npy", "y_test.npy"]
    assert partners([File(path, 1) for path in paths]) == {"y_train.npy", "y_test.npy"}
    assert given(paths, "numpy") == ["train", "test", "train", "test"]


@pytest.mark.parametrize(("form", "ending"), [("csv", ".csv"), ("jsonl", ".jsonl"), ("numpy", ".npy")])
def test_given_splits_are_those_of_the_names(form, ending):
    paths = ["x_train" + ending, "x_test" + ending]
    chosen = chosen_of(paths)
    assert (chosen.form, chosen.splits) == (form, {"train", "test"})
    assert chosen_of(["train" + ending, "test" + ending, "sample" + ending]).beside == [File("sample" + ending, 1)]


def test_a_given_split_is_written_as_it_is_named(tmp_path):
    (tmp_path / "in").mkdir()
    for name, first in (("train", 0), ("test", 100)):
        rows = "".join(f"{number}\n" for number in range(first, first + 40))
        (tmp_path / "in" / f"{name}.csv").write_text("a\n" + rows)
    said = []
    work = Work(Options(str(tmp_path / "in"), str(tmp_path / "out")), said.append)
    found = {
        work.splits.of(piece.file, place)
        for piece in work.pieces
        for place, record in work.source.records(piece)
        if record["a"] < 100
    }
    assert found == {"train"}
    assert work.splits.given == {"train", "test"}


def test_what_is_known_of_a_file_before_it_is_read_is_small() -> None:
    count = 60_000
    found = (File(f"class-{number % 10}/{number:07}.jpg", 10_000 + number) for number in range(count))
    tracemalloc.start()
    try:
        listed = in_order(found)
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        chosen = choose(listed, "auto", skip=False)
        splits = Splits(chosen, [], False, 1, (0.9, 0.1))
        pieces = Wholes(share_of(chosen.files, chosen.form, 1, 0), {})
        assert sum(1 for one in pieces if splits.of(one.file, "") == "train") > count / 2
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size / count < 60
    assert (most - size) / count < 20


@hypothesis.given(st.lists(st.tuples(st.text(st.characters(exclude_categories=()), max_size=5), st.integers(0, 2**40))))
def test_packed_files_are_what_they_were_in_the_order_of_their_paths(found: list[tuple[str, int]]) -> None:
    files = [File(path, size) for path, size in found if not any("\ud800" <= one <= "\udfff" for one in path)]
    with mock.patch("yardmaster_runner.prepare.files.RUN", 3):
        packed = in_order(files)
    assert packed == sorted(files, key=lambda one: one.path)
    assert [one.path for one in packed] == list(Paths(packed))
    assert packed[:2] == list(packed)[:2]
    assert Files(files) == files
    assert [Files(files)[number] for number in range(-len(files), 0)] == files


def test_names_that_are_no_text_are_kept() -> None:
    odd = File(os.fsdecode(b"a/\xff.png"), 1)
    assert list(Files([odd])) == [odd]

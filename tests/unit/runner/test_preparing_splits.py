"""Each split that is asked for has a record, where there are enough of them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster_runner.prepare import folder, rows
from yardmaster_runner.prepare.files import File
from yardmaster_runner.prepare.layout import choose
from yardmaster_runner.prepare.merging import merged_texts
from yardmaster_runner.prepare.splits import Splits, moved
from yardmaster_runner.prepare.work import Options, Work

TWO, THREE = (0.9, 0.1), (0.8, 0.1, 0.1)


def splits_of(paths, seed, parts):
    files = [File(path, 1) for path in paths]
    splits = Splits(choose(files, "auto", False), [], False, seed, parts)
    return [splits.of(one, "") for one in files]


@given(st.integers(2, 40), st.integers(0, 500), st.sampled_from([TWO, THREE, (0.999, 0.001), (0.0, 1.0)]))
def test_each_split_that_is_asked_for_has_a_file_and_no_more_than_needed_are_moved(count, seed, parts):
    paths = [f"{name}/{number}.txt" for number in range(count) for name in ("pos", "neg")]
    found = splits_of(paths, seed, parts)
    assert set(found) == {name for name, part in zip(folder.SPLITS, parts, strict=False) if part}
    plain = [folder.split_of(path, seed, parts) for path in paths]
    differ = [new for new, old in zip(found, plain, strict=True) if new != old]
    assert len(differ) == len(set(found) - set(plain))


@given(st.integers(2, 9), st.integers(0, 200))
def test_few_rows_have_a_validation_split(count, seed):
    files = [File("a.csv", 9)]
    splits = Splits(choose(files, "auto", False), [("a.csv", range(2, 2 + count))], True, seed, TWO)
    of_rows = splits.of_rows(files[0], range(2, 2 + count))
    assert sorted(at for some in of_rows.values() for at in some) == list(range(count))
    assert set(of_rows) == {"train", "validation"}
    by_one = [splits.of(files[0], rows.place_of("a.csv", number)) for number in range(2, 2 + count)]
    assert [at for at, name in enumerate(by_one) if name == "validation"] == of_rows["validation"]


@pytest.mark.parametrize(("data", "skipped"), [("a\n1\n1,2\n", 1), ("a\n" + "1\n1,2\n" * 9, 9)])
def test_a_row_that_is_left_out_is_moved_to_no_split(tmp_path, data, skipped):
    (tmp_path / "a.csv").write_text(data)
    for seed in range(20):
        options = Options(str(tmp_path), str(tmp_path / "out"), seed=seed, on_bad_record="skip", split="50/50")
        work = Work(options, print)
        good = [rows.place_of("a.csv", number) for number in range(2, 2 + 2 * skipped, 2)]
        assert set(work.splits.moved) <= set(good)
        splits = {work.splits.of(work.pieces[0].file, place) for place in good}
        assert len(splits) == min(2, len(good))


def test_what_is_moved_is_said_and_many_files_are_not_all_looked_at():
    files = [File(f"pos/{number}.txt", 1) for number in range(6)]
    seed = next(n for n in range(99) if len({folder.split_of(one.path, n, TWO) for one in files}) == 1)
    words = Splits(choose(files, "auto", False), [], False, seed, TWO).words()
    assert words[0] == "split by files"
    assert words[1].endswith(".txt is put into validation, which would be empty")
    keys = iter(range(10**6))
    assert moved((str(key) for key in keys), 1, TWO) == {}
    assert next(keys) < 1000
    assert moved((str(key) for key in range(20_000)), 1, (1 - 1e-12, 1e-12)) == {}


@pytest.mark.parametrize("count", [1, 2])
def test_one_record_cannot_be_in_two_splits(count):
    assert len(set(splits_of([f"a/{number}.txt" for number in range(count)], 1, THREE))) == count


def test_a_split_that_is_empty_is_told_with_the_result():
    shard = {"path": "train/train-00000.tfrecord", "records": 2, "size": 9}
    part = {
        "plan": "p", "worker": 0, "workers": 1, "compression": "", "label": "", "classes": [], "counts": {},
        "features": {"a": {"kind": "float", "shape": [], "encoding": ""}}, "splits": {"train": [shard]},
        "statistics": {}, "histograms": {}, "bad": [], "bad_count": 0,
    }  # fmt: skip
    found = [merged_texts([json.dumps({**part, "asked": asked})]) for asked in (["train", "validation"], ["train"])]
    assert [one["empty"] for one in found] == [["validation"], []]
    assert merged_texts([json.dumps(part)])["empty"] == []

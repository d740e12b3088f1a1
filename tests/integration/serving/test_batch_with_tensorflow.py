"""Batch inference with real models: every kind of data, what is written, and which record is at fault."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from portal.env import task_python

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What each run of `predict_batches` came to."""
    environment = {
        "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "platform"), "TF_CPP_MIN_LOG_LEVEL": "3",
        "CUDA_VISIBLE_DEVICES": "-1", "HOME": str(tmp_path_factory.mktemp("home")),
    }  # fmt: skip
    command = [task_python(), str(Path(__file__).with_name("predict_batches.py")), str(tmp_path_factory.mktemp("data"))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_rows_of_tables_are_predicted_by_two_workers_with_file_row_and_kept_columns(told):
    found = told["csv"]
    assert len(found["rows"]) == 12
    assert {"file": "a.csv", "row": 3, "id": "1", "sum": 1.5, "output_row": [1, 0]} in found["rows"]
    assert [one["file"] for one in found["rows"]].count("b.csv") == 2
    numbers = [int(one["path"][-11:-6]) for one in found["about"]["splits"]["predictions"]]
    assert {number % 2 for number in numbers} == {0, 1}  # no two workers write one file
    assert found["about"]["statistics"]["sum"]["max"] == 70.5
    assert "step 11/11" in found["said"]


def test_bad_records_are_named_left_out_up_to_a_bound_and_else_end_the_job(told):
    assert told["csv"]["skipped"] == 2
    first, second = told["csv"]["bad"]
    assert first == "b.csv, row 3: 'oops' is no float32, which the input x takes."
    assert second.startswith("b.csv, row 4: The model refused the input: assertion failed: [too large]")
    assert told["bad"]["error"] == first
    assert told["many"]["error"].startswith("there are more bad records than 1; the last one: b.csv, row 4: ")


def test_lists_of_different_lengths_run_apart_and_stay_in_order(told):
    rows = [(one["row"], one["n"], one["total"], one["root"]) for one in told["jsonl"]["rows"]]
    assert rows == [(1, 1, 3, "NaN"), (2, 1.5, 3, "NaN"), (4, 3, 9, "NaN")]
    assert told["jsonl"]["bad"] == ["a.jsonl, row 3: no column 'ids'"]
    assert told["jsonl"]["about"]["features"]["n"]["kind"] == "float"


def test_texts_and_pictures_in_folders_go_in_as_the_signature_takes_them(told):
    assert told["text"]["rows"][0] == {"file": "good/1.txt", "row": 0, "label": "good", "length": 3, "text": "hé"}
    assert told["text"]["calls"] == 1, "files are batched together"
    assert told["text"]["bad"] == ["bad/2.txt: not UTF-8: byte 0"]
    assert told["images"]["rows"][0]["mean"] == pytest.approx(0.2)
    assert told["images"]["bad"][0].startswith("cat/2.png: cut off")


def test_prepared_shards_are_read_by_their_description_and_predictions_written_as_shards(told):
    rows = [(one["row"][0], one["label"][0], one["sum"][0]) for one in told["records"]["rows"]]
    assert rows == [(0, 0, 1.0), (1, 1, 2.0), (2, 0, 3.0), (3, 1, 4.0), (0, 0, 5.0), (1, 1, 6.0)]
    assert told["records"]["about"]["compression"] == "GZIP"
    assert told["records"]["about"]["features"]["output_row"] == {"kind": "int64", "shape": [2], "encoding": ""}
    assert [one["file"] for one in told["test"]["rows"]] == ["test/test-00000.tfrecord.gz"] * 2
    assert [one["label"] for one in told["serialized"]["rows"]] == [0, 1, 0, 1, 0, 1]
    assert [one["sum"] for one in told["numpy"]["rows"]] == [1.0, 5.0, 9.0]


def test_a_signature_with_a_fixed_batch_gets_full_batches_and_gives_no_row_too_many(told):
    assert sorted(one["sum"][0] for one in told["fours"]["rows"]) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_what_no_record_is_to_blame_for_ends_the_job_with_its_reason(told):
    assert told["cut"]["error"].startswith("a.tfrecord is damaged: it ends within record 5 (from 0, at byte ")
    assert told["flipped"]["error"].startswith("a.tfrecord is damaged: the content of record 3 (from 0, at byte ")
    assert "step 6/6" in told["plain"]["said"]
    assert told["one"]["error"] == "the output sum has no row per example: its shape is [] for 3 examples"
    assert "the data has id, u, v. Say it with columns, such as x=COLUMN" in told["unfed"]["error"]
    assert told["unknown"]["error"].startswith("The model has no signature 'absent'. Its signatures: fours, ")

"""Preparation with TensorFlow and Pillow: what it writes is read back, and bad input is named."""

from __future__ import annotations

import json
import math
import os
import subprocess
from pathlib import Path

import pytest

from portal.env import task_python

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

PLATFORM = Path(__file__).resolve().parents[3] / "platform"
ENVIRONMENT = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PLATFORM), "TF_CPP_MIN_LOG_LEVEL": "3"}
READ = """
import hashlib, json, sys, tensorflow as tf
top = sys.argv[1]
told = json.load(open(top + "/dataset.json"))
found = []
for split, shards in told["splits"].items():
    for shard in shards:
        records = list(tf.data.TFRecordDataset(top + "/" + shard["path"], told["compression"]).as_numpy_iterator())
        assert len(records) == shard["records"], shard
        for record in records:
            example = tf.train.Example.FromString(record)
            members = {}
            for name, one in sorted(example.features.feature.items()):  # a map of protobuf has no order
                values = list(getattr(one, one.WhichOneof("kind")).value)
                members[name] = [v.hex() if isinstance(v, bytes) else v for v in values]
            found.append([split, members])
print(json.dumps(sorted(found, key=str)))
"""
MAKE = """
import sys, numpy as np
from PIL import Image
top = sys.argv[1]
import os
for name in ("cat", "dog"):
    os.makedirs(top + "/images/" + name)
    for number in range(12):
        for ending in ("png", "jpg"):
            picture = Image.fromarray(np.random.randint(0, 255, (20, 20, 3), np.uint8))
            picture.save("%s/images/%s/%d.%s" % (top, name, number, ending))
os.makedirs(top + "/numpy")
np.save(top + "/numpy/x.npy", np.arange(60, dtype="float32").reshape(10, 2, 3))
np.save(top + "/numpy/y.npy", np.arange(10) % 3)
"""


BOTH_WRITERS = """
import gzip, sys
from yardmaster_runner.prepare import shards

def written(top, compression, few):
    shards.FEW_BYTES = few
    one = shards.Shards(top, compression, 3_000, 0, 0, 1)
    for number in range(0, 400, 2):
        some = [bytes([each % 256]) * each for each in (number, number + 1)]
        if number % 3:
            one.write_all("train", some)
        else:
            one.write("test", some[0])
            one.write("train", some[1])
    found = one.close()
    reading = gzip.open if compression else open
    return found["train"], [reading(top + "/" + each["path"], "rb").read() for each in found["train"] + found["test"]]

top = sys.argv[1]
for compression in ("", "GZIP"):
    own = written(top + "/own" + compression, compression, 1 << 20)
    assert "tensorflow" not in sys.modules or compression
    others = written(top + "/others" + compression, compression, 20_000)
    assert own[1] == others[1] and len(own[1]) > 10
    assert compression or own[0] == others[0]
assert "tensorflow" in sys.modules
"""


def python(*arguments):
    return subprocess.run(
        [task_python(), *map(str, arguments)], capture_output=True, text=True, env=ENVIRONMENT, timeout=100
    )


def prepare(source, output, *options):
    return python("-m", "yardmaster_runner.prepare", "--input", source, "--output", output, *options)


def read(output):
    done = python("-c", READ, output)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    top = tmp_path_factory.mktemp("inputs")
    done = python("-c", MAKE, top)
    assert done.returncode == 0, done.stderr
    return top


def test_two_workers_write_the_images_that_one_writes(inputs, tmp_path):
    one = prepare(inputs / "images", tmp_path / "one", "--compression", "gzip", "--records-per-shard", "7")
    assert one.returncode == 0, one.stderr
    assert "step 48/48" in one.stdout
    for worker in "01":
        done = prepare(inputs / "images", tmp_path / "two", "--worker", worker, "--workers", "2")
        assert done.returncode == 0, done.stderr
    assert prepare(inputs / "images", tmp_path / "two", "--workers", "2", "--merge").returncode == 0
    records = read(tmp_path / "one")
    assert records == read(tmp_path / "two")
    files = {path.read_bytes().hex(): path.parent.name for path in (inputs / "images").rglob("*.*")}
    names = ["cat", "dog"]
    assert {m["image"][0]: names[m["label"][0]] for _, m in records} == files


def test_arrays_come_back_with_their_labels(inputs, tmp_path):
    done = prepare(inputs / "numpy", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "out" / "dataset.json").read_text())
    assert told["features"]["x"] == {"kind": "bytes", "shape": [2, 3], "encoding": "raw:float32"}
    rows = (inputs / "numpy" / "x.npy").read_bytes()[-240:]
    expected = {(rows[24 * row : 24 * row + 24].hex(), row % 3) for row in range(10)}
    assert {(m["x"][0], m["y"][0]) for _, m in read(tmp_path / "out")} == expected


def test_rows_texts_and_a_step(tmp_path):
    (tmp_path / "in").mkdir()
    rows = [{"n": -number, "f": [number / 2, 1], "t": f"é{number}"} for number in range(30)]
    (tmp_path / "in" / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "step.py").write_text(
        "def map_record(r):\n    return None if r['n'] == -3 else {'twice': r['n'] * 2}\n"
    )
    assert prepare(tmp_path / "in", tmp_path / "plain").returncode == 0
    plain = [m for _, m in read(tmp_path / "plain")]
    key = str
    expected = [{"n": [r["n"]], "f": r["f"], "t": [r["t"].encode().hex()]} for r in rows]
    assert sorted((sorted(m.items()) for m in plain), key=key) == sorted((sorted(m.items()) for m in expected), key=key)
    done = prepare(tmp_path / "in", tmp_path / "mapped", "--step", tmp_path / "step.py")
    assert done.returncode == 0, done.stderr
    assert sorted(m["twice"][0] for _, m in read(tmp_path / "mapped")) == sorted(-2 * n for n in range(30) if n != 3)


TABLE = """\
size,weight,name,note,kind
1,0.5,"a, b",,cat
-2,,é,"two
lines",dog
9007199254740993,1e3,c,x,cat
"""


def test_a_table_comes_back_with_numbers_texts_empty_cells_and_a_label(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text(TABLE)
    done = prepare(tmp_path / "in", tmp_path / "out", "--label", "kind")
    assert done.returncode == 0, done.stderr
    told = json.loads((tmp_path / "out" / "dataset.json").read_text())
    assert told["classes"] == ["cat", "dog"]
    rows = {m["size"][0]: m for _, m in read(tmp_path / "out")}
    texts = {size: [bytes.fromhex(m[name][0]).decode() for name in ("name", "note")] for size, m in rows.items()}
    assert texts == {1: ["a, b", ""], -2: ["é", "two\nlines"], 9007199254740993: ["c", "x"]}
    assert {size: m["kind"] for size, m in rows.items()} == {1: [0], -2: [1], 9007199254740993: [0]}
    weights = {size: m["weight"] for size, m in rows.items()}
    assert (weights[1], weights[9007199254740993]) == ([0.5], [1000.0])
    assert math.isnan(weights[-2][0])


@pytest.mark.parametrize("name", ["0.png", "0.jpg"])
def test_a_truncated_image_is_named_or_skipped(inputs, tmp_path, name):
    (tmp_path / "in" / "cat").mkdir(parents=True)
    data = (inputs / "images" / "cat" / name).read_bytes()
    (tmp_path / "in" / "cat" / name).write_bytes(data[:-40])
    (tmp_path / "in" / "cat" / f"whole{name}").write_bytes(data)
    done = prepare(tmp_path / "in", tmp_path / "out")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"cat/{name}: ")
    done = prepare(tmp_path / "in", tmp_path / "skipped", "--on-bad-record", "skip")
    assert done.returncode == 0, done.stderr
    assert "1 records, 1 skipped" in done.stdout


def test_an_error_of_the_step_names_the_row(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("a\n1\n2\n")
    (tmp_path / "step.py").write_text("def map_record(r):\n    return {'b': 1 // (2 - r['a'])}\n")
    done = prepare(tmp_path / "in", tmp_path / "out", "--step", tmp_path / "step.py")
    assert done.returncode == 1
    assert "a.csv, row 3: map_record: ZeroDivisionError" in done.stderr


def test_few_records_are_written_without_tensorflow_as_it_writes_them(tmp_path):
    done = python("-c", BOTH_WRITERS, tmp_path)
    assert done.returncode == 0, done.stderr

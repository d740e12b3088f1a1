"""A script reads shards that are streamed, from stores that fail: through the runner, with the package it offers."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path

import pytest

from portal.env import task_python
from tests.integration.runner.conftest import Task
from tests.integration.runner.fake_task_portal import FakeTaskPortal
from yardmaster_runner.data.damage import masked_crc32c
from yardmaster_runner.data.description import Description, Feature, Shard, to_text

READ = """
from yardmaster_runner.data import inputs, passes
one = inputs.find("reviews")
shards = [path for path, _ in passes.listed(one)]
todo = passes.Passes(one, shards, shuffle=False, seed=None)
for number, shard in todo.one():
    with open(todo.get(number, shard), "rb") as file:
        print("read", shards[shard], len(file.read()))
    todo.release(number, shard)
"""


def framed(*records: bytes) -> bytes:
    """As a TFRecord file has them."""
    out = b""
    for one in records:
        length = struct.pack("<Q", len(one))
        out += length + struct.pack("<I", masked_crc32c(length)) + one + struct.pack("<I", masked_crc32c(one))
    return out


def prepared(portal: FakeTaskPortal, shards: list[bytes], *, mode: str = "stream", share: str = "all") -> list[dict]:
    """The order's inputs: one prepared dataset with these shards."""
    described = tuple(Shard(f"train/{n}.tfrecord", 10, len(content)) for n, content in enumerate(shards))
    text = to_text(Description({"text": Feature("bytes", (), "utf8")}, {"train": described}))
    files = [portal.add_file("dataset.json", text.encode())]
    files += [portal.add_file(one.path, content) for one, content in zip(described, shards, strict=True)]
    return [{"version": "da7a", "name": "reviews", "dataset": "r", "mode": mode, "share": share, "files": files}]


def said(portal: FakeTaskPortal) -> str:
    return b"\n".join(portal.lines()).decode()


SHARDS = [bytes([65 + number]) * 1000 for number in range(6)]


def test_only_small_files_are_staged_and_shards_come_when_they_are_read(portal, task: Task) -> None:
    script = "import os\nprint(sorted(os.listdir(os.environ['DATA_DIR'] + '/reviews')))\n" + READ
    portal.orders(script, inputs=prepared(portal, SHARDS))
    assert task.run() == 0
    assert "['dataset.json']" in said(portal)
    assert [f"read train/{n}.tfrecord 1000" for n in range(6)] == [x for x in said(portal).split("\n") if "read " in x]
    assert portal.served.count("train/0.tfrecord") == 1
    assert not (task.work / "data.sock").exists()


def test_a_folder_has_the_tasks_own_shards_and_others_come_when_they_are_asked_for(portal, task: Task) -> None:
    script = """
import os
from yardmaster_runner.data.inputs import find
from yardmaster_runner.data.passes import fetched
print("copied", sorted(os.listdir(os.environ["DATA_DIR"] + "/reviews/train")))
connection, path = fetched(find("reviews"), "train/0.tfrecord")
print("asked for", os.path.getsize(path))
"""
    roles = {"worker": {"replicas": 2, "cpu": 1, "memory": 1 << 30}}
    portal.orders(script, inputs=prepared(portal, SHARDS, mode="folder", share="shards"))
    portal.order["spec"] |= {"strategy": "multi_worker_mirrored", "roles": roles}
    task.variables = {"YARDMASTER_INDEX": "1"}
    assert task.run() == 0
    text = b"\n".join(portal.lines("worker-1")).decode()
    assert "copied ['1.tfrecord', '3.tfrecord', '5.tfrecord']" in text
    assert "asked for 1000" in text
    assert sorted(one for one in portal.served if "tfrecord" in one) == [f"train/{n}.tfrecord" for n in (0, 1, 3, 5)]


def test_the_script_gets_the_data_package_and_nothing_else_of_the_runner(portal, task: Task) -> None:
    script = """
import importlib.util as find, os
print("data", bool(find.find_spec("yardmaster_runner.data.reading")))
for name in ("yardmaster_runner.stage", "yardmaster_client", "yardmaster", "portal"):
    try:
        print(name, bool(find.find_spec(name)))
    except ModuleNotFoundError:
        print(name, False)
print("token" in open(os.environ["YARDMASTER_DATA"]).read().lower())
"""
    portal.orders(script)
    assert task.run() == 0
    words = said(portal).split()
    assert words[:2] == ["data", "True"]
    assert words[2:].count("False") == 5


def test_a_store_that_is_busy_is_asked_again_and_an_expired_address_is_renewed(portal, task: Task) -> None:
    failures = {"train/0.tfrecord": [503, 503], "train/1.tfrecord": [403]}

    def trouble(method: str, path: str) -> int | None:
        left = failures.get(path.lstrip("/").partition("/")[2], [])
        return left.pop(0) if left else None

    portal.orders(READ, inputs=prepared(portal, SHARDS))
    portal.trouble, portal.trouble_code = trouble, "address_refused"
    assert task.run() == 0
    assert said(portal).count("read train/") == 6
    assert [path for _, path in portal.requests].count("order/") == 2


def test_a_shard_that_is_wrong_once_is_fetched_again(portal, task: Task) -> None:
    inputs = prepared(portal, SHARDS)
    portal.once["train/2.tfrecord"] = b"?" * 1000
    portal.orders(READ, inputs=inputs)
    assert task.run() == 0
    assert portal.served.count("train/2.tfrecord") == 2


def test_a_shard_that_stays_wrong_is_named_in_the_log_of_the_script(portal, task: Task) -> None:
    inputs = prepared(portal, SHARDS)
    portal.files["train/2.tfrecord"] = b"?" * 1000
    portal.orders(READ, inputs=inputs)
    assert task.run() == 1
    assert "DataError: train/2.tfrecord (of reviews) is corrupt, twice: its SHA-256 is" in said(portal)
    assert "read train/1.tfrecord" in said(portal)


def test_an_object_that_has_vanished_is_named_in_the_log_of_the_script(portal, task: Task) -> None:
    inputs = prepared(portal, SHARDS)
    del portal.files["train/3.tfrecord"]
    portal.orders(READ, inputs=inputs)
    assert task.run() == 1
    assert "train/3.tfrecord (of reviews) cannot be fetched: the store answered 404" in said(portal)


def test_a_bound_below_one_shard_is_named_in_the_log_of_the_script(portal, task: Task) -> None:
    portal.orders(READ, inputs=prepared(portal, SHARDS), limits={"stream_bytes": 500})
    assert task.run() == 1
    assert "has 1000 bytes, and the folder for shards holds 500 (YARDMASTER_STREAM_CACHE" in said(portal)


def test_a_work_folder_with_a_long_path_has_its_socket_elsewhere(portal, task: Task) -> None:
    task.folder = task.folder / ("long" * 30)
    task.folder.mkdir()
    portal.orders(READ, inputs=prepared(portal, SHARDS))
    assert task.run() == 0
    assert said(portal).count("read train/") == 6


TRAIN = """
import os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
from yardmaster_runner import data
import tensorflow as tf
for epoch in range(2):
    for text in {source}:
        pass
"""


def with_tensorflow(task: Task) -> None:
    task.variables = {"YARDMASTER_PYTHON": task_python(), "CUDA_VISIBLE_DEVICES": ""}


@pytest.mark.tensorflow
def test_tensorflow_reads_streamed_shards_and_damage_is_named_with_file_and_record(portal, task: Task) -> None:
    with_tensorflow(task)
    whole = [framed(*[b"%d-%d" % (shard, number) for number in range(10)]) for shard in range(3)]
    script = TRAIN.replace("pass", 'print("got", text.numpy().decode())')
    portal.orders(script.format(source='data.records("reviews")'), inputs=prepared(portal, whole))
    assert task.run() == 0
    got = [line.split()[1] for line in said(portal).split("\n") if line.startswith("got ")]
    assert got == 2 * [f"{shard}-{number}" for shard in range(3) for number in range(10)]
    assert portal.served.count("train/1.tfrecord") == 1  # the second epoch finds it

    damaged = bytearray(whole[1])
    damaged[len(damaged) // 2] ^= 1
    portal.orders(script.format(source='data.records("reviews")'), inputs=prepared(portal, [whole[0], bytes(damaged)]))
    portal.order["inputs"][0]["version"] = "da7b"
    assert task.run() == 1
    assert "train/1.tfrecord is damaged: " in said(portal)
    assert "record 5 (from 0" in said(portal)
    assert said(portal).split("\n")[-1].startswith("yardmaster: the shard ")
    assert "train/1.tfrecord is damaged: " in json.loads((task.work / "exit.json").read_text())["message"]


@pytest.mark.tensorflow
@pytest.mark.timeout(250)
@pytest.mark.parametrize("trouble", ["cut off", "changed"])
def test_a_shard_that_cannot_be_had_ends_the_reader_with_one_clear_line(portal, task: Task, trouble: str) -> None:
    """The script ends while TensorFlow still asks for shards, which must not hold it up."""
    with_tensorflow(task)
    whole = [framed(*[b"%d-%d" % (shard, number) for number in range(10)]) for shard in range(4)]
    inputs = prepared(portal, whole)
    if trouble == "cut off":
        portal.files["train/2.tfrecord"] = whole[2][:-7]
        why = "train/2.tfrecord (of reviews) is corrupt, twice: it has 183 bytes, not 190"
    else:
        inputs[0]["files"][3]["sha256"] = "etag:another"
        why = "train/2.tfrecord (of reviews): it was changed or deleted in its bucket after the dataset was registered"
        why += ". Scan the dataset again and use its new version"
    script = TRAIN.replace("pass", 'print("got", text.numpy().decode())').format(source='data.records("reviews")')
    portal.orders(script, inputs=inputs)
    assert task.run(timeout=200) == 1
    lines = said(portal).split("\n")
    assert lines[-1] == f"yardmaster: {why}"
    assert [x for x in lines if x.startswith("got ")] == [f"got {shard}-{n}" for shard in (0, 1) for n in range(10)]
    assert json.loads((task.work / "exit.json").read_text())["message"] == why


def test_damage_is_found_in_plain_and_compressed_files(tmp_path: Path) -> None:
    from yardmaster_runner.data.damage import explain, found_in

    whole = framed(*[b"x" * 100 for _ in range(10)])
    plain, packed, broken = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    plain.write_bytes(whole[:-20])
    packed.write_bytes(gzip.compress(whole[:-20]))
    broken.write_bytes(gzip.compress(whole)[:-12])
    assert explain(str(plain), "") == explain(str(packed), "GZIP") == "it ends within record 9 (from 0, at byte 1044)"
    assert "compressed data is damaged" in explain(str(broken), "GZIP")
    flipped = bytearray(whole)
    flipped[500] ^= 1
    plain.write_bytes(flipped)
    text = found_in("corrupted record at 476", [([str(packed)], "GZIP"), ([str(plain)], "")])
    assert text is not None
    assert text == f"the shard {plain} is damaged: the content of record 4 (from 0, at byte 464) is damaged"
    assert found_in("some other error", [([str(plain)], "")]) is None

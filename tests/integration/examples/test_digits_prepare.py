"""`prepare.py` turns real images into shards that TensorFlow reads."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from portal.env import task_python
from tests.integration.examples.by_hand import EXAMPLES
from yardmaster_runner.data.description import from_text
from yardmaster_runner.events import masked_crc32c

PREPARE = EXAMPLES / "digits" / "prepare.py"

READ_WITH_TENSORFLOW = """
import sys
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits
sys.path.insert(0, sys.argv[1])
import digits_data
images, labels = [], []
for batch in digits_data.test_data(sys.argv[2]):
    images.append(batch[0].numpy()), labels.append(batch[1].numpy())
for batch in digits_data._records(sys.argv[2], "train", 0, 1).map(digits_data._parse).batch(500):
    images.append(batch[0].numpy()), labels.append(batch[1].numpy())
read = sorted((tuple(image), label) for image, label in zip(np.concatenate(images), np.concatenate(labels)))
source = load_digits()
true = sorted((tuple(image), label) for image, label in zip((source.data / 16).astype("float32"), source.target))
assert read == true, "not the same images"
shares = [sum(1 for _ in digits_data._records(sys.argv[2], "train", i, 11)) for i in range(11)]
assert sum(shares) == 1618 and min(shares) > 100, shares
"""


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([task_python(), PREPARE, *arguments], capture_output=True, text=True, timeout=60)


def records(shard: Path) -> list[bytes]:
    """The records of a TFRecord file, their checksums verified."""
    data, found = shard.read_bytes(), []
    while data:
        length = int.from_bytes(data[:8], "little")
        record = data[12 : 12 + length]
        assert int.from_bytes(data[8:12], "little") == masked_crc32c(data[:8])
        assert int.from_bytes(data[12 + length : 16 + length], "little") == masked_crc32c(record)
        found.append(record)
        data = data[16 + length :]
    return found


def test_the_description_counts_what_the_shards_hold(digits: Path) -> None:
    description = from_text((digits / "dataset.json").read_text())
    shards = [shard for split in description.splits.values() for shard in split]
    there = [(path.name, len(records(path)), path.stat().st_size) for path in digits.glob("*.tfrecord")]
    assert sorted(there) == sorted((one.path, one.records, one.size) for one in shards)
    assert description.records("train") + description.records("test") == 1797
    assert len(description.splits["train"]) == 8
    assert {split: sum(counts.values()) for split, counts in description.counts.items()} == {"train": 1618, "test": 179}


def test_no_image_is_in_two_shards(digits: Path) -> None:
    everything = [record for path in digits.glob("*.tfrecord") for record in records(path)]
    assert len(everything) == len(set(everything)) == 1797


def test_the_same_arguments_give_the_same_bytes(digits: Path, tmp_path: Path) -> None:
    assert run(tmp_path, "--shards", "8").returncode == 0
    again = run(tmp_path, "--shards", "8")
    assert again.stdout == "train: 1618 images in 8 files\ntest: 179 images in 2 files\n"
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {p.name: p.read_bytes() for p in digits.iterdir()}


def test_leftover_shards_would_count_twice_and_are_refused(tmp_path: Path) -> None:
    (tmp_path / "train-00000-of-00003.tfrecord").touch()
    ended = run(tmp_path)
    assert ended.returncode == 1
    assert "train-00000-of-00003.tfrecord: choose an empty folder" in ended.stderr
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("shards", ["0", "-1", "1001"])
def test_an_impossible_number_of_shards_is_refused(tmp_path: Path, shards: str) -> None:
    ended = run(tmp_path, "--shards", shards)
    assert ended.returncode == 2
    assert f"--shards {shards}: give a number from 1 to 1000" in ended.stderr


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_tensorflow_reads_every_image_as_it_was(digits: Path) -> None:
    command = [task_python(), "-c", READ_WITH_TENSORFLOW, str(EXAMPLES / "digits"), str(digits)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert ended.returncode == 0, ended.stderr

"""A small prepared dataset, written without TensorFlow: numbered records in shards; a script that reads it twice."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

from tests.unit.runner.event_writer import framed
from yardmaster_runner.data.description import Description, Feature, Shard, to_text
from yardmaster_runner.data.example_bytes import example

READS_TWICE = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
from yardmaster_runner import data

print("machine", os.uname().nodename)
print("staged", sorted(os.listdir(os.environ["DATA_DIR"])))
train = data.dataset("numbers", batch=8, seed=1)
for epoch in range(2):
    print("labels", epoch, sorted(int(one) for _, labels in train for one in labels))
"""


def write(folder: Path, shards: int = 6, records: int = 20, compression: str = "") -> Path:
    """Records have a `number`, counted over all shards, which is their label, `numbers` (as many as its last digit),
    and a `point` of two."""
    described = []
    for shard in range(shards):
        content = b"".join(framed(_record(shard * records + one)) for one in range(records))
        content = gzip.compress(content, mtime=0) if compression else content
        path = f"train/train-{shard:05}.tfrecord" + (".gz" if compression else "")
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
        described.append(Shard(path, records, len(content)))
    features = {
        "label": Feature("int64", ()),
        "numbers": Feature("int64", None),
        "point": Feature("float", (2,)),
        "raw": Feature("bytes", (2, 2), "raw:int16"),
        "text": Feature("bytes", (), "utf8"),
    }
    text = to_text(Description(features, {"train": tuple(described)}, compression, "label"))
    (folder / "dataset.json").write_text(text)
    return folder


def labels(lines: list[str]) -> list[int]:
    """Those that `READS_TWICE` printed of one epoch, after checking that both were the same."""
    first, second = (re.findall(r"\d+", line)[1:] for line in lines if line.startswith("labels"))
    assert first == second
    return [int(number) for number in first]


def _record(number: int) -> bytes:
    return example(
        {
            "label": ("int64", [number]),
            "numbers": ("int64", list(range(number % 10))),
            "point": ("float", [number, -number]),
            "raw": ("bytes", [b"\1\0\2\0\3\0\4\0"]),
            "text": ("bytes", [f"größe {number}".encode()]),
        }
    )

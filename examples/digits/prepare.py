"""Turns scikit-learn's handwritten digits (1,797 real 8x8 images) into TFRecord shards.

    python examples/digits/prepare.py OUT_DIR --shards 8

The shards are `train-*.tfrecord` (90 %) and `test-*.tfrecord` (10 %), split by file, so that a worker can take some of
them for itself. `dataset.json` says what is in them. The same arguments always give the same bytes.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from tfrecords import example, write_tfrecords

BRIGHTEST = 16.0
"""The largest value of a pixel in scikit-learn's images."""


def shuffled_records() -> list[bytes]:
    """Every image as a serialized Example, in a fixed random order (the source is sorted by writer)."""
    digits = load_digits()
    order = np.random.default_rng(seed=1797).permutation(len(digits.target))
    pixels = (digits.data / BRIGHTEST).astype(np.float32)
    return [example({"image": pixels[i].tolist(), "label": [int(digits.target[i])]}) for i in order]


def shard_names(split: str, shards: int) -> list[str]:
    return [f"{split}-{index:05d}-of-{shards:05d}.tfrecord" for index in range(shards)]


def write_split(out_dir: Path, names: list[str], records: list[bytes]) -> dict:
    counts = [write_tfrecords(out_dir / name, records[i :: len(names)]) for i, name in enumerate(names)]
    return {"records": sum(counts), "files": dict(zip(names, counts, strict=True))}


def prepare(out_dir: Path, shards: int) -> dict:
    """Write the shards and `dataset.json`; return what the latter holds."""
    train_names, test_names = shard_names("train", shards), shard_names("test", max(1, shards // 4))
    out_dir.mkdir(parents=True, exist_ok=True)
    others = {path.name for path in out_dir.glob("*.tfrecord")} - {*train_names, *test_names}
    if others:  # a reader takes all train-*.tfrecord files: leftovers would count twice
        raise SystemExit(f"{out_dir} has other shards already, such as {min(others)}: choose an empty folder")
    records = shuffled_records()
    held_out = len(records) // 10
    summary = {
        "name": "digits",
        "source": "scikit-learn load_digits (UCI optical recognition of handwritten digits, test part)",
        "features": {"image": {"type": "float32", "shape": [64]}, "label": {"type": "int64", "shape": []}},
        "classes": 10,
        "splits": {
            "train": write_split(out_dir, train_names, records[held_out:]),
            "test": write_split(out_dir, test_names, records[:held_out]),
        },
    }
    (out_dir / "dataset.json").write_text(json.dumps(summary, indent=2) + "\n")
    return summary


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out_dir", type=Path)
    parser.add_argument("--shards", type=int, default=8, help="how many training files (1 to 1000)")
    args = parser.parse_args()
    if not 1 <= args.shards <= 1000:
        parser.error(f"--shards {args.shards}: give a number from 1 to 1000")
    for split, content in prepare(args.out_dir, args.shards)["splits"].items():
        print(f"{split}: {content['records']} images in {len(content['files'])} files")


if __name__ == "__main__":
    main()

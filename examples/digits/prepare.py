"""Turns scikit-learn's handwritten digits (1,797 real 8x8 images) into TFRecord shards.

    python examples/digits/prepare.py OUT_DIR --shards 8

The shards are `train-*.tfrecord` (90 %) and `test-*.tfrecord` (10 %), split by file, so that a worker can take some of
them for itself. `dataset.json` describes them as a preparation does (docs/preparing-data.md), so that the portal shows
the classes and `yardmaster_runner.data` reads them. The same arguments always give the same bytes.
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


def shuffled_images() -> list[tuple[list[float], int]]:
    """Every image with its label, in a fixed random order (the source is sorted by writer)."""
    digits = load_digits()
    order = np.random.default_rng(seed=1797).permutation(len(digits.target))
    pixels = (digits.data / BRIGHTEST).astype(np.float32)
    return [(pixels[i].tolist(), int(digits.target[i])) for i in order]


def shard_names(split: str, shards: int) -> list[str]:
    return [f"{split}-{index:05d}-of-{shards:05d}.tfrecord" for index in range(shards)]


def write_split(out_dir: Path, names: list[str], images: list[tuple[list[float], int]]) -> list[dict]:
    records = [example({"image": pixels, "label": [label]}) for pixels, label in images]
    counts = [write_tfrecords(out_dir / name, records[i :: len(names)]) for i, name in enumerate(names)]
    return [
        {"path": name, "records": count, "size": (out_dir / name).stat().st_size}
        for name, count in zip(names, counts, strict=True)
    ]


def per_class(images: list[tuple[list[float], int]]) -> dict[str, int]:
    labels = [label for _, label in images]
    return {str(digit): labels.count(digit) for digit in range(10)}


def prepare(out_dir: Path, shards: int) -> dict:
    """Write the shards and `dataset.json`; return what the latter holds."""
    train_names, test_names = shard_names("train", shards), shard_names("test", max(1, shards // 4))
    out_dir.mkdir(parents=True, exist_ok=True)
    others = {path.name for path in out_dir.glob("*.tfrecord")} - {*train_names, *test_names}
    if others:  # a reader takes all train-*.tfrecord files: leftovers would count twice
        raise SystemExit(f"{out_dir} has other shards already, such as {min(others)}: choose an empty folder")
    images = shuffled_images()
    held_out = len(images) // 10
    train, test = images[held_out:], images[:held_out]
    description = {
        "format": "yardmaster-dataset",
        "version": 1,
        "name": "digits",
        "source": "scikit-learn load_digits (UCI optical recognition of handwritten digits, test part)",
        "compression": "",
        "features": {"image": {"kind": "float", "shape": [64]}, "label": {"kind": "int64", "shape": []}},
        "label": "label",
        "classes": [str(digit) for digit in range(10)],
        "splits": {"train": write_split(out_dir, train_names, train), "test": write_split(out_dir, test_names, test)},
        "counts": {"train": per_class(train), "test": per_class(test)},
    }
    (out_dir / "dataset.json").write_text(json.dumps(description, indent=2) + "\n")
    return description


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out_dir", type=Path)
    parser.add_argument("--shards", type=int, default=8, help="how many training files (1 to 1000)")
    args = parser.parse_args()
    if not 1 <= args.shards <= 1000:
        parser.error(f"--shards {args.shards}: give a number from 1 to 1000")
    for split, written in prepare(args.out_dir, args.shards)["splits"].items():
        print(f"{split}: {sum(shard['records'] for shard in written)} images in {len(written)} files")


if __name__ == "__main__":
    main()

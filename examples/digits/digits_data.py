"""Reads the shards that `prepare.py` wrote. Every script of this folder uses it."""

from __future__ import annotations

from pathlib import Path

import tensorflow as tf

PIXELS = 64
CLASSES = 10

_FEATURES = {
    "image": tf.io.FixedLenFeature([PIXELS], tf.float32),
    "label": tf.io.FixedLenFeature([], tf.int64),
}


def _records(data_dir: str, split: str, shard: int, shards: int) -> tf.data.Dataset:
    files = sorted(str(path) for path in Path(data_dir).glob(f"{split}-*.tfrecord"))
    if not files:
        raise SystemExit(f"no {split}-*.tfrecord file in --data_dir {data_dir!r}: write them with prepare.py")
    if len(files) >= shards:  # whole files: a worker never opens what it does not train on
        return tf.data.TFRecordDataset(files[shard::shards])
    return tf.data.TFRecordDataset(files).shard(shards, shard)


def training_data(data_dir: str, batch_size: int, *, shard: int = 0, shards: int = 1) -> tf.data.Dataset:
    """Shuffled batches of (images, labels) without end, from part `shard` of `shards`."""
    return (
        _records(data_dir, "train", shard, shards)
        .batch(256)
        .map(_parse)
        .unbatch()
        .cache()
        .shuffle(2000)
        .repeat()
        .batch(batch_size, drop_remainder=True)
        .prefetch(2)
        .with_options(_without_tuning())
    )


def test_data(data_dir: str) -> tf.data.Dataset:
    """The held-out images, once, in batches."""
    return _records(data_dir, "test", 0, 1).batch(256).map(_parse)


def _without_tuning() -> tf.data.Options:
    """These images fit into memory, so that there is nothing to tune, and the thread that tunes now and then keeps a
    session from closing for ten seconds."""
    options = tf.data.Options()
    options.autotune.enabled = False
    return options


def _parse(records: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    example = tf.io.parse_example(records, _FEATURES)
    return example["image"], example["label"]

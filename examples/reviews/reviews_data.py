"""Reads the shards that the preparation wrote, with `yardmaster_runner.data`, which every task of a job can import. By
hand it is in `platform/`: PYTHONPATH=platform python examples/reviews/train.py ...
"""

from __future__ import annotations

import math
import os

import numpy as np
import tensorflow as tf

from yardmaster_runner import data

EVERYTHING = 1 << 20
"""More than any split has: one batch is all of it."""


def _name(data_dir: str) -> str:
    """In a job its only input, wherever its shards are; elsewhere the folder."""
    return "" if os.environ.get("YARDMASTER_DATA") else data_dir


def classes(data_dir: str) -> list[str]:
    """The names of the labels. Raises SystemExit where the data are not texts in classes."""
    found = data.describe(_name(data_dir))
    if not {"text", "label"} <= set(found.features) or len(found.classes) < 2:
        raise SystemExit(f"{data_dir} has no texts in classes: prepare them with --format text")
    return list(found.classes)


def training_data(data_dir: str, batch_size: int, *, shard: int = 0, shards: int = 1, seed: int = 1) -> tf.data.Dataset:
    """Shuffled batches of (texts, labels) without end, from part `shard` of `shards`."""
    options = tf.data.Options()
    options.autotune.enabled = False  # its thread now and then keeps a session from closing for ten seconds
    # The shards are sorted by class: what is shuffled at once must be all of them.
    return data.dataset(
        _name(data_dir), "train", batch_size, shuffle=50_000, seed=seed, repeat=True, share=(shard, shards),
        drop_remainder=True,
    ).with_options(options)  # fmt: skip


def arrays(data_dir: str, split: str) -> tuple[np.ndarray, np.ndarray]:
    """All texts and labels of a split."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        everything = data.dataset(_name(data_dir), split, EVERYTHING, shuffle=False, share="all")
        following = tf.compat.v1.data.make_initializable_iterator(everything)
        session.run(following.initializer)
        return session.run(following.get_next())


def margin(accuracy: float, number: int) -> float:
    """Half the width of the 95 % interval of an accuracy over `number` texts."""
    return 1.96 * math.sqrt(accuracy * (1 - accuracy) / number)

"""Run where tasks run, against a real Ignite: what a script has of `data.ignite` and `IgniteDataset`, as JSON."""

from __future__ import annotations

import json
import os
import sys

import tensorflow as tf

from yardmaster_runner import data


def look() -> dict:
    pictures = data.ignite("one-pictures", 32, shapes={"val.pixels": (2, 3)}, nulls={"val.votes": -1})
    spec, sizes, keys, right = pictures.element_spec, [], [], True
    for batch in pictures:
        keys += batch["key"].numpy().tolist()
        sizes.append(len(batch["key"]))
        numbers = batch["key"].numpy()
        right &= batch["val"]["name"].numpy().tolist() == [b"kitten-%d.png" % key for key in numbers]
        right &= batch["val"]["weights"].row_lengths().numpy().tolist() == [key % 4 for key in numbers]
        right &= batch["val"]["pixels"].numpy()[:, 0, 0].tolist() == [key % 256 for key in numbers]
        right &= batch["val"]["tags"].to_list() == [[b"even", b"n%d" % key] if key % 2 == 0 else [] for key in numbers]
    dropped = data.ignite("one-numbers", 1000, drop_remainder=True, fields=["key"], connections=2)
    long = data.ignite("one-blobs", 5, shapes={"val": (300_000,)})
    strings = data.ignite("one-blobs", 5, strings=["val"])
    return {
        "spec": {name: str(one.shape.as_list()) for name, one in spec["val"].items() if not isinstance(one, dict)},
        "sizes": sizes, "right": right, "keys": sorted(keys) == list(range(100)),
        "again": sum(len(one["key"]) for one in pictures),
        "dropped": [len(one["key"]) for one in dropped],
        "long": sorted(one["val"].shape[0] for one in long), "long row": _blobs(long),
        "strings": len(strings.element_spec["val"].shape),
        "string": sorted({len(text) for one in strings for text in one["val"].numpy()}),
        "query": [
            {name: value.numpy().tolist()[0] for name, value in one.items() if name != "NAME"}
            for one in data.ignite(query="SELECT ID, WEIGHT, NAME FROM KITTENS WHERE ID > ?", arguments=(2,))
        ],
        "trained": _trained(),
    }  # fmt: skip


def _blobs(dataset) -> bool:
    return all(
        row[:64].numpy().tolist() == [(int(key) + at) % 256 for at in range(64)]
        for one in dataset for key, row in zip(one["key"], one["val"], strict=False)
    )  # fmt: skip


def _trained() -> bool:
    """A model learns from it: exact is an eighth of the key, single a fourth."""
    read = data.ignite("one-numbers", 64, fields=["val.single", "val.exact"]).repeat(3)
    scaled = read.map(
        lambda row: (row["val"]["single"][:, None] / 800, tf.cast(row["val"]["exact"], tf.float32)[:, None] / 400)
    )
    model = tf.keras.Sequential([tf.keras.Input((1,)), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.Adam(0.05), "mse")
    return model.fit(scaled, verbose=0).history["loss"][-1] < 0.3


def old_name() -> dict:
    """A script of the time of `contrib.ignite`, with another import."""
    rows = [
        {"key": int(row["key"]), "NAME": row["val"]["NAME"].numpy().decode()}
        for row in data.IgniteDataset(cache_name="SQL_PUBLIC_CATS", username=None, password=None)
    ]
    numbers = data.IgniteDataset("one-numbers", page_size=500)
    part = data.IgniteDataset("one-numbers", part=3)
    return {
        "rows": sorted(rows, key=lambda one: one["key"]), "byte": numbers.element_spec["val"]["small"].dtype.name,
        "numbers": sorted(int(one["key"]) for one in numbers.take(3000)) == list(range(3000)),
        "part": len({int(one["key"]) for one in part}),
        "is a dataset": isinstance(numbers.map(lambda row: row["key"]), tf.data.Dataset),
    }  # fmt: skip


def in_graph() -> list:
    """The same with sessions, as in TensorFlow 1."""
    tf1 = tf.compat.v1
    tf1.disable_v2_behavior()
    dataset = data.IgniteDataset(cache_name="SQL_PUBLIC_CATS")
    following = tf1.data.make_one_shot_iterator(dataset).get_next()
    found = []
    with tf1.Session() as session:
        for _ in range(3):
            row = session.run(following)
            found.append([int(row["key"]), row["val"]["NAME"].decode()])
    return sorted(found)


def failing() -> None:
    """A script that fails within a pass: its last line says why."""
    os.environ["IGNITE_DATASET_PART"] = "0-7"
    for _ in data.ignite("one-pictures"):
        pass


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))

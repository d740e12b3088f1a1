"""What `test_datasets_with_tensorflow.py` runs in the Python of tasks: reads, and prints what it found as JSON."""

import json
import os
import sys

import tensorflow as tf

from yardmaster_runner import data
from yardmaster_runner.data.description import Description, Feature, Shard, to_text


def labels(read):
    return [int(one) for _, labels in read for one in labels]


def error_of(call):
    try:
        list(call())
    except data.DataError as error:
        return str(error)
    return "nothing"


def images(top):
    """Pictures of different sizes."""
    os.makedirs(top + "/train")
    path = "train/train-00000.tfrecord"
    with tf.io.TFRecordWriter(os.path.join(top, path)) as writer:
        for number in range(4):
            png = tf.io.encode_png(tf.zeros([5 + number, 9, 3], tf.uint8)).numpy()
            features = {
                "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[png])),
                "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[number])),
            }
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    shard = Shard(path, 4, os.path.getsize(os.path.join(top, path)))
    features = {"image": Feature("bytes", (), "image"), "label": Feature("int64", ())}
    with open(top + "/dataset.json", "w") as file:
        file.write(to_text(Description(features, {"train": (shard,)}, label="label")))
    return top


def look(plain, packed, cut, gone, top):
    in_order = data.dataset(plain, shuffle=False)
    features, _ = next(iter(in_order))
    pictures, numbers = next(iter(data.dataset(images(top + "/images"), shuffle=False, image_size=(8, 6))))
    return {
        "shapes": {name: one.shape.as_list() for name, one in features.items()},
        "raw": features["raw"][0].numpy().tolist(),
        "text": features["text"][0].numpy().decode(),
        "batches": [int(one.shape[0]) for _, one in in_order],
        "as_dict": sorted(next(iter(data.dataset(plain, as_dict=True)))),
        "in_order": labels(in_order),
        "shuffled": labels(data.dataset(plain, seed=3)),
        "shuffled_again": labels(data.dataset(plain, seed=3)),
        "compressed": labels(data.dataset(packed, shuffle=False)),
        "repeated": len(labels(data.dataset(plain, repeat=2))),
        "share": labels(data.dataset(plain, shuffle=False, share=(1, 3))),
        "no_share": error_of(lambda: data.dataset(plain, share=(6, 7))),
        "images": {
            "shape": pictures.shape.as_list(), "dtype": pictures.dtype.name, "labels": numbers.numpy().tolist()
        },
        "undecoded": next(iter(data.dataset(top + "/images", decode_images=False)))[0].dtype.name,
        "cut": error_of(lambda: data.dataset(cut)),
        "gone": error_of(lambda: data.dataset(gone)),
        "unprepared": error_of(lambda: data.dataset(top)),
        "split": error_of(lambda: data.dataset(plain, "test")),
        "name": error_of(lambda: data.dataset("reviews")),
    }  # fmt: skip


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))

"""What `reading.py` runs in the Python of tasks: each line of stdin names a dataset; a pass over it is timed."""

import os
import sys
import time

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

from yardmaster_runner import data
from yardmaster_runner.data.description import Description, Feature, Shard, to_text


def write(top, shards, records):
    """Pictures as JPEG files of about 10 kB."""
    described = []
    os.makedirs(os.path.join(top, "train"))
    noise = tf.cast(tf.random.uniform([64, 128, 128, 3], 0, 255), tf.uint8)
    pictures = [tf.io.encode_jpeg(one, quality=60).numpy() for one in noise]
    for number in range(shards):
        path = f"train/train-{number:05}.tfrecord"
        with tf.io.TFRecordWriter(os.path.join(top, path)) as writer:
            for one in range(records):
                features = {
                    "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[pictures[one % 64]])),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[one % 10])),
                }
                writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
        described.append(Shard(path, records, os.path.getsize(os.path.join(top, path))))
    features = {"image": Feature("bytes", (), "image"), "label": Feature("int64", ())}
    with open(os.path.join(top, "dataset.json"), "w") as file:
        file.write(to_text(Description(features, {"train": tuple(described)}, label="label")))


def main():
    if sys.argv[1:]:
        write(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    print("ready", flush=True)
    for line in sys.stdin:
        begun = time.perf_counter()
        count = sum(1 for _ in data.dataset(line.strip(), batch=64))
        print(count, time.perf_counter() - begun, flush=True)


main()

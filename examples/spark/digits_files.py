"""TensorFlowOnSpark with files: Spark starts the TensorFlow workers, and each reads its own shards with tf.data.

    spark-submit digits_files.py --data_dir=DATA --model_dir=MODEL

Each executor is a worker of MultiWorkerMirroredStrategy. Nothing goes through Spark but where the files are.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import tempfile

from pyspark import SparkContext
from tensorflowonspark import TFCluster


def parse_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--model_dir", required=True)
    parser.add_argument("--log_dir", default="")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--grace_secs", type=int, default=15)
    parser.add_argument("--learning_rate", type=float, default=0.003)
    return parser.parse_args()


def images(paths: list, batch_size: int):
    """Batches of (pixels, label) from these files. TensorFlow alone reads them: no row of them is in Spark."""
    import tensorflow as tf

    features = {"image": tf.io.FixedLenFeature([64], tf.float32), "label": tf.io.FixedLenFeature([], tf.int64)}

    def parsed(records):
        found = tf.io.parse_example(records, features)
        return found["image"], found["label"]

    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return tf.data.TFRecordDataset(paths).batch(batch_size).map(parsed).with_options(options)


def train(args: argparse.Namespace, context) -> None:
    """What runs on each executor."""
    import tensorflow as tf
    import tf_keras as keras

    # First of all: TensorFlow cannot begin a cluster in a process that has run an operation before.
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    files = sorted(glob.glob(os.path.join(args.data_dir, "train-*.tfrecord")))
    workers, me = context.num_workers, context.executor_id
    mine = files[me::workers]
    print(f"worker {me} of {workers} reads {', '.join(map(os.path.basename, mine))}", flush=True)
    with strategy.scope():
        model = keras.Sequential(
            [
                keras.layers.Input((64,)),
                keras.layers.Dense(64, activation="relu"),
                keras.layers.Dense(10, activation="softmax"),
            ]
        )
        model.compile(keras.optimizers.Adam(args.learning_rate), "sparse_categorical_crossentropy", ["accuracy"])
    callbacks = [keras.callbacks.TensorBoard(args.log_dir)] if args.log_dir and context.job_name == "chief" else []
    # Workers average their gradients after every step, so none may have fewer steps than the others, whatever their
    # shards hold: each begins its own again, until all have done the steps.
    data = images(mine, args.batch_size).shuffle(100).repeat()
    model.fit(data, steps_per_epoch=args.steps, epochs=args.epochs, callbacks=callbacks, verbose=2)
    # Every worker takes part in saving; only the chief's export is kept.
    model.save(args.model_dir if context.job_name == "chief" else tempfile.mkdtemp())


def tested(paths: list, model_dir: str) -> tuple:
    """How many images of these files the exported model recognises, and how many there are."""
    import tf_keras as keras

    model = keras.models.load_model(model_dir)
    right = total = 0
    for pixels, labels in images(paths, 200):
        found = model.predict_on_batch(pixels).argmax(axis=1)
        right, total = right + int((found == labels.numpy()).sum()), total + len(found)
    return right, total


def records_in(folder: str, split: str) -> int:
    """By the description that lies beside the shards."""
    with open(os.path.join(folder, "dataset.json"), encoding="utf-8") as file:
        return sum(shard["records"] for shard in json.load(file)["splits"][split])


def main() -> None:
    args = parse_flags()
    sc = SparkContext(appName="digits_files")
    size = int(sc.getConf().get("spark.executor.instances", "1"))
    args.steps = max(1, records_in(args.data_dir, "train") // (args.batch_size * size))
    mode = TFCluster.InputMode.TENSORFLOW
    print(f"step 0/{args.epochs}: an epoch of the executors is one step", flush=True)  # the driver sees no epoch itself
    cluster = TFCluster.run(sc, train, args, size, 0, input_mode=mode, log_dir=args.log_dir, master_node="chief")
    cluster.shutdown(grace_secs=args.grace_secs)
    files = sorted(glob.glob(os.path.join(args.data_dir, "test-*.tfrecord")))
    right, total = sc.parallelize([files], 1).map(lambda paths: tested(paths, args.model_dir)).first()
    print(f"test accuracy {right / total:.4f} of {total} images", flush=True)
    sc.stop()


if __name__ == "__main__":
    main()

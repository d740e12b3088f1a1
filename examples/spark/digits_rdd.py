"""TensorFlowOnSpark with the digits fed from an RDD: Spark reads and shuffles them, TensorFlow trains.

    spark-submit digits_rdd.py --data_dir=DATA --model_dir=MODEL

Each executor is a worker of MultiWorkerMirroredStrategy. The executors test what the chief has exported.
"""

from __future__ import annotations

import argparse
import glob
import os
import tempfile

from pyspark import SparkContext
from tensorflowonspark import TFCluster


def parse_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--model_dir", required=True)
    parser.add_argument("--log_dir", default="")
    parser.add_argument("--cluster_size", type=int, default=0, help="0: as many as there are executors")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--grace_secs", type=int, default=15)
    parser.add_argument("--learning_rate", type=float, default=0.003)
    return parser.parse_args()


def read(path: str) -> list:
    """The records of one TFRecord file, as (pixels, label). Runs no TensorFlow operation: TensorFlowOnSpark forks the
    process that reads, and TensorFlow cannot begin a cluster in a process that has run one."""
    import tensorflow as tf

    examples = map(tf.train.Example.FromString, tf.compat.v1.io.tf_record_iterator(path))
    features = (one.features.feature for one in examples)
    return [(list(one["image"].float_list.value), one["label"].int64_list.value[0]) for one in features]


def train(args: argparse.Namespace, context) -> None:
    """What runs on each executor."""
    import numpy as np
    import tensorflow as tf
    import tf_keras as keras

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    feed = context.get_data_feed()

    def rows():
        while not feed.should_stop():
            for pixels, label in feed.next_batch(args.batch_size):
                yield np.array(pixels, "float32"), label

    signature = (tf.TensorSpec((64,), tf.float32), tf.TensorSpec((), tf.int32))
    data = tf.data.Dataset.from_generator(rows, output_signature=signature).batch(args.batch_size)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
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
    # Workers average their gradients after every step, so none may have fewer steps than the others. Spark gives each
    # about as many rows: a tenth is left over.
    model.fit(
        data.with_options(options), steps_per_epoch=args.steps, epochs=args.epochs, callbacks=callbacks, verbose=2
    )
    feed.terminate()
    # Every worker takes part in saving; only the chief's export is kept.
    model.save(args.model_dir if context.job_name == "chief" else tempfile.mkdtemp())


def main() -> None:
    args = parse_flags()
    sc = SparkContext(appName="digits_rdd")
    size = args.cluster_size or int(sc.getConf().get("spark.executor.instances", "1"))
    files = sorted(glob.glob(os.path.join(args.data_dir, "train-*.tfrecord")))
    images = sc.parallelize(files, len(files)).flatMap(read).repartition(2 * size).cache()
    args.steps = max(1, int(images.count() * 0.9) // (args.batch_size * size))
    mode = TFCluster.InputMode.SPARK
    print(f"step 0/{args.epochs}: an epoch of the executors is one step", flush=True)  # the driver sees no epoch itself
    cluster = TFCluster.run(sc, train, args, size, 0, input_mode=mode, log_dir=args.log_dir, master_node="chief")
    cluster.train(images, args.epochs)
    cluster.shutdown(grace_secs=args.grace_secs)  # the time to write the export
    evaluate(args, sc)
    sc.stop()


def evaluate(args: argparse.Namespace, sc: SparkContext) -> None:
    """Each executor loads the model and tests a part of the held-out images."""
    files = sorted(glob.glob(os.path.join(args.data_dir, "test-*.tfrecord")))
    right, total = (
        sc.parallelize(files, len(files))
        .mapPartitions(lambda part: tested(part, args.model_dir))
        .reduce(lambda one, other: (one[0] + other[0], one[1] + other[1]))
    )
    print(f"test accuracy {right / total:.4f} of {total} images", flush=True)


def tested(files, model_dir: str):
    import numpy as np
    import tf_keras as keras

    model = keras.models.load_model(model_dir)
    for path in files:
        rows = read(path)
        found = model.predict(np.array([pixels for pixels, _ in rows], "float32"), verbose=0).argmax(axis=1)
        yield int((found == np.array([label for _, label in rows])).sum()), len(rows)


if __name__ == "__main__":
    main()

"""TensorFlowOnSpark's pipeline: an estimator is fitted to a DataFrame of user events, and exports a model.

    spark-submit events_train.py --model_dir=MODEL

A column of the DataFrame becomes a tensor by the input mapping. The model that `fit` returns predicts for a DataFrame
that it has not seen.
"""

from __future__ import annotations

import argparse
import tempfile

from pyspark.sql import SparkSession
from tensorflowonspark import TFNode
from tensorflowonspark.pipeline import TFEstimator

from events import COLUMNS, events


def parse_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model_dir", required=True)
    parser.add_argument("--log_dir", default="")
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch_size", type=int, default=50)
    parser.add_argument("--num_ps", type=int, default=0)
    parser.add_argument("--grace_secs", type=int, default=15)
    return parser.parse_args()


def train(args: argparse.Namespace, context) -> None:
    """What runs on each executor."""
    import numpy as np
    import tensorflow as tf
    import tf_keras as keras

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    feed = TFNode.DataFeed(context.mgr, input_mapping=args.input_mapping)

    def rows():
        while not feed.should_stop():
            batch = feed.next_batch(1)
            if batch["features"]:
                yield np.array(batch["features"][0], "float32"), batch["label"][0]

    signature = (tf.TensorSpec((len(COLUMNS),), tf.float32), tf.TensorSpec((), tf.int64))
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    data = tf.data.Dataset.from_generator(rows, output_signature=signature).batch(args.batch_size)
    with strategy.scope():
        model = keras.Sequential(
            [
                keras.layers.Input((len(COLUMNS),), name="features"),
                keras.layers.Dense(16, activation="relu"),
                keras.layers.Dense(1, activation="sigmoid", name="score"),
            ]
        )
        model.compile(keras.optimizers.Adam(0.02), "binary_crossentropy", ["accuracy"])
    has_log = args.log_dir and context.job_name == "chief"
    callbacks = [keras.callbacks.TensorBoard(args.log_dir)] if has_log else []
    data = data.with_options(options)
    model.fit(data, steps_per_epoch=args.steps, epochs=args.epochs, callbacks=callbacks, verbose=2)
    feed.terminate()
    model.save(args.export_dir if context.job_name == "chief" else tempfile.mkdtemp())


def main() -> None:
    args = parse_flags()
    spark = SparkSession.builder.appName("events").getOrCreate()
    size = int(spark.sparkContext.getConf().get("spark.executor.instances", "1"))
    known = events(spark, args.rows, seed=1).repartition(2 * size)
    estimator = (
        TFEstimator(train, args)
        .setInputMapping({"bought": "label", "features": "features"})
        .setExportDir(args.model_dir)
        .setClusterSize(size)
        .setNumPS(args.num_ps)
        .setMasterNode("chief")
        .setEpochs(args.epochs)
        .setBatchSize(args.batch_size)
        # Workers average their gradients after every step, so none may have fewer steps than the others.
        .setSteps(int(args.rows * 0.9) // (args.batch_size * size))
        .setGraceSecs(args.grace_secs)
    )
    print(f"step 0/{args.epochs}: an epoch of the executors is one step", flush=True)  # the driver sees no epoch itself
    model = (
        estimator.fit(known)
        .setInputMapping({"features": "features"})
        .setOutputMapping({"score": "score"})
        .setSignatureDefKey("serving_default")
        .setExportDir(args.model_dir)
    )
    unseen = events(spark, 500, seed=2)
    scores = [row.score[0] for row in model.transform(unseen).collect()]
    bought = [row.bought for row in unseen.collect()]
    right = sum((score > 0.5) == bool(one) for score, one in zip(scores, bought, strict=True))
    print(f"test accuracy {right / len(bought):.4f} of {len(bought)} visits", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()

"""Mirrored workers, Keras `fit`: each has a copy of the model, and all average their gradients after every step.

    TF_CONFIG='{"cluster": {"worker": ["h:1", "h:2"]}, "task": {"type": "worker", "index": 0}}' \\
        python multi_worker_mirrored.py --data_dir=DATA --log_dir=LOG

The same command runs in every task: TF_CONFIG says which it is. After each epoch a checkpoint is saved into the log
directory, from which all go on when they are started again. The chief (worker 0 where none is named) tests and exports
the model.
"""

from __future__ import annotations

import argparse
import os

import tensorflow as tf
import tf_keras as keras

import digits_data
import digits_keras


def parse_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--log_dir", required=True)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--steps_per_epoch", type=int, default=40)
    parser.add_argument("--batch_size", type=int, default=32, help="of each worker")
    parser.add_argument("--learning_rate", type=float, default=0.003)
    return parser.parse_args()


def is_chief(resolver: tf.distribute.cluster_resolver.ClusterResolver) -> bool:
    if resolver.task_type == "worker" and "chief" not in resolver.cluster_spec().as_dict():
        return resolver.task_id == 0
    return resolver.task_type in ("chief", None)


def main() -> None:
    flags = parse_flags()
    strategy = tf.distribute.MultiWorkerMirroredStrategy()  # first of all: it has to start TensorFlow's server

    def training_data(context: tf.distribute.InputContext) -> tf.data.Dataset:
        shard, shards = context.input_pipeline_id, context.num_input_pipelines
        return digits_data.training_data(flags.data_dir, flags.batch_size, shard=shard, shards=shards)

    with strategy.scope():
        model = digits_keras.build_model(flags.learning_rate)
    model.fit(
        strategy.distribute_datasets_from_function(training_data),
        epochs=flags.epochs,
        steps_per_epoch=flags.steps_per_epoch,
        callbacks=[  # both write here in the chief, and to a temporary folder in every other worker
            keras.callbacks.BackupAndRestore(os.path.join(flags.log_dir, "checkpoints"), delete_checkpoint=False),
            keras.callbacks.TensorBoard(flags.log_dir, update_freq=10),
        ],
        verbose=2,
    )
    if is_chief(strategy.cluster_resolver):
        digits_keras.evaluate_and_export(model.get_weights(), flags.data_dir)


if __name__ == "__main__":
    main()

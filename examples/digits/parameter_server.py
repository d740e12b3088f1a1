"""Parameter servers the TensorFlow 2 way: one coordinator (the chief) sends steps to workers, which only serve.

    TF_CONFIG='{"cluster": {"chief": [...], "worker": [...], "ps": [...]}, "task": {"type": "chief", "index": 0}}' \\
        python parameter_server.py --data_dir=DATA --log_dir=LOG

The same command runs in every task: TF_CONFIG says which it is. Only the chief ends. It keeps the checkpoints and the
event files in the log directory, goes on from the newest checkpoint, and in the end tests and exports the model.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("GRPC_FAIL_FAST", "use_caller")  # a call to a task that is just restarting waits for it

import tensorflow as tf
import tf_keras as keras

import digits_data
import digits_keras

# Left to itself, every parameter server writes its part of a checkpoint to its own disk.
IN_THE_CHIEF = tf.train.CheckpointOptions(experimental_io_device="/job:chief")


def parse_flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--log_dir", required=True)
    parser.add_argument("--steps", type=int, default=600, help="of all workers together")
    parser.add_argument("--steps_per_round", type=int, default=50, help="steps between two checkpoints")
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--learning_rate", type=float, default=0.003)
    return parser.parse_args()


def coordinate(resolver: tf.distribute.cluster_resolver.TFConfigClusterResolver, flags: argparse.Namespace) -> None:
    """What the chief does: it owns the loop, the workers do the steps, the parameter servers hold the variables."""
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        model = digits_keras.build_model(flags.learning_rate)
        model.optimizer.build(model.trainable_variables)  # now, since a worker cannot create variables
        loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="sum")
        mean_loss, accuracy = keras.metrics.Mean(), keras.metrics.SparseCategoricalAccuracy()
    optimizer = model.optimizer

    @tf.function
    def step(batches: tf.data.Iterator) -> None:
        def replica_step(images: tf.Tensor, labels: tf.Tensor) -> None:
            with tf.GradientTape() as tape:
                logits = model(images, training=True)
                loss = loss_of(labels, logits) / flags.batch_size
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            mean_loss.update_state(loss)
            accuracy.update_state(labels, logits)

        strategy.run(replica_step, args=next(batches))

    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer)
    manager = tf.train.CheckpointManager(
        checkpoint, flags.log_dir, max_to_keep=3, step_counter=optimizer.iterations, checkpoint_name="model.ckpt"
    )
    if manager.latest_checkpoint:
        checkpoint.restore(manager.latest_checkpoint, options=IN_THE_CHIEF)
        print(f"goes on from {manager.latest_checkpoint}")
    # Workers come and go, so that there are no shares: each worker reads all, in an order of its own.
    data = coordinator.create_per_worker_dataset(lambda: digits_data.training_data(flags.data_dir, flags.batch_size))
    batches = iter(data)
    writer = tf.summary.create_file_writer(flags.log_dir)
    while (done := int(optimizer.iterations.numpy())) < flags.steps:
        for metric in (mean_loss, accuracy):
            metric.reset_states()
        for _ in range(min(flags.steps_per_round, flags.steps - done)):
            coordinator.schedule(step, args=(batches,))  # returns at once: some worker will do it
        coordinator.join()
        done, loss_now, accuracy_now = int(optimizer.iterations.numpy()), mean_loss.result(), accuracy.result()
        print(f"step {done}/{flags.steps}: loss {loss_now:.4f}, accuracy {accuracy_now:.4f}")
        with writer.as_default(step=done):
            tf.summary.scalar("loss", loss_now)
            tf.summary.scalar("accuracy", accuracy_now)
        writer.flush()
        manager.save(done, options=IN_THE_CHIEF)
    digits_keras.evaluate_and_export(model.get_weights(), flags.data_dir)


def main() -> None:
    flags = parse_flags()
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        server = tf.distribute.Server(
            resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
        )
        print(f"serves at {resolver.cluster_spec().task_address(resolver.task_type, resolver.task_id)}")
        server.join()  # for ever: it ends when it is stopped
    coordinate(resolver, flags)


if __name__ == "__main__":
    main()

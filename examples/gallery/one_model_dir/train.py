"""One directory for everything, as many scripts of TensorFlow have it: checkpoints, event files and the model.

    python train.py --model_dir=FOLDER

The portal passes the log directory, in which it keeps checkpoints and event files, and keeps the SavedModel below
`export` as the job's model. Started again, the script goes on from its newest checkpoint.
"""

from __future__ import annotations

import argparse
import os

import tensorflow as tf


class Line(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.slope = tf.Variable(0.0)
        self.offset = tf.Variable(0.0)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        return self.slope * x + self.offset


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--model_dir", required=True)
    parser.add_argument("--steps", type=int, default=60)
    flags = parser.parse_args()
    line, step = Line(), tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(line=line, step=step)
    manager = tf.train.CheckpointManager(checkpoint, flags.model_dir, max_to_keep=2, step_counter=step)
    checkpoint.restore(manager.latest_checkpoint)
    x = tf.linspace(-1.0, 1.0, 50)
    writer = tf.summary.create_file_writer(flags.model_dir)
    while step < flags.steps:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((line(x) - (2 * x + 1)) ** 2)
        variables = [line.slope, line.offset]
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(0.2 * gradient)
        step.assign_add(1)
        if step % 20 == 0:
            with writer.as_default(step=step):
                tf.summary.scalar("loss", loss)
            manager.save(checkpoint_number=step)
            print(f"step {int(step)}/{flags.steps} loss {float(loss):.4f}", flush=True)
    writer.close()
    tf.saved_model.save(line, os.path.join(flags.model_dir, "export", "1"))


if __name__ == "__main__":
    main()

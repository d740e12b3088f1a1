"""A script as TFJobs run it: it finds its place in TF_CONFIG, and trains with sessions and a parameter server."""

from __future__ import annotations

import argparse
import csv
import json
import os

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()


def points(folder: str) -> tuple[list[list[float]], list[list[float]]]:
    """The first column, and the second."""
    with open(os.path.join(folder, "points.csv"), newline="") as file:
        rows = [[float(value) for value in row] for row in csv.reader(file)]
    return [row[:1] for row in rows], [row[1:] for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--log_dir", required=True)
    parser.add_argument("--steps", type=int, default=100)
    given, _ = parser.parse_known_args()
    config = json.loads(os.environ["TF_CONFIG"])
    role, index = config["task"]["type"], config["task"]["index"]
    cluster = tf.train.ClusterSpec(config["cluster"])
    server = tf.train.Server(cluster, job_name=role, task_index=index)
    if role == "ps":
        server.join()
    here = f"/job:worker/task:{index}"
    with tf.device(tf.train.replica_device_setter(worker_device=here, cluster=cluster)):
        x = tf.placeholder(tf.float32, [None, 1])
        y = tf.placeholder(tf.float32, [None, 1])
        slope = tf.get_variable("slope", [1, 1])
        offset = tf.get_variable("offset", [1], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(x, slope) + offset - y))
        step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(0.3).minimize(loss, global_step=step)
    features, targets = points(given.data_dir)
    found = 0.0
    with tf.train.MonitoredTrainingSession(
        server.target,
        is_chief=index == 0,
        checkpoint_dir=given.log_dir if index == 0 else None,
        hooks=[tf.train.StopAtStepHook(last_step=given.steps)],
    ) as session:
        while not session.should_stop():
            _, found = session.run([train, loss], {x: features, y: targets})
    print(f"loss {found:.4f}")


if __name__ == "__main__":
    main()

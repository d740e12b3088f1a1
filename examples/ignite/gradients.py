"""Gradients by hand: each worker computes one over its own partitions, and the chief sums them and moves the variables.

The variables, and what gradients are collected in, lie on the parameter server. Worker 0 is the chief. In each step a
worker reads its part of the table, which `data.ignite` divides by itself, sends the sum of its rows' gradients, and
waits until the chief has summed those of all workers.

Fill the table first (`points.py` says how). A task learns from TF_CONFIG which one it is.
"""

from __future__ import annotations

import argparse
import contextlib
import time

import points
import tensorflow as tf

from yardmaster_runner import data

tf1 = tf.compat.v1
RATE = 0.4


def gradient_of_part(table: tf.data.Dataset, weights: tuple[float, float]) -> tuple[list[float], int]:
    """The sum over this worker's rows of the gradients by slope and offset, and how many rows there are."""
    slope, offset = weights
    total, rows = [0.0, 0.0], 0
    for row in table:
        x, y = row["val"]["X"].numpy(), row["val"]["Y"].numpy()
        wrong = slope * x + offset - y
        total = [total[0] + float((2 * wrong * x).sum()), total[1] + float((2 * wrong).sum())]
        rows += len(x)
    return total, rows


class Shared:
    """What lies on the parameter server: the variables, a sum of gradients with their rows, and who may continue."""

    def __init__(self) -> None:
        with tf.device("/job:ps/task:0"):
            self.weights = tf1.get_variable("weights", [2], initializer=tf1.zeros_initializer(), use_resource=True)
            self._sum = tf1.ConditionalAccumulator(tf.float32, [3], shared_name="sum", reduction_type="SUM")
            self._turns = tf1.FIFOQueue(64, [tf.int64], [[]], shared_name="turns")
            self.given = tf1.placeholder(tf.float32, [3])
            self.step = tf1.placeholder(tf.int64, [])
            self.send = self._sum.apply_grad(self.given, self.step)
            self.wait = self._turns.dequeue()

    def moved(self, workers: int) -> tf.Tensor:
        """The chief's part of a step. The rows of all workers."""
        found = self._sum.take_grad(workers)
        move = tf1.assign_sub(self.weights, RATE * found[:2] / found[2])
        with tf.control_dependencies([move]):
            following = self._sum.set_global_step(self.step + 1)
        with tf.control_dependencies([following]):
            release = self._turns.enqueue_many([tf.fill([workers], self.step + 1)])
        with tf.control_dependencies([release]):
            return tf.identity(found[2])


def work(server: tf.distribute.Server, index: int, workers: int, steps: int) -> None:
    table = data.ignite(points.CACHE, 256, fields=["val.X", "val.Y"])
    with tf.Graph().as_default() as graph:
        shared = Shared()
        moved, begin = shared.moved(workers), tf1.global_variables_initializer()
        missing = tf1.report_uninitialized_variables()
    config = tf1.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{index}"])
    # Not the default session, nor its graph the default one: the table is read outside of it.
    with contextlib.closing(tf1.Session(server.target, graph, config)) as session:
        if index == 0:
            session.run(begin)
        while len(session.run(missing)):
            time.sleep(0.1)  # the chief has yet to begin
        for step in range(steps):
            total, rows = gradient_of_part(table, tuple(session.run(shared.weights)))
            session.run(shared.send, {shared.given: [*total, rows], shared.step: step})
            if index == 0:
                every = int(session.run(moved, {shared.step: step}))
                print(f"step {step + 1}: {every} rows of all workers, {rows} of the chief", flush=True)
            session.run(shared.wait)
        slope, offset = session.run(shared.weights)
    print(f"slope {slope:.2f}, offset {offset:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=30)
    steps = parser.parse_known_args()[0].steps  # TF_CONFIG says what the flags of the cluster say
    cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    server = tf.distribute.Server(cluster.cluster_spec(), cluster.task_type, cluster.task_id)
    if cluster.task_type == "ps":
        server.join()
    else:
        work(server, cluster.task_id, cluster.cluster_spec().num_tasks("worker"), steps)


if __name__ == "__main__":
    main()

"""A script of TensorFlow 1, as it was written then: flags, placeholders, a server and a session per task."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

flags = tf.app.flags
flags.DEFINE_string("ps_hosts", "", "host:port of the parameter servers, with commas between")
flags.DEFINE_string("worker_hosts", "", "the same of the workers")
flags.DEFINE_string("job_name", "worker", "worker or ps")
flags.DEFINE_integer("task_index", 0, "which of them")
flags.DEFINE_string("data_dir", "", "not read: the data is made here")
flags.DEFINE_string("log_dir", "", "where checkpoints go")
flags.DEFINE_integer("steps", 200, "of all workers together")
FLAGS = flags.FLAGS


def points(count: int) -> tuple[np.ndarray, np.ndarray]:
    features = np.random.normal(size=(count, 3))
    return features, features @ np.array([[2.0], [-3.0], [0.5]]) + 1.0


def main(_: list[str]) -> None:
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    here = f"/job:worker/task:{FLAGS.task_index}"
    with tf.device(tf.train.replica_device_setter(worker_device=here, cluster=cluster)):
        x = tf.placeholder(tf.float32, [None, 3])
        y = tf.placeholder(tf.float32, [None, 1])
        weights = tf.get_variable("weights", [3, 1])
        bias = tf.get_variable("bias", [1], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) + bias - y))
        step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    found, config = 0.0, tf.ConfigProto(device_filters=["/job:ps", here])
    with tf.train.MonitoredTrainingSession(
        server.target,
        is_chief=FLAGS.task_index == 0,
        checkpoint_dir=FLAGS.log_dir if FLAGS.task_index == 0 else None,
        hooks=[tf.train.StopAtStepHook(last_step=FLAGS.steps)],
        config=config,
    ) as session:
        while not session.should_stop():
            features, targets = points(64)
            _, found = session.run([train, loss], {x: features, y: targets})
    print(f"loss {found:.4f}")


if __name__ == "__main__":
    tf.app.run()

"""Writes what TensorFlow writes, of several kinds, into the folder of a run. Run by the Python of tasks."""

import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

with tf.summary.create_file_writer(sys.argv[1]).as_default():
    for step in range(20):
        tf.summary.scalar("loss", 1.0 / (step + 1), step=step)
    tf.summary.histogram("weights", tf.random.normal([100]), step=1)
    tf.summary.image("input", tf.zeros([1, 8, 8, 3]), step=1)
    tf.summary.text("notes", "a *note*", step=1)

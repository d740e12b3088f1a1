"""The digits model out of plain TensorFlow operations, for graphs and sessions: layers, test, export.

Not here: how it is trained (`between_graph`).
"""

from __future__ import annotations

import os
import shutil

import tensorflow as tf

import digits_data

tf1 = tf.compat.v1


def logits_of(images: tf.Tensor) -> tf.Tensor:
    """A small convolutional network. Its variables go where the current device scope puts them."""
    hidden = tf.reshape(images, [-1, 8, 8, 1])
    for name, channels in (("conv1", (1, 16)), ("conv2", (16, 32))):
        weights, biases = _layer(name, 3, 3, *channels)
        hidden = tf.nn.relu(tf.nn.conv2d(hidden, weights, strides=1, padding="SAME") + biases)
    hidden = tf.reshape(tf.nn.max_pool2d(hidden, 2, 2, "VALID"), [-1, 4 * 4 * 32])
    weights, biases = _layer("dense", 4 * 4 * 32, 64)
    hidden = tf.nn.relu(hidden @ weights + biases)
    weights, biases = _layer("logits", 64, digits_data.CLASSES)
    return hidden @ weights + biases


def loss_and_accuracy(logits: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    return loss, tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, axis=1), labels), tf.float32))


def next_batch(dataset: tf.data.Dataset) -> tuple[tf.Tensor, tf.Tensor]:
    """The next (images, labels), for a session that runs the table initializers, as a monitored one does."""
    iterator = tf1.data.make_initializable_iterator(dataset)
    tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return iterator.get_next()


def evaluate_and_export(data_dir: str, log_dir: str) -> None:
    """Test the newest checkpoint in a session of this process alone; export it to $MODEL_DIR where that is set."""
    with tf.Graph().as_default(), tf1.Session() as session:
        images, labels = next_batch(digits_data.test_data(data_dir).batch(10_000).unbatch())
        images = tf1.placeholder_with_default(images, [None, digits_data.PIXELS], name="images")
        logits = logits_of(images)
        _, accuracy = loss_and_accuracy(logits, labels)
        session.run(tf1.tables_initializer())
        checkpoint = tf.train.latest_checkpoint(log_dir)
        tf1.train.Saver().restore(session, checkpoint)
        test_accuracy = session.run(accuracy)
        with tf1.summary.FileWriter(os.path.join(log_dir, "test")) as writer:
            summary = tf1.Summary(value=[tf1.Summary.Value(tag="accuracy", simple_value=test_accuracy)])
            writer.add_summary(summary, int(checkpoint.rpartition("-")[2]))
        if os.environ.get("MODEL_DIR"):
            shutil.rmtree(os.environ["MODEL_DIR"], ignore_errors=True)  # half a model, if this task was killed before
            outputs = {"logits": logits, "digit": tf.argmax(logits, axis=1)}
            tf1.saved_model.simple_save(session, os.environ["MODEL_DIR"], {"images": images}, outputs)
        print(f"test accuracy {test_accuracy:.4f}")


def _layer(name: str, *shape: int) -> tuple[tf.Variable, tf.Variable]:
    weights = tf1.get_variable(f"{name}/weights", shape, initializer=tf1.glorot_uniform_initializer())
    return weights, tf1.get_variable(f"{name}/biases", shape[-1:], initializer=tf1.zeros_initializer())

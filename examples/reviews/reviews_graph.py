"""The model of the reviews out of plain TensorFlow operations, for graphs and sessions: features, layers, export.

A text becomes its words, pairs of words and runs of four characters, each hashed to a row of one table of embeddings.
Their mean, in which what few texts have weighs more, goes through dense layers to a score per class. All of it is in
the graph, so that the exported model takes text as it is.
Not here: how it is trained (`train`).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
AT_ONCE = 256
"""Texts that are classified in one run."""
DROPPED = 1e-6
"""What is left of the weight of a feature that is left out: above 0, so that no mean is divided by 0."""


@dataclass(frozen=True)
class Shape:
    """How large the model is. Training and export must have the same."""

    buckets: int = 1 << 17
    width: int = 16
    hidden: tuple[int, ...] = ()
    characters: int = 4000
    """Of a text; the rest is not read."""


def features_of(texts: tf.Tensor, shape: Shape) -> tf.RaggedTensor:
    """The row of the table for each feature of each text. It is the hash of the feature: there is no vocabulary."""
    texts = tf.strings.lower(tf.strings.substr(texts, 0, shape.characters))
    texts = tf.strings.regex_replace(texts, r"<br />|[^a-z0-9'!?]+", " ")
    texts = tf.strings.strip(texts)
    words = tf.strings.split(texts)
    pairs = tf.strings.ngrams(words, 2, separator="_")
    runs = tf.strings.ngrams(tf.strings.bytes_split(tf.strings.join([" ", texts, " "])), 4, separator="")
    return tf.strings.to_hash_bucket_fast(tf.concat([words, pairs, runs], axis=1), shape.buckets)


def rarity(texts: np.ndarray, shape: Shape) -> np.ndarray:
    """The weight of each row: its inverse document frequency in these texts, those of the training split."""
    found = np.zeros(shape.buckets, np.int64)
    with tf.Graph().as_default(), tf1.Session() as session:
        some = tf1.placeholder(tf.string, [None])
        rows = features_of(some, shape)
        for at in range(0, len(texts), AT_ONCE):
            values, splits = session.run([rows.values, rows.row_splits], {some: texts[at : at + AT_ONCE]})
            for one in np.split(values, splits[1:-1]):
                found[np.unique(one)] += 1
    return (np.log((len(texts) + 1) / (found + 1)) + 1).astype(np.float32)


def logits_of(
    texts: tf.Tensor, shape: Shape, classes: int, weights: np.ndarray | None = None, *, drop: float = 0.0
) -> tf.Tensor:
    """Scores of texts. Its variables go where the current device scope puts them. `weights` are the first values of
    the rows' weights; `drop` is the share of the features that this step leaves out."""
    table = tf1.get_variable("embeddings", [shape.buckets, shape.width], initializer=_around_zero(0.01))
    first = tf1.ones_initializer() if weights is None else tf1.constant_initializer(weights)
    weight_of = tf1.get_variable("rarity", [shape.buckets], initializer=first, trainable=False)
    rows = features_of(texts, shape).to_sparse()
    weights_here = tf.gather(weight_of, rows.values)
    if drop:
        kept = tf.random.uniform(tf.shape(weights_here)) >= drop
        weights_here *= tf.where(kept, tf.ones_like(weights_here), DROPPED * tf.ones_like(weights_here))
    weighted = tf.SparseTensor(rows.indices, weights_here, rows.dense_shape)
    hidden = tf1.nn.safe_embedding_lookup_sparse(table, rows, weighted, combiner="sqrtn")
    width = shape.width
    for number, size in enumerate(shape.hidden):
        hidden = tf.nn.relu(_dense(f"dense{number}", hidden, width, size))
        width = size
    return _dense("logits", hidden, width, classes)


def loss_and_accuracy(logits: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    return loss, tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, axis=1), labels), tf.float32))


def optimizer(learning_rate: float) -> tf1.train.Optimizer:
    """Changes the rows alone that a batch has, each in one operation. Adam decays its averages of the whole table at
    each step, in two operations between which another worker's changes are lost: then a row can jump."""
    return tf1.train.AdagradOptimizer(learning_rate, initial_accumulator_value=1e-4)


def next_batch(dataset: tf.data.Dataset) -> tuple[tf.Tensor, tf.Tensor]:
    """The next (texts, labels), for a session that runs the table initializers, as a monitored one does."""
    iterator = tf1.data.make_initializable_iterator(dataset)
    tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
    return iterator.get_next()


class Trained:
    """The newest checkpoint of a log directory, in a session of this process alone. A context manager."""

    def __init__(self, log_dir: str, shape: Shape, classes: Sequence[str]) -> None:
        self.checkpoint = tf.train.latest_checkpoint(log_dir)
        self._graph = tf.Graph()
        with self._graph.as_default():
            self._texts = tf1.placeholder(tf.string, [None], name="text")
            logits = logits_of(self._texts, shape, len(classes))
            self._class = tf.argmax(logits, axis=1)
            self._outputs = {
                "sentiment": tf.gather(tf.constant(list(classes)), self._class),
                "probabilities": tf.nn.softmax(logits),
            }
            self._session = tf1.Session()
            tf1.train.Saver().restore(self._session, self.checkpoint)

    def __enter__(self) -> Trained:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    @property
    def step(self) -> int:
        return int(self.checkpoint.rpartition("-")[2])

    def classify(self, texts: np.ndarray) -> np.ndarray:
        """The number of the class of each text."""
        return self._session.run(self._class, {self._texts: texts})

    def export(self, folder: str) -> None:
        """A SavedModel that takes text. What a task that was killed before left there is removed."""
        shutil.rmtree(folder, ignore_errors=True)
        with self._graph.as_default():
            tf1.saved_model.simple_save(self._session, folder, {"text": self._texts}, self._outputs)


def share_right(classify: Callable[[np.ndarray], np.ndarray], texts: np.ndarray, labels: np.ndarray) -> float:
    """How much of the texts `classify` puts where they are labelled. It gets some of them at a time."""
    right = sum(
        int(np.sum(classify(texts[at : at + AT_ONCE]) == labels[at : at + AT_ONCE]))
        for at in range(0, len(labels), AT_ONCE)
    )
    return right / len(labels)


def write_scalar(log_dir: str, run: str, tag: str, value: float, step: int) -> None:
    """One point of a curve beside those of the training."""
    writer = tf1.summary.FileWriterCache.get(os.path.join(log_dir, run))
    writer.add_summary(tf1.Summary(value=[tf1.Summary.Value(tag=tag, simple_value=value)]), step)
    writer.flush()


def _around_zero(width: float) -> tf1.Initializer:
    return tf1.random_uniform_initializer(-width, width)


def _dense(name: str, inputs: tf.Tensor, width: int, size: int) -> tf.Tensor:
    weights = tf1.get_variable(f"{name}/weights", [width, size], initializer=tf1.glorot_uniform_initializer())
    return inputs @ weights + tf1.get_variable(f"{name}/biases", [size], initializer=tf1.zeros_initializer())

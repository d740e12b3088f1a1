"""Code of TensorFlow 1: names that TensorFlow 2 has only under `compat.v1`, and those that no TensorFlow has now."""

from __future__ import annotations

from collections.abc import Iterator

from yardmaster.code.findings import Finding, Fix, warn
from yardmaster.code.script_facts import Facts, Location
from yardmaster.code.surroundings import Surroundings
from yardmaster.job.spec import TrainingSpec

_TF1 = (
    "Session", "InteractiveSession", "placeholder", "get_variable", "global_variables_initializer", "ConfigProto",
    "app.run", "app.flags", "flags", "layers.dense", "variable_scope", "reset_default_graph",
    "train.MonitoredTrainingSession", "train.Server", "train.replica_device_setter", "train.SyncReplicasOptimizer",
    "train.GradientDescentOptimizer", "train.AdamOptimizer", "train.Saver", "train.get_or_create_global_step",
    "train.Supervisor", "logging.set_verbosity", "gfile.Open",
)  # fmt: skip
_GONE = {
    "contrib": "Write it with tf.layers, tf.nn, tf.train or tf.data, or use what it became, such as tf_slim.",
    "examples": "Attach the data as a dataset and read it below the data directory.",
}
_TF1_NAMES = frozenset(f"tensorflow.{name}" for name in _TF1)


def first_of_version_1(facts: Facts) -> tuple[str, Location] | None:
    """The first name that the code has of TensorFlow 1, and where. Scripts from the web are often that old."""
    return next(((name, place) for name, place in facts.names.items() if name in _TF1_NAMES), None)


def old_tensorflow(spec: TrainingSpec, facts: Facts, around: Surroundings) -> Iterator[Finding]:
    """What such code needs: TensorFlow 1 mode, or to be written in another way. None with version 1."""
    release = around.image.tensorflow_release
    if release is None or release < (2, 0):
        return
    for name in _GONE:
        if place := facts.imports_any(f"tensorflow.{name}") or facts.names.get(f"tensorflow.{name}"):
            message = f"tensorflow.{name} is in no TensorFlow that tasks have, also not in TensorFlow 1 mode."
            yield warn("tensorflow_gone", message, _GONE[name], place)
    found = None if spec.tf1 else first_of_version_1(facts)
    if found:
        name, place = found
        message = f"tf.{name.partition('.')[2]} is TensorFlow 1; TensorFlow 2 has it under tf.compat.v1 or not at all."
        remedy = "Turn on TensorFlow 1 mode (tf1: true), or import tensorflow.compat.v1 in the code."
        yield warn("tensorflow_1", message, remedy, place, (Fix("Turn on TensorFlow 1 mode", "tf1", "true"),))

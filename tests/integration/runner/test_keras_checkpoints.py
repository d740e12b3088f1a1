"""A script of Keras 3, which the `tf.keras` of tasks is, is killed; the retry goes on from what it has saved."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.env import task_python
from tests.integration.runner.conftest import Task
from tests.integration.runner.fake_task_portal import FakeTaskPortal, uploaded

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow, pytest.mark.timeout(250)]

TRAIN = """
import os, signal
import tensorflow as tf
keras = tf.keras
assert keras.__version__.startswith("3."), keras.__version__
log = os.environ["LOG_DIR"]

class Tell(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        print("begins epoch", epoch, int(self.model.optimizer.iterations), flush=True)
        if epoch == 3 and os.environ.get("IS_KILLED"):
            os.kill(os.getpid(), signal.SIGKILL)

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("adam", "mse")
model.fit(tf.zeros((8, 4)), tf.zeros((8, 1)), batch_size=4, epochs=5, verbose=0, callbacks=[
    keras.callbacks.BackupAndRestore(log + "/checkpoints", delete_checkpoint=False),
    keras.callbacks.ModelCheckpoint(log + "/whole/{epoch:02d}.keras"),
    keras.callbacks.ModelCheckpoint(log + "/weights/{epoch:02d}-{loss:.2f}.weights.h5", save_weights_only=True),
    Tell(),
])
"""


@pytest.mark.long
def test_a_retry_goes_on_with_the_epoch_in_which_keras_was_killed(tmp_path: Path, portal: FakeTaskPortal) -> None:
    first, retry = Task(tmp_path / "first", portal), Task(tmp_path / "retry", portal)
    portal.orders(TRAIN, spec_environment={})
    for one in (first, retry):
        one.folder.mkdir()
        one.variables = {"YARDMASTER_PYTHON": task_python(), "CUDA_VISIBLE_DEVICES": "", "TF_USE_LEGACY_KERAS": "0"}
    first.variables["IS_KILLED"] = "yes"
    assert first.run(timeout=120) != 0
    assert said(portal) == [f"begins epoch {epoch} {2 * epoch}" for epoch in range(4)], portal.lines()
    kept = uploaded(portal, "checkpoints")[-1]
    assert sorted(kept) == [
        "checkpoints/latest.weights.h5",
        "checkpoints/training_metadata.json",
        "weights/03-0.00.weights.h5",
        "whole/03.keras",
    ]
    assert [one["body"]["step"] for one in portal.uploads.values() if one["kind"] == "checkpoints"][-1] == 3

    portal.order["checkpoint"] = {"step": 3, "files": [portal.add_file(path, kept[path]) for path in sorted(kept)]}
    portal.order["attempt"] = 2
    portal.logs.clear()
    portal.counts.clear()
    assert retry.run(timeout=120) == 0, portal.lines()
    assert said(portal) == ["begins epoch 3 6", "begins epoch 4 8"]


def said(portal: FakeTaskPortal) -> list[str]:
    return [line.decode() for line in portal.lines() if line.startswith(b"begins")]

"""Trains a small classifier of generated points, as a script from a laptop does: it writes where it runs.

Nothing here knows of the portal. The model goes to ./model, event files to ./logs, a table to ./history.csv.
"""

from __future__ import annotations

import argparse
import csv

import numpy as np
import tensorflow as tf
from tensorboard.plugins.hparams import api as hp


def points(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Points of the plane, and whether each lies inside a circle."""
    random = np.random.default_rng(seed)
    found = random.uniform(-1, 1, size=(count, 2)).astype("float32")
    return found, (np.hypot(found[:, 0], found[:, 1]) < 0.7).astype("float32")


def picture(model: tf.keras.Model) -> np.ndarray:
    """What the model says of each point of the plane, as one grey image."""
    axis = np.linspace(-1, 1, 32, dtype="float32")
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    return model.predict(grid, verbose=0).reshape(1, 32, 32, 1)


class Pictures(tf.keras.callbacks.Callback):
    """An image of the plane after each epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.writer = tf.summary.create_file_writer("logs/pictures")

    def on_epoch_end(self, epoch: int, logs: dict[str, float] | None = None) -> None:
        with self.writer.as_default():
            tf.summary.image("inside", picture(self.model), step=epoch)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--units", type=int, default=16)
    args = parser.parse_args()
    train, test = points(2_000, 1), points(500, 2)
    layers = [tf.keras.Input((2,)), tf.keras.layers.Dense(args.units, "relu"), tf.keras.layers.Dense(1, "sigmoid")]
    model = tf.keras.Sequential(layers)
    model.compile(tf.keras.optimizers.Adam(0.01), "binary_crossentropy", metrics=["accuracy"])
    board = tf.keras.callbacks.TensorBoard("logs", histogram_freq=1)
    choices = hp.KerasCallback("logs/hparams", {"units": args.units, "optimizer": "adam"})
    history = model.fit(
        *train,
        validation_data=test,
        epochs=args.epochs,
        batch_size=50,
        verbose=2,
        callbacks=[board, choices, Pictures()],
    )
    with tf.summary.create_file_writer("logs/notes").as_default():
        tf.summary.text("about", "Points **inside** a circle, from generated data.", step=0)
    with open("history.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["epoch", *history.history])
        table.writerows([epoch, *values] for epoch, values in enumerate(zip(*history.history.values(), strict=True)))
    model.export("model")


if __name__ == "__main__":
    main()

"""Fit a plane: `python -m training.train --epochs 20`."""

from __future__ import annotations

import argparse
import os

import tensorflow as tf

from .data import points


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    options = parser.parse_args()
    features, targets = points(512)
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    model.fit(features, targets, epochs=options.epochs, verbose=2)
    print(f"loss {model.evaluate(features, targets, verbose=0):.4f}")
    model.save(os.path.join(os.environ["MODEL_DIR"], "plane.keras"))


if __name__ == "__main__":
    main()

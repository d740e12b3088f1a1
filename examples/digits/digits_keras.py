"""The digits model in Keras, which three scripts of this folder share: layers, test, export.

`tf_keras` is Keras 2. Keras 3, which `tf.keras` means unless TF_USE_LEGACY_KERAS is set, cannot train with parameter
servers, and with several workers its `fit` breaks.
"""

from __future__ import annotations

import os

import numpy as np
import tf_keras as keras

import digits_data


def build_model(learning_rate: float = 0.003) -> keras.Model:
    """A small convolutional network, compiled. Call it inside the strategy's scope, where there is a strategy."""
    model = keras.Sequential(
        [
            keras.layers.Input([digits_data.PIXELS], name="images"),
            keras.layers.Reshape([8, 8, 1]),
            keras.layers.Conv2D(16, 3, padding="same", activation="relu"),
            keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
            keras.layers.MaxPool2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(digits_data.CLASSES),
        ]
    )
    model.compile(
        optimizer=keras.optimizers.Adam(learning_rate),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    return model


def evaluate_and_export(weights: list[np.ndarray], data_dir: str) -> None:
    """Test a model with these weights, in this process alone; export it to $MODEL_DIR where that is set."""
    model = build_model()
    model.set_weights(weights)
    _, accuracy = model.evaluate(digits_data.test_data(data_dir), verbose=0)
    if os.environ.get("MODEL_DIR"):
        model.export(os.environ["MODEL_DIR"])
    print(f"test accuracy {accuracy:.4f}")

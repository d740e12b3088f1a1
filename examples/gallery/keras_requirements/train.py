"""A Keras script with a package that the task image does not have: its settings are in a YAML file.

`requirements.txt` beside it names the package. Nothing here knows of the portal: the model goes to ./waves.keras.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf
import yaml


def points(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, and what a wave is there."""
    found = np.random.default_rng(seed).uniform(-1, 1, size=(count, 1)).astype("float32")
    return found, np.sin(3 * found)


def main() -> None:
    with open("settings.yaml") as file:
        settings = yaml.safe_load(file)
    print("settings", settings, "read by PyYAML", yaml.__version__)
    hidden = [tf.keras.layers.Dense(units, "tanh") for units in settings["units"]]
    model = tf.keras.Sequential([tf.keras.Input((1,)), *hidden, tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.Adam(settings["rate"]), "mse")
    model.fit(*points(1_000, 1), epochs=settings["epochs"], batch_size=25, verbose=2)
    print(f"loss {model.evaluate(*points(200, 2), verbose=0):.4f}")
    model.save("waves.keras")


if __name__ == "__main__":
    main()

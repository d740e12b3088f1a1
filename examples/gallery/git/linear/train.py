"""Fit a line. The script imports a module that lies beside it in the repository.

python train.py --epochs 20
"""

import argparse

import keras
from points import points


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    flags = parser.parse_args()
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.2), "mse")
    model.fit(*points(), epochs=flags.epochs, batch_size=16, verbose=2)
    print("loss", float(model.evaluate(*points(), verbose=0)))
    model.save("line.keras")


if __name__ == "__main__":
    main()

"""A progress bar, as many scripts and tqdm draw it: one line that is drawn again and again, with a `\r` before it.

python train.py --steps=400
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

WIDTH = 30


def draw(step: int, steps: int, loss: float) -> None:
    """The bar over the one that stands there."""
    done = WIDTH * step // steps
    sys.stdout.write(
        f"\r{100 * step // steps:3d} % [{'=' * done}{' ' * (WIDTH - done)}] {step}/{steps} loss {loss:.4f}"
    )
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    flags = parser.parse_args()
    draws = np.random.default_rng(7)
    weights, wanted = np.zeros(3), np.array([2.0, -3.0, 0.5])
    for step in range(1, flags.steps + 1):
        features = draws.normal(size=(64, 3))
        error = features @ (weights - wanted)
        weights -= 0.05 * features.T @ error / len(error)
        draw(step, flags.steps, float((error**2).mean()))
        time.sleep(0.01)  # a step of a larger model
    print("\ntrained", weights.round(2).tolist())


if __name__ == "__main__":
    main()

"""Points on a noisy plane."""

from __future__ import annotations

import numpy as np

WEIGHTS = np.array([[2.0], [-3.0], [0.5]], np.float32)


def points(count: int, seed: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """Features and what to predict of them."""
    draw = np.random.default_rng(seed)
    features = draw.normal(size=(count, len(WEIGHTS))).astype(np.float32)
    noise = draw.normal(scale=0.01, size=(count, 1)).astype(np.float32)
    return features, features @ WEIGHTS + 1.0 + noise

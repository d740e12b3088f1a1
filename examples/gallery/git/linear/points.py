"""Points on the line y = 3x - 2."""

import numpy as np


def points():
    x = np.linspace(-1.0, 1.0, 64, dtype="float32").reshape(-1, 1)
    return x, 3.0 * x - 2.0

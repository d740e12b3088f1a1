"""How plants grow, from a laboratory's own measurements: a module that is in the image and nowhere else."""

from __future__ import annotations

import math

SPECIES = {"bean": (0.35, 62.0), "maize": (0.22, 180.0)}
"""The rate of growth per day, and the height in the end in centimetres."""


def heights(species: str, days: int) -> list[float]:
    """In centimetres, day by day, from a height of 1."""
    rate, most = SPECIES[species]
    return [most / (1 + (most - 1) * math.exp(-rate * day)) for day in range(days)]

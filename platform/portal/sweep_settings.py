"""How large sweeps may be, and how many of them there may be."""

from __future__ import annotations

from dataclasses import dataclass

from portal import env


@dataclass(frozen=True)
class Sweeps:
    trials: int
    """The most of one sweep."""
    parallel: int
    """The most trials of one sweep that are queued or run at once."""
    per_namespace: int
    """The most sweeps of a namespace that have not ended."""


def sweeps() -> Sweeps:
    """Raises `ImproperlyConfigured`."""
    return Sweeps(
        trials=env.number("YARDMASTER_SWEEP_TRIALS", 1_000, least=1),
        parallel=env.number("YARDMASTER_SWEEP_PARALLEL", 50, least=1),
        per_namespace=env.number("YARDMASTER_SWEEPS_PER_NAMESPACE", 50, least=0),
    )

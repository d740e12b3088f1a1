"""Hypothesis everywhere: the same examples on every run, no clock, and few enough that the suite stays short.

`HYPOTHESIS_PROFILE=explore` looks for new examples, many of them.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_CALM = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile(
    "same", derandomize=True, deadline=None, max_examples=100, database=None, suppress_health_check=_CALM
)
settings.register_profile("explore", deadline=None, max_examples=3000, suppress_health_check=_CALM)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

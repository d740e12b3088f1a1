"""The one backoff of the portal."""

from __future__ import annotations

from datetime import timedelta

import pytest

from yardmaster.backoff import delay


@pytest.mark.parametrize(
    ("failures", "seconds"), [(-1, 2), (0, 2), (1, 4), (2, 8), (5, 64), (6, 120), (7, 120), (10**9, 120)]
)
def test_a_delay_doubles_and_is_capped(failures, seconds):
    assert delay(failures, timedelta(seconds=2), timedelta(minutes=2)) == timedelta(seconds=seconds)

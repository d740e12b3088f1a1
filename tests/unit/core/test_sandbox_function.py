"""Why a call in a sandbox has no result."""

from __future__ import annotations

import pytest

from yardmaster.sandbox.function import NoResult, Sandbox


def test_a_call_that_outlasts_its_time_is_late():
    with pytest.raises(NoResult) as found:
        Sandbox("time:sleep").call(60, wait=0.2)
    assert (found.value.is_late, found.value.is_busy) == (True, False)


def test_a_call_that_uses_up_its_processor_time_is_not_late():
    with pytest.raises(NoResult) as found:
        Sandbox("re:match", seconds=1).call("(a+)+$", "a" * 60 + "b", wait=120.0)
    assert (found.value.is_late, found.value.is_busy) == (False, False)

"""When a quota that fills up is warned of: each level once, and again only after it was clearly less."""

from __future__ import annotations

import pytest

from yardmaster.queueing.quota_levels import FULL, NEARLY, level_of


def told(resource: str, *shares: float) -> list[int]:
    """The levels that are told as the use goes this way."""
    level, found = 0, []
    for share in shares:
        new = level_of(resource, share, level)
        if new > level:
            found.append(new)
        level = new
    return found


@pytest.mark.parametrize(
    ("resource", "shares", "expected"),
    [
        ("storage", [0.5, 0.79, 0.8, 0.9, 0.99, 1.0, 1.2], [NEARLY, FULL]),
        ("storage", [0.5, 1.0], [FULL]),
        ("storage", [0.81, 0.79, 0.81, 0.76, 0.8], [NEARLY]),
        ("storage", [0.81, 0.74, 0.81], [NEARLY, NEARLY]),
        ("storage", [1.0, 0.96, 1.0], [FULL]),
        ("storage", [1.0, 0.9, 1.0], [FULL, FULL]),
        ("gpus", [1.0, 0.75, 1.0, 0.71, 1.0], [FULL]),
        ("gpus", [1.0, 0.6, 1.0], [FULL, FULL]),
        ("gpus", [1.0, 0.25, 0.8], [FULL, NEARLY]),
        ("amd.com/gpu", [0.85, 0.55, 0.85], [NEARLY]),
        ("cpu", [0.0, 0.0], []),
    ],
)
def test_each_level_is_told_once_as_it_is_passed(resource, shares, expected):
    assert told(resource, *shares) == expected


def test_a_use_that_swings_about_a_level_is_told_once():
    assert told("storage", *[0.80, 0.77] * 50) == [NEARLY]
    assert told("cpu", *[1.0, 0.75] * 50) == [FULL]

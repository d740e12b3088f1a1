"""How long to wait before the next try: one function for everything in the portal that backs off."""

from __future__ import annotations

from datetime import timedelta

_MOST_DOUBLINGS = 20
"""More than any `longest` needs; a count that grows for ever must not overflow."""


def delay(failures: int, first: timedelta, longest: timedelta) -> timedelta:
    """`first` where nothing failed before, twice as long with each failure, `longest` at most. Pure."""
    doublings: int = 2 ** max(0, min(failures, _MOST_DOUBLINGS))
    return min(longest, first * doublings)

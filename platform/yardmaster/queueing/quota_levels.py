"""When a namespace that fills its quota up is warned of: once as it passes 80 % and once at 100 %. Pure.

What was warned of is warned of again only after it was clearly less in between: what is stored changes slowly, what
jobs hold goes up and down with each job. Not here: who is told, and how much is used.
"""

from __future__ import annotations

NEARLY, FULL = 80, 100
"""Percent of a limit."""
STORED = frozenset({"storage", "files", "logs"})
_LESS = 5
_LESS_OF_JOBS = 30
"""By how many points the use must fall below a level until it is warned of again."""


def level_of(resource: str, share: float, before: int) -> int:
    """The level that this part of the limit (1: all of it) stands for: 0, `NEARLY` or `FULL`. `before`: the level until
    now. A rise is to be told; a fall is not."""
    percent = 100 * share
    if percent >= FULL:
        return FULL
    less = _LESS if resource in STORED else _LESS_OF_JOBS
    if before == FULL and percent > FULL - less:
        return FULL
    if percent >= NEARLY or (before and percent > NEARLY - less):
        return NEARLY
    return 0

"""What a check of code must know beside the code: what the job's tasks will find around them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

MOST_NAMES = 20_000


@dataclass(frozen=True)
class Surroundings:
    """`own_names`: the names of all files and folders of the code, as modules have them, also of files that are not
    read. `has_way_out`: tasks reach addresses outside."""

    own_names: frozenset[str] = frozenset()
    has_way_out: bool = True


def own_names(paths: Iterable[str]) -> frozenset[str]:
    """The names under which a script may import what lies in its code, from whatever folder."""
    found: set[str] = set()
    for path in paths:
        found.update(part.partition(".")[0] for part in path.split("/"))
        if len(found) > MOST_NAMES:
            break
    return frozenset(found)

"""What was answered, by operation: kept in files, since workers of pytest share nothing else; and the table of it."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

KEPT = "YARDMASTER_FUZZ_TALLY"
"""The folder in which each process of a run leaves its counts."""
Counts = Mapping[str, Mapping[str, int]]
"""Of each operation, how often each status was answered."""
STARTING = "starting"
"""In place of 503, which is the right answer to who asks a model whose server only begins to start."""


class Tally:
    """The counts of one process."""

    def __init__(self) -> None:
        self._counts: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def add(self, operation: str, status: int | str) -> None:
        self._counts[operation][str(status)] += 1

    def keep(self) -> None:
        """Leave the counts in the run's folder, if there is one."""
        if folder := os.environ.get(KEPT):
            (Path(folder) / f"{os.getpid()}.json").write_text(json.dumps(self._counts))


def counts_in(folder: Path) -> Counts:
    """Those of all processes together."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for file in folder.glob("*.json"):
        for operation, statuses in json.loads(file.read_text()).items():
            found[operation].update(statuses)
    return found


def total(counts: Counts) -> int:
    return sum(sum(one.values()) for one in counts.values())


def share(counts: Counts, first: str) -> float:
    """Of all answers, those whose status begins so."""
    of = sum(count for one in counts.values() for status, count in one.items() if status.startswith(first))
    return of / max(1, total(counts))


def never_reached(counts: Counts) -> dict[str, str]:
    """Operations that answered no 2xx or 3xx, with what they answered instead."""
    return {
        operation: " ".join(f"{status}:{count}" for status, count in sorted(statuses.items()))
        for operation, statuses in sorted(counts.items())
        if not any(status[0] in "23" for status in statuses)
    }


def report(counts: Counts) -> str:
    """The table that `make fuzz` prints."""
    kinds = ", ".join(f"{kind}xx {share(counts, kind):.0%}" for kind in "2345")
    limited = f"429 {share(counts, '429'):.1%}, 503 since a model's server starts {share(counts, STARTING):.1%}"
    missed = never_reached(counts)
    lines = [f"{total(counts)} cases over {len(counts)} operations: {kinds}, {limited}"]
    lines += [f"{len(missed)} operations never answered 2xx or 3xx:"] if missed else []
    return "\n".join([*lines, *(f"  {operation:<80} {text}" for operation, text in missed.items())])

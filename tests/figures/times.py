"""The time of the last `make test`, from the file that it leaves."""

from __future__ import annotations

import json
from pathlib import Path

from tests.figures.table import Figure, Section
from tests.timing import FILE


def time_section(file: Path = FILE) -> Section:
    """One line that asks for `make test` where there is no such file."""
    rule = "of the last make test that ran to its end, on this machine"
    try:
        told = json.loads(file.read_text())
    except FileNotFoundError:
        return Section("Time of the tests", rule, (Figure("run make test first", "–"),))
    slowest = told["slowest"]
    figures = (
        Figure("tests", told["tests"]),
        Figure("seconds", f"{told['seconds']:.0f}"),
        Figure(f"seconds of the slowest {len(slowest)}", f"{sum(one for one, _ in slowest):.0f}"),
    )
    return Section("Time of the tests", rule, (*figures, *(Figure(test, f"{s:.2f}") for s, test in slowest)))

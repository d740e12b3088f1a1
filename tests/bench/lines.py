"""What a measurement says: a name, a value, a goal, and whether it was met. A short value is told, never hidden."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Line:
    """One figure. `at_most`/`at_least`: the goal's direction; exactly one is set."""

    name: str
    value: float
    unit: str = ""
    at_most: float | None = None
    at_least: float | None = None
    note: str = ""

    @property
    def is_met(self) -> bool:
        if self.at_most is not None:
            return self.value <= self.at_most
        return self.at_least is None or self.value >= self.at_least

    @property
    def goal(self) -> str:
        if self.at_most is not None:
            return f"<= {self.at_most:g}"
        return "" if self.at_least is None else f">= {self.at_least:g}"

    def __str__(self) -> str:
        verdict = "ok" if self.is_met else "short"
        note = f"   ({self.note})" if self.note else ""
        return f"{self.name:<62} {self.value:>10.4g} {self.unit:<6} {self.goal:>10}  {verdict}{note}"


Measurement = Callable[[], Iterable[Line]]


def interleaved(first: Callable[[], T], second: Callable[[], T], rounds: int) -> tuple[list[T], list[T]]:
    """Both measured in turn, A B B A A B …, so that a machine that speeds up or slows down favours neither."""
    one: list[T] = []
    two: list[T] = []
    for number in range(rounds):
        order = [(first, one), (second, two)]
        for measure, results in order if number % 2 == 0 else reversed(order):
            results.append(measure())
    return one, two


def median(values: Iterable[float]) -> float:
    return statistics.median(values)


def write_report(folder: Path, lines: Iterable[Line]) -> Path:
    """The lines as JSON, with date and machine; returns the file."""
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC)
    rows = [asdict(line) | {"goal": line.goal, "met": line.is_met} for line in lines]
    report = {"at": now.isoformat(timespec="seconds"), "machine": _machine(), "lines": rows}
    file = folder / f"{now:%Y%m%d-%H%M%S}.json"
    file.write_text(json.dumps(report, indent=1))
    return file


def _machine() -> dict[str, str | int]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processors": os.cpu_count() or 0,
        "memory_gib": round(memory / 2**30),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def chosen(measurements: Mapping[str, Measurement], names: list[str]) -> Iterator[tuple[str, Measurement]]:
    """Those whose name begins with one of `names`; all of them when there is none."""
    for name, measure in measurements.items():
        if not names or any(name.startswith(one) for one in names):
            yield name, measure

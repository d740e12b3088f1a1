"""What a month's budget says of a month's use: how far it is used up, which warnings are due, and whether it is spent.

Pure. Running jobs are never ended: a budget that is spent keeps new ones from starting. Not here: who is told, and what
holds the namespace (`apps.accounting.budget_sweep`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

CPU_HOURS, MEMORY_HOURS, GPU_HOURS, MONEY = "cpu_hours", "memory_gib_hours", "gpu_hours", "money"
NAMES = {CPU_HOURS: "CPU hours", MEMORY_HOURS: "GiB hours of memory", GPU_HOURS: "GPU hours", MONEY: "Cost"}
"""What a budget can bound."""
SPENT = 100
"""Percent at which nothing more starts."""


@dataclass(frozen=True)
class Line:
    """One bound of a budget and what was used of it."""

    name: str
    used: Decimal
    limit: Decimal

    @property
    def percent(self) -> int:
        """Rounded down, so that 100 is reached when all is used and not before. A limit of zero is spent at once."""
        return int(self.used * 100 / self.limit) if self.limit else SPENT

    @property
    def words(self) -> str:
        return NAMES[self.name]


@dataclass(frozen=True)
class Standing:
    """Where a namespace stands in a month."""

    lines: tuple[Line, ...]

    @property
    def fullest(self) -> Line | None:
        return max(self.lines, key=lambda line: line.percent, default=None)

    @property
    def percent(self) -> int:
        """Of the bound that is used up the most."""
        return self.fullest.percent if self.fullest else 0

    @property
    def is_spent(self) -> bool:
        return self.percent >= SPENT


def standing(limits: Mapping[str, Decimal | None], used: Mapping[str, Decimal]) -> Standing:
    """By what is limited; None: unlimited."""
    lines = (Line(name, used.get(name, Decimal()), limit) for name, limit in limits.items() if limit is not None)
    return Standing(tuple(lines))


def warnings_due(percent: int, levels: Iterable[int], warned: Collection[int]) -> list[int]:
    """The levels that are reached and were not warned of in this month, the lowest first. What is spent is one, too."""
    return sorted(level for level in {*levels, SPENT} if level <= percent and level not in warned)


def change_of_hold(is_spent: bool, is_held: bool) -> bool | None:
    """True: hold it; False: lift the hold; None: it is as it should be."""
    return None if is_spent == is_held else is_spent

"""The figures of a journey that was followed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tests.figures.table import Figure, Section
from tests.figures.tracing import Call, distinct, entered, returns


@dataclass(frozen=True)
class Journey:
    """`counts` says of a module's name whether it counts; the goals are of the modules and of the returns."""

    name: str
    calls: Sequence[Call]
    counts: Callable[[str], bool]
    goal: str = ""
    goal_of_returns: str = ""
    more: tuple[tuple[str, object], ...] = ()

    def figures(self) -> tuple[Figure, ...]:
        order = entered(self.calls, self.counts)
        found = distinct(order)
        modules = tuple(f"{number:>3} {module}" for number, module in enumerate(found, 1))
        route = (" → ".join(one.removeprefix("apps.").removeprefix("yardmaster.") for one in order),)
        everything = distinct(entered(self.calls, lambda module: True))
        return (
            Figure(f"{self.name}: modules", len(found), self.goal, modules),
            Figure(f"{self.name}: returns", returns(order), self.goal_of_returns, route),
            Figure(f"{self.name}: modules with the core", len(everything)),
            *(Figure(f"{self.name}: {name}", value) for name, value in self.more),
        )


def journey_section(journeys: Iterable[Journey]) -> Section:
    figures = tuple(figure for journey in journeys for figure in journey.figures())
    return Section("Journeys", "counted as tests/figures/tracing.py says; --verbose lists the modules", figures)

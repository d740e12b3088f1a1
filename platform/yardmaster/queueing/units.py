"""Amounts in whole units (thousandths of a core, bytes, pieces): no sum of them is ever a little too large. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from yardmaster.job.spec import Resources

Units = Mapping[str, int]


def to_units(amounts: Mapping[str, float]) -> dict[str, int]:
    """Whole units of each resource."""
    return {name: round(amount * 1000) if name == "cpu" else int(amount) for name, amount in amounts.items()}


def to_amount(resource: str, units: int) -> float:
    """What people call this many units of a resource."""
    return units / 1000 if resource == "cpu" else units


def units_of(resources: Resources) -> dict[str, int]:
    """Whole units of each of these, the named ones under their own names."""
    return to_units(resources.as_amounts())


def resources_of(units: Units) -> Resources:
    """The same the other way round. What is not among them is nothing."""
    rest = {name: one for name, one in units.items() if name not in ("cpu", "memory", "gpus")}
    return Resources(to_amount("cpu", units.get("cpu", 0)), units.get("memory", 0), units.get("gpus", 0), rest)

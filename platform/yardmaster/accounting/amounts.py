"""Amounts of use: whole numbers, so that sums are exact in whatever order they are made. Pure.

An amount is what was held times the seconds that it was held: thousandths of a core, KiB of memory, or pieces of
anything else. Times are cut to whole seconds at both ends, so that two times that meet have together what the whole
has. What counts is what was held, from its reservation to its release, not what was busy: no other job could have it.
Not here: where it is written down, and what was measured (`yardmaster.usage`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal

CPU, MEMORY, GPUS = "cpu", "memory", "gpus"
THOUSANDTHS = 1000
KIB = 1024
_HOUR = {CPU: 3600 * THOUSANDTHS, MEMORY: 3600 << 20}
_PLACES = Decimal("0.000001")

Amounts = Counter[str]
"""By resource: `cpu`, `memory`, `gpus`, or the name of any other kind of device."""


def per_hour(resource: str) -> int:
    """The amount of one core, one GiB or one piece that is held for an hour."""
    return _HOUR.get(resource, 3600)


def hours(resource: str, amount: int) -> Decimal:
    """Core-hours, GiB-hours or hours of pieces, to six places."""
    return (Decimal(amount) / per_hour(resource)).quantize(_PLACES)


def hours_of(amounts: Mapping[str, int]) -> dict[str, Decimal]:
    """The same of all resources; those with a field of their own are always there."""
    return {name: hours(name, amounts.get(name, 0)) for name in (CPU, MEMORY, GPUS, *others(amounts))}


def others(amounts: Mapping[str, int]) -> list[str]:
    """The names of the devices that have no field of their own."""
    return sorted(name for name, amount in amounts.items() if name not in (CPU, MEMORY, GPUS) and amount)


def total(several: Iterable[Mapping[str, int]]) -> Amounts:
    """All of them together."""
    found: Amounts = Counter()
    for one in several:
        found.update(one)
    return found

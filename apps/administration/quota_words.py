"""A namespace's quota in words, for bars: what is used, what is set aside, and the limit."""

from __future__ import annotations

from dataclasses import dataclass

from apps.administration.usage import Usage
from apps.namespaces.quotas import QUANTITY_NAMES

NAMES_OF_CHANGES = {**QUANTITY_NAMES, "priority_ceiling": ("Priority ceiling", "")}
"""What else the quota says, which is no amount."""


@dataclass(frozen=True)
class QuotaRow:
    """One bar. `hard` None: no limit. `unit`: `bytes`, or empty for plain numbers."""

    name: str
    used: float
    reserved: float
    hard: float | None
    unit: str
    logs: int = 0
    """Of storage: the bytes in use that are logs."""


def quota_rows(usage: Usage) -> list[QuotaRow]:
    """What is bounded or in use, in the order of `Usage`; a kind that is neither (no GPU anywhere) is left out."""
    rows = [
        QuotaRow(
            name, usage.used[key], usage.reserved[key], usage.hard[key], unit, usage.logs if key == "storage" else 0
        )
        for key, (name, unit) in QUANTITY_NAMES.items()
    ]
    named = [QuotaRow(name, one.used, 0, one.hard, "") for name, one in usage.extended.items()]
    return [row for row in rows if row.hard or row.used or row.reserved or row.name != "GPUs"] + named

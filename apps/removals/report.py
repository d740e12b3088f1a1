"""The report of a removal in words: how far it is, what was removed, what is kept. Pure, over one row.

Not here: counting (`contents`) and carrying out (`worker`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from apps.removals.contents import KINDS, removed_of
from apps.removals.models import Removal
from yardmaster.quantity import format_bytes


@dataclass(frozen=True)
class Counted:
    """One kind: `words` such as `Datasets`, `amount` such as `3` or `1.5 GiB`."""

    kind: str
    words: str
    amount: str


@dataclass(frozen=True)
class Report:
    """`removed` and `kept` are empty while it is under way; `found`: what there was."""

    found: list[Counted]
    removed: list[Counted]
    kept: list[Counted]
    stopped_jobs: int


def report_of(removal: Removal) -> Report:
    """What a removal found, and at its end what became of that. One from before reports were kept has no counts."""
    found = {kind: count for kind, count in removal.found.items() if kind != "unfinished_jobs"}
    is_over = removal.ended_at is not None
    kept = {kind: count for kind, count in removal.kept.items() if kind in found and count}
    return Report(
        found=counted(found),
        removed=counted(removed_of(found, removal.kept)) if is_over else [],
        kept=counted(kept) if is_over else [],
        stopped_jobs=removal.found.get("unfinished_jobs", 0),
    )


def counted(amounts: Mapping[str, int]) -> list[Counted]:
    """Kinds that there is anything of, in the order of `KINDS`."""
    return [
        Counted(kind, words, format_bytes(amounts[kind]) if kind == "bytes" else f"{amounts[kind]:,}")
        for kind, words in KINDS.items()
        if amounts.get(kind)
    ]

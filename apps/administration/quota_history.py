"""How a namespace's quota came to be what it is: every change, who made it, from what to what. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from apps.administration.usage import NAMES_OF_CHANGES
from apps.namespaces.models import Namespace, Quota


@dataclass(frozen=True)
class Moved:
    """One limit that was moved. None: no limit."""

    name: str
    unit: str
    before: float | None
    after: float | None


@dataclass(frozen=True)
class Change:
    at: datetime
    by: str
    """Empty: no user was signed in."""
    moved: Sequence[Moved]
    reason: str = ""


def quota_changes(namespace: Namespace, most: int = 10) -> list[Change]:
    """The newest changes first; what it began with, and saving it unchanged, is none."""
    kept = Quota.history.filter(namespace=namespace).select_related("history_user")[: most + 1]
    changes = [_change(new, old) for new, old in pairwise(kept)]
    return [change for change in changes if change.moved]


def _change(new: Any, old: Any) -> Change:
    moved = [
        Moved(name, unit, getattr(old, key), getattr(new, key))
        for key, (name, unit) in NAMES_OF_CHANGES.items()
        if getattr(old, key) != getattr(new, key)
    ]
    moved += [
        Moved(
            f"{NAMES_OF_CHANGES.get(key, (key, ''))[0]} after the scheduled change",
            NAMES_OF_CHANGES.get(key, (key, ""))[1],
            old.usual[key],
            new.usual[key],
        )
        for key in sorted({*old.usual} & {*new.usual})
        if old.usual[key] != new.usual[key]
    ]
    names = sorted({*new.extended, *old.extended})
    moved += [
        Moved(name, "", old.extended.get(name), new.extended.get(name))
        for name in names
        if old.extended.get(name) != new.extended.get(name)
    ]
    by = new.history_user.username if new.history_user else ""
    return Change(new.history_date, by, moved, new.history_change_reason or "")

"""What every object of the API has: a version, conditions, times, and whether it is being deleted. Pure."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from yardmaster.errors import Unavailable

Raw = Mapping[str, Any]
"""An object as the server sends it."""
Place = tuple[str, str]
"""Namespace, name."""
_LONGEST_WORD = 100
"""Characters. Longer texts are messages, or what people wrote: hardly ever the same twice."""


def place_of(found: Raw) -> Place:
    return str(found["metadata"].get("namespace", "")), str(found["metadata"]["name"])


def version_of(text: str) -> int:
    """An object's or a list's version as a number: of one kind, the later is the greater. Raises `Unavailable`."""
    if not text.isdigit():
        raise Unavailable(f"The cluster's versions are no numbers: {text[:40]!r}.")
    return int(text)


def is_ending(live: Raw) -> bool:
    """Whether its deletion has begun."""
    return "deletionTimestamp" in live["metadata"]


def condition(found: Raw, kind: str) -> Raw:
    """The condition of this type, of any object; empty where it has none."""
    return next((one for one in found.get("status", {}).get("conditions") or () if one.get("type") == kind), {})


def moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def shared(value: Any) -> Any:
    """A copy in which equal words are one object: names of fields, labels of a run, times of the same second."""
    if isinstance(value, str):
        return sys.intern(value) if len(value) <= _LONGEST_WORD else value
    if isinstance(value, Mapping):
        return {sys.intern(name): shared(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [shared(one) for one in value]
    return value

"""Whether an object of a namespace still says what it should: what others added does not count, unless it changes the
meaning. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from yardmaster.engines.kubernetes.client.quantities import amount_of

_EXACT = ("NetworkPolicy", "LimitRange")
"""Kinds in which more than was asked for means something else than was asked for."""


def is_kept(wanted: Mapping[str, Any], live: Mapping[str, Any]) -> bool:
    """Whether `live` says what `wanted` does. What others added is no matter of ours, but where it would undo it."""
    exact = wanted["kind"] in _EXACT
    for name, value in wanted.items():
        if name == "metadata":
            said, found = value, live["metadata"]
            if not all(
                _same(said[one], found.get(one) or {}, False) for one in ("labels", "annotations") if one in said
            ):
                return False
        elif name not in ("apiVersion", "kind") and not _same(value, live.get(name), exact):
            return False
    return True


def _same(wanted: Any, live: Any, exact: bool) -> bool:
    """Nothing and an empty list are the same, as servers leave those out. An empty table is not: as a selector it takes
    everything."""
    if wanted in (None, []) or live in (None, []):
        return wanted in (None, []) and live in (None, [])
    if {} in (wanted, live):
        return bool(wanted == live)
    if isinstance(wanted, Mapping) and isinstance(live, Mapping):
        keys = {*wanted, *live} if exact else {*wanted}
        # A selector with one word more takes fewer, whatever it stands in.
        return all(_same(wanted.get(key), live.get(key), exact or key == "selector") for key in keys)
    if isinstance(wanted, list) and isinstance(live, list):
        return len(wanted) == len(live) and all(
            _same(one, other, exact) for one, other in zip(wanted, live, strict=True)
        )
    return bool(wanted == live or amount_of(wanted) == amount_of(live) != 0)

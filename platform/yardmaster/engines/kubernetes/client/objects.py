"""What every object of the API has: a version, conditions, times, and whether it is being deleted; and amounts as
Kubernetes writes them, in whole units, under the cluster's own names. Pure.

Not here: which amounts count for jobs, and what jobs call them (`capacity`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any

from kubernetes.utils.quantity import parse_quantity

from yardmaster.errors import Unavailable

Raw = Mapping[str, Any]
"""An object as the server sends it."""
ObjectName = tuple[str, str]
"""Namespace, name."""
_LONGEST_WORD = 100
"""Characters. Longer texts are messages, or what people wrote: hardly ever the same twice."""


def object_name(found: Raw) -> ObjectName:
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


def newest_first(events: Iterable[Raw]) -> tuple[Raw, ...]:
    return tuple(sorted(events, key=_event_time, reverse=True))


def _event_time(event: Raw) -> str:
    times: list[Any] = [event.get("lastTimestamp"), event.get("eventTime"), event["metadata"].get("creationTimestamp")]
    return str(next((one for one in times if one), ""))


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


Amounts = tuple[tuple[str, int], ...]
"""Thousandths of a core under `cpu`, all else as it is counted, by name. Ten thousand pods ask for few different ones,
and a thousand nodes have few: those that are equal are one object."""
_MOST_DIGITS = 99
"""Any user may write `1e999999999` into a pod: as a whole number that would take all memory."""


def amount_of(text: object) -> Decimal:
    """A quantity as Kubernetes writes it: `1500m`, `32Gi`, `250000000n`, `1e3`. What is none counts as nothing: it
    stands in another user's pod."""
    try:
        found: Decimal = parse_quantity(str(text))  # type: ignore[no-untyped-call]
    except (ValueError, ArithmeticError):
        return Decimal(0)
    return found if found.is_finite() and found.adjusted() < _MOST_DIGITS else Decimal(0)


def amounts_of(table: Raw) -> Amounts:
    """A table of quantities."""
    return _read(tuple((name, str(value)) for name, value in table.items()))


@lru_cache(maxsize=4096)
def _read(table: tuple[tuple[str, str], ...]) -> Amounts:
    return tuple(
        sorted((name, round(amount_of(text) * 1000) if name == "cpu" else int(amount_of(text))) for name, text in table)
    )


def asked_by(pod: Raw) -> Amounts:
    """What a pod asks for: its containers together, or its largest init container."""
    containers, first = (
        tuple(amounts_of((one.get("resources") or {}).get("requests") or {}) for one in pod["spec"].get(kind) or ())
        for kind in ("containers", "initContainers")
    )
    return containers[0] if len(containers) == 1 and not first else _larger_of(containers, first)


@lru_cache(maxsize=4096)
def _larger_of(containers: tuple[Amounts, ...], first: tuple[Amounts, ...]) -> Amounts:
    most = sum_of(containers)
    for one in first:
        most.update({name: max(amount, most.get(name, 0)) for name, amount in one})
    return tuple(sorted(most.items()))


def sum_of(some: Iterable[Amounts]) -> dict[str, int]:
    """All of them together."""
    found: dict[str, int] = {}
    for one in some:
        for name, amount in one:
            found[name] = found.get(name, 0) + amount
    return found

"""How further columns and orders of `jobs list` are written on the command line, where a bare name is a metric."""

from __future__ import annotations

_ORDERS = ("duration", "queue_time", "steps_per_second", "gpu_hours", "tags", "created", "name")
_PREFIXES = ("metric:", "min:", "max:", "parameter:")


def of_metric(name: str) -> str:
    """The column of a metric: `loss` is `metric:loss`; `min:loss` stays."""
    return name if name.startswith(_PREFIXES) else f"metric:{name}"


def order_of(text: str) -> str:
    """What the portal sorts by: `-accuracy` is `-metric:accuracy`, `duration` and `-max:accuracy` stay."""
    name = text.removeprefix("-")
    key = name if name in _ORDERS else of_metric(name)
    return f"-{key}" if text.startswith("-") else key


def title_of(key: str) -> str:
    """The head of a column."""
    kind, _, name = key.partition(":")
    title = name if kind in ("metric", "parameter") else f"{kind} {name}" if name else kind.replace("_", " ")
    return title.upper()


def words_of(value: float | str | None) -> str:
    """A value as a table has it."""
    if value is None:
        return ""
    return value if isinstance(value, str) else f"{value:.6g}"

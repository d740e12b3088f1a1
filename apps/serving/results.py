"""A prediction as people read it: probabilities of classes as bars, small values as a table, all else as JSON. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

MOST_BARS = 10
MOST_SHOWN = 4000
LARGEST = 1 << 20


@dataclass(frozen=True)
class Bar:
    """One class with its probability."""

    name: str
    share: float

    @property
    def percent(self) -> str:
        return f"{self.share * 100:.1f} %"

    @property
    def width(self) -> int:
        """Of 1000."""
        return max(1, round(self.share * 1000))


@dataclass(frozen=True)
class Output:
    """One output of the model."""

    name: str
    text: str
    bars: tuple[Bar, ...] = ()
    classes: int = 0
    is_cut: bool = False


def outputs_of(body: bytes, classes: Sequence[str] = ()) -> list[Output] | None:
    """The outputs for the one example that was asked about; None where the answer is no prediction, or too large."""
    if len(body) > LARGEST:
        return None
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    if "results" in data:
        return [_result(data["results"], classes)]
    value = data.get("outputs")
    if "predictions" in data:
        rows = data["predictions"]
        value = rows[0] if isinstance(rows, list) and rows else None
    named = value if isinstance(value, dict) and set(value) != {"b64"} else {"": value}
    try:
        return [_output(str(name)[:100], one, classes) for name, one in list(named.items())[:20]]
    except RecursionError:  # it could just be read
        return None


def _result(results: Any, classes: Sequence[str]) -> Output:
    """Of `:classify` pairs of a label and a score, of `:regress` a value."""
    value = results[0] if isinstance(results, list) and results else None
    shown = _output("", value, classes)
    if not isinstance(value, list) or not all(isinstance(one, list) and len(one) == 2 for one in value):
        return shown
    labels = [str(label) for label, _ in value]
    bars = bars_of([score for _, score in value], labels if any(labels) else classes)
    return replace(shown, bars=bars, classes=len(value) if bars else 0)


def _output(name: str, value: Any, classes: Sequence[str]) -> Output:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    bars = bars_of(value, classes)
    count = len(value) if bars else 0
    return Output(name, text[:MOST_SHOWN], bars, count, len(text) > MOST_SHOWN)


def bars_of(value: Any, classes: Sequence[str] = ()) -> tuple[Bar, ...]:
    """The likeliest classes where the value is a distribution over classes; else none."""
    if not isinstance(value, list) or not 2 <= len(value) <= 100_000:
        return ()
    if not all(isinstance(one, (int, float)) and not isinstance(one, bool) and 0 <= one <= 1 for one in value):
        return ()
    if not math.isclose(sum(value), 1, abs_tol=0.02):
        return ()
    known = classes if len(classes) == len(value) else [str(at) for at in range(len(value))]
    order = sorted(range(len(value)), key=lambda at: -value[at])[:MOST_BARS]
    return tuple(Bar(str(known[at])[:100], float(value[at])) for at in order)

"""Amounts of cores, bytes and time: read as people write them ("500m", "2Gi", "1h 30m"), and written so that people
read them. Also a list of names of which there may be many.

Not here: which amounts a job may ask for (`spec_rules`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

_UNITS = {
    "": 1,
    "k": 10**3,
    "K": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "Pi": 2**50,
}
_CORES = 'Expected a number of cores, such as 2, 0.5 or "500m".'
_BYTES = 'Expected bytes, such as 1073741824, "2Gi" or "500M".'
_DURATION = "Expected a duration, such as 90s, 30m, 2h or 1d."
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION_PIECE = re.compile(r"([0-9]{1,9}) *([dhms]?)", re.ASCII)
_QUANTITY = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,9})?) ?([a-zA-Z]{0,3})", re.ASCII)


class NotAQuantity(ValueError):
    """What was given is no amount. The message says what one looks like."""


def parse_cpu(value: object) -> float:
    """Cores, to the thousandth: `2`, `0.5`, `"2"`, `"500m"`."""
    if isinstance(value, str):
        found = _QUANTITY.fullmatch(value.strip())
        if found is None or found[2] not in ("", "m"):
            raise NotAQuantity(_CORES)
        number = float(found[1]) / (1000 if found[2] == "m" else 1)
    else:
        number = _number(value, _CORES)
    return round(number, 3)


def parse_memory(value: object) -> int:
    """Whole bytes: `1073741824`, `"2Gi"`, `"500M"`. A trailing `B` is accepted (`"2GiB"`)."""
    if not isinstance(value, str):
        return int(_number(value, _BYTES))
    found = _QUANTITY.fullmatch(value.strip())
    if found is None:
        raise NotAQuantity(_BYTES)
    unit = found[2].removesuffix("B")
    if unit not in _UNITS:
        raise NotAQuantity(_BYTES)
    whole, _, fraction = found[1].partition(".")
    # In integers: a float holds only 53 bits, and 0.1Gi must not depend on the platform's rounding.
    scale: int = 10 ** len(fraction)
    return int(whole + fraction) * _UNITS[unit] // scale


def _number(value: object, expected: str) -> float | int:
    """A finite number that is not a truth value: `true` is no amount, although Python counts with it."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise NotAQuantity(expected)
    if isinstance(value, float) and not math.isfinite(value):
        raise NotAQuantity(expected)
    if abs(value) > 10**18:
        raise NotAQuantity(expected)
    return value


def format_cpu(cores: float) -> str:
    """`4`, `0.5`: no trailing zeros, at most three places."""
    return f"{cores:.3f}".rstrip("0").rstrip(".")


def format_bytes(amount: float) -> str:
    """`512 B`, `1 KiB`, `1.5 GiB`: one place at most, in the largest unit that gives at least 1."""
    size = float(amount)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024:
            return f"{_one_place(size)} {unit}"
        size /= 1024
    return f"{_one_place(size)} TiB"


def _one_place(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def format_amount(resource: str, amount: float) -> str:
    """An amount of a resource known by its quota name (`Resources.as_amounts`)."""
    return format_bytes(amount) if resource == "memory" else format_cpu(amount)


def exact_bytes(amount: int) -> str:
    """`1.5Gi` where that is exact, else plain bytes: `parse_memory` of it gives the same amount."""
    for unit, size in (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
        if amount >= size and amount * 100 % size == 0:
            return f"{amount / size:.2f}".rstrip("0").rstrip(".") + unit
    return str(amount)


def parse_duration(text: str) -> int:
    """Whole seconds: `90`, `90s`, `1h 30m`, `2d`."""
    pieces = _DURATION_PIECE.findall(text)
    is_bare = len(pieces) > 1 and not all(unit for _, unit in pieces)
    if not pieces or is_bare or _DURATION_PIECE.sub("", text).strip():
        raise NotAQuantity(_DURATION)
    return sum(int(count) * _SECONDS[unit or "s"] for count, unit in pieces)


def format_duration(seconds: int) -> str:
    """`1h 30m`, `45s`, `0s`: `parse_duration` of it gives the same number."""
    pieces = []
    for unit, length in _SECONDS.items():
        if count := seconds // length:
            pieces.append(f"{count}{unit}")
        seconds %= length
    return " ".join(pieces) or "0s"


def some_of(names: Sequence[object], most: int = 5) -> str:
    """`m1, m2 and 3 more`."""
    more = len(names) - most
    return ", ".join(map(str, names[:most])) + (f" and {more} more" if more > 0 else "")

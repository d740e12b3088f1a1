"""Values that break programs, put anywhere into a body, a query or an address. Not here: valid requests (`bodies`)."""

from __future__ import annotations

import copy
import random
from typing import Any

VALUES: tuple[Any, ...] = (
    None, True, False, "", " ", "a\x00b", "\ud800", "a\udfffb", "\ufffe", "‮", "é" * 300, "x" * 5000, "%00",
    0, -1, 2**31, -(2**31) - 1, 2**63, -(2**63) - 1, 2**64, 10**40, 0.1, -0.0, 1e308, float("inf"), float("nan"),
    "1e400", "NaN", "Infinity", "-1", "9" * 5000, "0" * 40,
    "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59-14:00",
    "0000-01-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-03-29T02:30:00", "2026-01-01", "2026-01-01T00:00:00+99:99",
    "Europe/Berlin", "../../etc/passwd", "00000000-0000-0000-0000-000000000000", "01890a5d-ac96-774b-bcce-b302099a8057",
    [], {}, [None], [[]], [{}], {"": None}, {"a\x00": 1}, {"\ud800": 1}, ["a"] * 300, {"a": {"b": {"c": {}}}},
)  # fmt: skip
BODIES: tuple[bytes, ...] = (
    b"", b"{", b"null", b"[]", b'"a"', b"1", b"\xff\xfe", b'{"name": "\xff"}', b'{"name": "\xc3\x28"}', b"\x00",
    b"[" * 100_000, b'{"a":' * 10_000 + b"1" + b"}" * 10_000, b'{"name": ' + b"9" * 5000 + b"}",
    b'{"name": 1e400}', b'{"name": NaN}', b'{"name": "a", "name": "b"}', b'\xef\xbb\xbf{"name": "a"}',
)  # fmt: skip
"""Bodies that are no JSON, or JSON that programs differ about."""
QUERIES = (
    "\x00", "a\x00b", "-1", "0", "99999999999999999999", "9" * 5000, "1e400", "NaN", "", " ",
    "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "9999-12-31", "0000-01-01",
    "00000000-0000-0000-0000-000000000000", "\U0001f682", "x" * 3000, "../..", "2026-13", "'\";--", "*", "(", "[",
    "a.b:c", "null",
)  # fmt: skip
"""Values of a query."""


def spoiled(value: Any, rng: random.Random) -> Any:
    """The same with one value anywhere in it replaced, or one more key that no one knows."""
    found = copy.deepcopy(value)
    places = list(_places(found))
    if not places or rng.random() < 0.05:
        return found | {"unknown": 1} if isinstance(found, dict) else rng.choice(VALUES)
    holder, key = rng.choice(places)
    if rng.random() < 0.1 and isinstance(holder, dict):
        del holder[key]
    else:
        holder[key] = copy.deepcopy(rng.choice(VALUES))
    return found


def _places(value: Any) -> Any:
    """Every (container, key) in it."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in list(pairs):
        yield value, key
        yield from _places(inner)

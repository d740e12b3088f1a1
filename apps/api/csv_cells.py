"""Tables as CSV, for spreadsheets. Pure."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def csv_bytes(rows: Iterable[Sequence[str]]) -> bytes:
    """Some rows, the cells as they are."""
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue().encode()


def cell(value: Any) -> str:
    """A cell that no spreadsheet takes for a formula: strangers choose agents, and names to sign in with."""
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if text.startswith(_FORMULA) else text

"""How much one fetch from Git may cost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """`most_bytes` of what the host sends, and of the files in it; `seconds` from first request to last file."""

    most_bytes: int
    seconds: int
    most_files: int = 20_000

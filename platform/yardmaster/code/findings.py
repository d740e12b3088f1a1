"""What a check of code says before a launch: one thing found, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from yardmaster.code.script_facts import Location


class Severity(StrEnum):
    """`ERROR`: it cannot work. `WARNING`: it most likely will not, or not as meant."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class Finding:
    """One thing found in the code. `line` 0: the file as a whole; `file` empty: the code as a whole."""

    severity: Severity
    code: str
    message: str
    remedy: str
    file: str = ""
    line: int = 0


def warn(code: str, message: str, remedy: str, place: Location | None = None) -> Finding:
    """Of severity `WARNING`. Without a place: of the code as a whole."""
    file, line = (place.file, place.line) if place else ("", 0)
    return Finding(Severity.WARNING, code, message, remedy, file, line)

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
class Fix:
    """A change of the specification that takes the cause away: `field` gets `value`, or, where that is a list and
    `adds`, one more item. `label` is what a button says. Where a finding has several, one of them is to be chosen."""

    label: str
    field: str
    value: str
    adds: bool = False

    @property
    def assignment(self) -> str:
        """As `--set` of the command line takes it."""
        return f"{self.field}{'+' if self.adds else ''}={self.value}"


@dataclass(frozen=True)
class Finding:
    """One thing found in the code. `line` 0: the file as a whole; `file` empty: the code as a whole."""

    severity: Severity
    code: str
    message: str
    remedy: str
    file: str = ""
    line: int = 0
    fixes: tuple[Fix, ...] = ()
    makes: str = ""
    """The source of a dataset that the portal can make, and that takes the cause away as an input (`known_data`)."""


def warn(code: str, message: str, remedy: str, place: Location | None = None, fixes: tuple[Fix, ...] = ()) -> Finding:
    """Of severity `WARNING`. Without a place: of the code as a whole."""
    file, line = (place.file, place.line) if place else ("", 0)
    return Finding(Severity.WARNING, code, message, remedy, file, line, fixes)

"""What goes wrong in preparation and in batch inference, in words that name the file and the row."""

from __future__ import annotations


class PrepareError(Exception):
    """It cannot continue: an option, the input as a whole, a model, or a library is at fault."""


class BadRecord(Exception):
    """One record cannot be used. `place` is its file, with the row where there is one."""

    def __init__(self, place: str, reason: str) -> None:
        super().__init__("%s: %s" % (place, reason))

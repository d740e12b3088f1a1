"""An extension of IPython, loaded in the kernels of a session: notes of TensorFlow's C++ code are no output of a cell.

`TF_CPP_MIN_LOG_LEVEL=1` quiets most of them, but not those from before its log is set up. Warnings and errors are
shown, and notes where the user sets the variable to 0, also in a cell.
"""

from __future__ import annotations

import os
import re
import sys
from typing import Any, Callable

LEVEL = "TF_CPP_MIN_LOG_LEVEL"
WITHOUT_NOTES, ALL = "1", "0"
_PLACE = r"\S+\.(?:cc|cpp|cu|h):\d+\] "
_NOTE = re.compile(
    r"I\d{4} \d\d:\d\d:[\d.]+ +\d+ " + _PLACE + r"|\d{4}-\d\d-\d\d \d\d:\d\d:[\d.]+: I " + _PLACE +
    r"|WARNING: All log messages before absl::InitializeLog\(\) is called are written to STDERR"
)  # fmt: skip


def load_ipython_extension(shell: Any) -> None:
    """Called by IPython, which asks for this name."""
    stream = sys.stderr
    stream.write = without_notes(stream.write)  # type: ignore[method-assign]


def without_notes(write: Callable[[str], int]) -> Callable[[str], int]:
    """`write` of a stream, which gets what C++ code prints as well; a message of that comes in one piece."""

    def written(text: str) -> int:
        if os.environ.get(LEVEL, WITHOUT_NOTES) == ALL or not isinstance(text, str):
            return write(text)
        kept = "".join(line for line in text.splitlines(keepends=True) if not _NOTE.match(line))
        if kept or not text:
            write(kept)
        return len(text)

    return written

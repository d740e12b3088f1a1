"""What the last lines of a failed script's log mean, and what to do about it: common TensorFlow and Keras failures.

Not here: the verdict itself (`failures`), which never depends on what a script printed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Explanation:
    """What a log's end tells: one of the reasons where it fits one, a sentence, a remedy."""

    reason: str
    message: str
    remedy: str


def explain_traceback(lines: Sequence[str]) -> Explanation | None:
    """What these last lines of a log tell, or None where they are not recognised. Never raises."""
    return None

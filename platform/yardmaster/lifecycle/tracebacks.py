"""What the last lines of a failed script's log mean, and what to do about it: common TensorFlow and Keras failures.

A hint beside the verdict, for people. Not here: the verdict itself (`failures`), which never depends on what a script
printed, and the failures that are known (`traceback_signs`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from yardmaster.lifecycle.traceback_signs import SIGNS, WEAK_SIGNS, Sign

_LINES = 400
_LINE_LENGTH = 1000
"""A line of a log may have no end; what identifies an error stands at its beginning."""


@dataclass(frozen=True)
class Explanation:
    """What a log's end tells: the reason it fits, one sentence, and what to do. `code` names the failure, stable.

    `environment`: variables of the job with which it would not have failed, where they are known."""

    reason: str
    message: str
    remedy: str
    code: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


def explain_traceback(lines: Sequence[str]) -> Explanation | None:
    """What these last lines of a log tell, or None where they are not recognised. Never raises."""
    texts = [line[:_LINE_LENGTH].strip() for line in lines[-_LINES:]]
    return _latest(texts, SIGNS) or _latest(texts, WEAK_SIGNS)


def _latest(texts: Sequence[str], signs: Sequence[Sign]) -> Explanation | None:
    for text in reversed(texts):
        for sign in signs:
            found = sign.pattern.search(text)
            if found:
                words = {name: (value or "").strip().rstrip(".") for name, value in found.groupdict().items()}
                message, remedy = sign.message.format(**words), sign.remedy.format(**words)
                return Explanation(sign.reason, message, remedy, sign.code, sign.environment)
    return None

"""What the last lines of a failed script's log mean, and what to do about it: common failures of TensorFlow, Keras and
Spark.

A hint beside the verdict, for people. Not here: the verdict itself (`failures`), which never depends on what a script
printed, and the failures that are known (`traceback_signs`, `spark_signs`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from yardmaster.lifecycle.spark_signs import (
    MEMORY_REMEDY,
    ON_EXECUTOR,
    REMEDY,
    SPARK_SIGNS,
    WEAK_SPARK_SIGNS,
    on_executor,
)
from yardmaster.lifecycle.traceback_signs import SIGNS, WEAK_SIGNS, Sign

_SIGNS = (*SPARK_SIGNS, *SIGNS)
_WEAK_SIGNS = (*WEAK_SPARK_SIGNS, *WEAK_SIGNS)
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
    cut = [line[:_LINE_LENGTH].rstrip() for line in lines[-_LINES:]]
    raised = on_executor(cut)
    if raised is not None:
        return _of_executor(*raised)
    texts = [line.strip() for line in cut]
    return _latest(texts, _SIGNS) or _latest(texts, _WEAK_SIGNS)


def _of_executor(exception: str, place: str) -> Explanation:
    """What a task on an executor has raised. Where the failure is known, its remedy; where it is Spark's, its
    words alone."""
    message = f"A task on an executor raised {exception.rstrip('.')}{f' ({place})' if place else ''}."
    of_spark = _latest([exception], SPARK_SIGNS)
    if of_spark is not None:
        return of_spark
    known = _latest([exception], SIGNS)
    if known is None:
        return Explanation("ScriptFailed", message, REMEDY, ON_EXECUTOR)
    remedy = MEMORY_REMEDY if known.code == "main_memory" else known.remedy
    return replace(known, message=message, remedy=remedy)


def _latest(texts: Sequence[str], signs: Sequence[Sign]) -> Explanation | None:
    for text in reversed(texts):
        for sign in signs:
            found = sign.pattern.search(text)
            if found:
                words = {name: (value or "").strip().rstrip(".") for name, value in found.groupdict().items()}
                message, remedy = sign.message.format(**words), sign.remedy.format(**words)
                return Explanation(sign.reason, message, remedy, sign.code, sign.environment)
    return None

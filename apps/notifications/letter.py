"""The words of a mail about a job. Pure: facts in, subject and text out.

Plain text only: it reads the same in every mail program, and nothing that a script printed can become markup.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from apps.notifications.models import Event

LONGEST_NAME = 80
LONGEST_LINE = 400
LONGEST_SAYING = 2_000


@dataclass(frozen=True)
class Facts:
    """What happened, and where to read on."""

    event: Event
    name: str
    attempt: int
    namespace: str
    took: timedelta | None
    """From its first task's start to the verdict; for a job that waits: how long it has waited."""
    reason: str
    message: str
    remedy: str
    explanation: str
    """What the log's end tells, in a sentence; empty where it tells nothing."""
    help: str
    """What the log's end suggests to change."""
    task: str
    """Whose lines `last_lines` are: `worker-0`."""
    last_lines: Sequence[str]
    job_url: str
    choices_url: str
    off_url: str
    """Switches notifications of this kind off."""


@dataclass(frozen=True)
class Letter:
    subject: str
    body: str


_HAPPENED = {
    Event.SUCCEEDED: "succeeded",
    Event.FAILED: "failed",
    Event.STOPPED: "was stopped",
    Event.WAITS: "is still queued",
}


def letter(facts: Facts) -> Letter:
    """The mail that tells of these facts."""
    name = one_line(facts.name, LONGEST_NAME)
    happened = _HAPPENED[facts.event]
    reason = f": {one_line(facts.reason, LONGEST_NAME)}" if facts.event is Event.FAILED and facts.reason else ""
    parts = [_beginning(facts, name, happened), *_why(facts), *_log(facts), _end(facts)]
    return Letter(f"[Yardmaster] {name} {happened}{reason}", "\n\n".join(parts) + "\n")


def _beginning(facts: Facts, name: str, happened: str) -> str:
    time = "" if facts.took is None else f" {'for' if facts.event is Event.WAITS else 'after'} {_span(facts.took)}"
    which = f", attempt {facts.attempt}," if facts.attempt > 1 else ""
    return f"{name}{which} in {facts.namespace} {happened}{time}.\n{facts.job_url}"


def _why(facts: Facts) -> list[str]:
    if facts.event in (Event.SUCCEEDED, Event.STOPPED):
        return []
    said = [("Why", facts.message), ("Also", facts.explanation), ("Do", facts.remedy), ("Or", facts.help)]
    kept: list[str] = []
    seen: set[str] = set()
    for title, text in said:
        text = one_line(text, LONGEST_SAYING)
        if text and text not in seen:
            seen.add(text)
            kept.append(f"{title + ':':6}{text}")
    return ["\n".join(kept)] if kept else []


def _log(facts: Facts) -> list[str]:
    if not facts.last_lines:
        return []
    lines = "\n".join(f"  {one_line(line, LONGEST_LINE, keep_indent=True)}" for line in facts.last_lines)
    return [f"Last log lines of {facts.task}:\n\n{lines}"]


def _end(facts: Facts) -> str:
    return (
        "-- \nYou enabled this notification for jobs that you launch.\n"
        f"Change your notifications: {facts.choices_url}\n"
        f"{off_line(facts.off_url)}"
    )


def off_line(url: str, kinds: int = 1) -> str:
    """The last line of every mail of a kind, or several, that may be switched off."""
    return f"Stop e-mails of {'this kind' if kinds == 1 else 'these kinds'}: {url}"


def one_line(text: str, longest: int, *, keep_indent: bool = False) -> str:
    """The text on one line, without characters that control a terminal, a mail header or the direction of writing."""
    indent = text[: len(text) - len(text.lstrip(" \t"))].expandtabs(4) if keep_indent else ""
    kept = "".join(one if _is_harmless(one) else " " for one in text)
    line = indent + " ".join(kept.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _is_harmless(character: str) -> bool:
    """Not a control, format (as right-to-left override), surrogate or line separator; what joins emoji stays."""
    return character in "\u200c\u200d" or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _span(time: timedelta) -> str:
    """`42 s`, `3 min 5 s`, `2 h 10 min`, `4 days`."""
    seconds = max(0, int(time.total_seconds()))
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3_600:
        return f"{seconds // 60} min {seconds % 60} s"
    if seconds < 48 * 3_600:
        return f"{seconds // 3_600} h {seconds % 3_600 // 60} min"
    return f"{seconds // 86_400} days"

"""How grave a line is, read from how Python's logging, absl, TensorFlow's C++ and Python itself write. Pure.

Only what stands near the start of a line counts: a message that merely mentions an error is none. What frameworks write
at every start (`yardmaster_runner.noise`) is information, whatever it says of itself.
"""

from __future__ import annotations

import re
from enum import IntEnum

from yardmaster.logs.lines import without_colours
from yardmaster_runner.noise import LONGEST, is_noise


class Level(IntEnum):
    """A level includes those above it when one looks for "at least"."""

    DEBUG = 10
    INFO = 20
    WARNING = 30
    ERROR = 40


_WORDS = {
    Level.ERROR: (rb"ERROR|CRITICAL|FATAL", rb"EF"),
    Level.WARNING: (rb"WARNING|WARN", rb"W"),
    Level.INFO: (rb"INFO|NOTICE", rb"I"),
    Level.DEBUG: (rb"DEBUG|TRACE", rb"DV"),
}
_STARTS = {
    Level.ERROR: rb"Traceback \(most recent call last\):|[\w.]*(?:Error|Exception)(?::|$)"
    rb"|KeyboardInterrupt|Segmentation fault",
    Level.WARNING: rb"\S+:\d+: \w*Warning: ",
}
_NEAR_START = 100


def _pattern(level: Level) -> re.Pattern[bytes]:
    words, letters = _WORDS[level]
    forms = [
        rb"[%s]\d{4} \d\d:\d\d:\d\d" % letters,  # absl and glog: E0502 12:00:00.000000
        rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+: [%s] " % letters,  # TensorFlow's C++
        rb"(?:[^\n]{0,80}[\s\[(|:])?(?:%s)(?=[\s\])|:,]|$)" % words,  # a level's name in capitals
    ]
    if level in _STARTS:
        forms.append(_STARTS[level])
    return re.compile(rb"|".join(forms))


_PATTERNS = {level: _pattern(level) for level in sorted(Level, reverse=True)}
_LOOSE = {
    Level.ERROR: rb"ERROR|CRITICAL|FATAL|Error|Exception|Traceback|KeyboardInterrupt|Segmentation|^[EF]\d{4} |: [EF] ",
    Level.WARNING: rb"WARN|Warning: |^W\d{4} |: W ",
    Level.INFO: rb"INFO|NOTICE|^I\d{4} |: I ",
    Level.DEBUG: rb"DEBUG|TRACE|^[DV]\d{4} |: [DV] ",
}


def level_of(line: bytes) -> Level | None:
    """The line's level, or None when it does not say. A line's lead decides; the gravest form that fits wins."""
    lead = without_colours(line[: 4 * _NEAR_START])[:_NEAR_START]
    for level, pattern in _PATTERNS.items():
        if pattern.match(lead):
            return min(level, Level.INFO) if _is_noise(line) else level
    return None


def _is_noise(line: bytes) -> bool:
    return is_noise(line[:LONGEST].decode("utf-8", "replace"))


def candidates(at_least: Level) -> re.Pattern[bytes]:
    """Finds, in a buffer of many lines, a place inside every line of that level or above (and in some others)."""
    return re.compile(rb"|".join(loose for level, loose in _LOOSE.items() if level >= at_least), re.MULTILINE)

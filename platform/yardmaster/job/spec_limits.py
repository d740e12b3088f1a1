"""How much a specification may ask for and hold, and how its texts are shown in problems. Used by the rules and by what
reads JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True)
class SpecLimits:
    """How much a specification may ask for and hold. The strictest that was ever in force says nothing about what is
    stored already: that is decoded (`spec_stored`), never checked again."""

    size: int = 256 << 10
    """Bytes of its JSON form, as it is stored."""
    tasks: int = 1000
    arguments: int = 1000
    requirements: int = 500
    requirement: int = 1000
    """Characters of one line."""
    variables: int = 500
    inputs: int = 100
    secrets: int = 100
    extended: int = 50
    """Extended resources of one role."""
    name: int = 100
    note: int = 1_000
    path: int = 255
    text: int = 32_768
    """Of one argument or one variable. Linux takes 128 KiB each; a manifest all together 1 MiB."""
    command: int = 8_192
    """Characters of a shell command line."""
    parameters: int = 100
    least_memory: int = 64 << 20
    memory: int = 1 << 46
    cpu: float = 4096.0
    devices: int = 10_000
    """GPUs, or an extended resource, of one task."""
    retries: int = 100
    runtime: timedelta = timedelta(days=365)
    grace: timedelta = timedelta(hours=1)
    reclaim_delay: timedelta = timedelta(days=1)
    hold: timedelta = timedelta(hours=8)


DEFAULT_LIMITS = SpecLimits()


def is_text(value: str) -> bool:
    """Whether a program can be given this: no NUL, and no half of a surrogate pair, which UTF-8 cannot write."""
    return "\0" not in value and not any("\ud800" <= letter <= "\udfff" for letter in value)


def shorten(value: str, most: int = 60) -> str:
    """A text as it may be shown: control characters and the like written out, the end cut off."""
    text = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in value[: most + 1])
    return text if len(value) <= most and len(text) <= most else text[: most - 1] + "…"

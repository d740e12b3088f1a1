"""Paths and variables in a specification: what they may be called. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from yardmaster.errors import Problem
from yardmaster.job.spec_limits import DEFAULT_LIMITS, shorten

RESERVED_VARIABLES = ("TF_CONFIG",)
RESERVED_PREFIX = "YARDMASTER_"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)


def path_is_inside(path: str, longest: int = DEFAULT_LIMITS.path) -> bool:
    """Whether a path of the code stays inside it on every system, and cannot be taken for an option."""
    parts = path.split("/")
    return (
        0 < len(path) <= longest
        and path.isprintable()
        and "\\" not in path
        and ":" not in parts[0]
        and not path.startswith("-")
        and all(part.strip() and part not in (".", "..") for part in parts)
    )


def variable_problems(field: str, name: str) -> Iterator[Problem]:
    """What is wrong with a variable of this name."""
    if not _VARIABLE.fullmatch(name):
        message = "A variable's name has letters, digits and _, at most 128, and no digit first."
        yield Problem(field, "bad_value", message, "Rename it.", shorten(name))
    elif name in RESERVED_VARIABLES or name.startswith(RESERVED_PREFIX):
        yield Problem(field, "reserved", f"{name} is reserved for Yardmaster.", "Remove or rename it.", shorten(name))

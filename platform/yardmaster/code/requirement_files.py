"""Which distributions a job asks for: those of its specification, or of a file in the root of its code. As much of that
as names alone need; what is installed is decided in the task, by `yardmaster_runner.requirement_files`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from yardmaster_runner.requirement_files import FILES, name_of

_COMMENT = re.compile(r"(^|\s)#.*$")


@dataclass(frozen=True)
class Asked:
    """`names` as they are compared, `file` of the code that has them (empty: none), and whether these are `all`."""

    names: frozenset[str] = frozenset()
    file: str = ""
    all: bool = True


def asked_for(given: Sequence[str] | None, files: Mapping[str, str]) -> Asked:
    """What a job asks for: `given` by its specification; where that is None, by the first of the files that is there.
    Never raises: what is no such file asks for nothing."""
    if given is not None:
        return _asked(given, "")
    file = next((name for name in FILES if name in files), "")
    if not file:
        return Asked()
    text = files[file]
    return _asked(_of_project(text) if file.endswith(".toml") else text.splitlines(), file)


def plain_lines(files: Mapping[str, str]) -> list[str] | None:
    """What the code asks for, where it does so in a `requirements.txt` or not at all. None: in another way."""
    if FILES[0] not in files:
        return None if any(name in files for name in FILES) else []
    lines = (_COMMENT.sub("", line).strip() for line in files[FILES[0]].splitlines())
    return [line for line in lines if line]


def _asked(lines: Sequence[str], file: str) -> Asked:
    written = [line.strip() for line in lines]
    includes = any(line.startswith(("-r", "--requirement")) for line in written)
    names = {name_of(line) for line in written if not line.startswith(("-", "#"))} - {""}
    return Asked(frozenset(names), file, not includes)


def _of_project(text: str) -> list[str]:
    try:
        project = tomllib.loads(text).get("project")
    except (ValueError, RecursionError):
        return []
    listed = project.get("dependencies") if isinstance(project, dict) else None
    return [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []

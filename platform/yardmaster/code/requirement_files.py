"""Which distributions the code asks for: in `requirements.txt` and `pyproject.toml`, at its top or beside the script.

Only names matter here. Not here: installing them, and which modules they bring (`packages`).
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

FILES = ("requirements.txt", "pyproject.toml")
MOST_BYTES = 64 << 10
"""Of one such file. A longer one lists more than a job can need, and is not read."""
_NAME = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")
_EGG = re.compile(r"[#&]egg=([A-Za-z0-9._-]+)")


def requirement_files(entry_point: str) -> list[str]:
    """Where such files of a script may be."""
    folders = dict.fromkeys(("", posixpath.dirname(entry_point)))
    return [posixpath.join(folder, name) for folder in folders for name in FILES]


def requirement_lines(files: Mapping[str, str], entry_point: str) -> list[str]:
    """The lines of those that are there. Never raises: what is no such file asks for nothing."""
    found: list[str] = []
    for path in requirement_files(entry_point):
        text = files.get(path, "")
        found += _of_pyproject(text) if path.endswith(".toml") else text.splitlines()
    return found


def _of_pyproject(text: str) -> list[str]:
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError):
        return []
    poetry = _table(_table(data, "tool"), "poetry")
    listed = _table(data, "project").get("dependencies", [])
    lines = listed if isinstance(listed, list) else []
    return [one for one in lines if isinstance(one, str)] + list(_table(poetry, "dependencies"))


def _table(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = data.get(key)
    return found if isinstance(found, dict) else {}


def names_in(lines: Iterable[str]) -> Iterator[str]:
    """The names of the distributions, as they are compared. Options and comments name none."""
    for line in lines:
        egg = _EGG.search(line)
        found = egg or (None if line.lstrip().startswith(("-", "#")) else _NAME.match(line))
        if found:
            yield normal(found[1])


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()

"""Which packages a job asks for: the lines of its specification, or of `requirements.txt` or `pyproject.toml` in its
code. Not here: installing them (`packages`).

The rules of the files are pip's. What would lead elsewhere than to the portal's package index is left out and named:
another index is the administrator's choice, and the code itself can be imported without being installed.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

MOST_LINES = 500
MOST_BYTES = 64 << 10
MOST_DEPTH = 5
FILES = ("requirements.txt", "pyproject.toml")
"""In the root of the code, the first of them that is there."""

KEPT_OPTIONS = ("--no-binary", "--only-binary", "--prefer-binary", "--pre")
LEFT_OUT_OPTIONS = ("-i", "--index-url", "--extra-index-url", "--no-index", "-f", "--find-links", "--trusted-host")
NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_EDITABLE = ("-e", "--editable")
_INCLUDE = re.compile(r"(?:-r|--requirement|-c|--constraint)(?:[ =]\s*|(?=[^-\s]))(?P<path>.+)")
_COMMENT = re.compile(r"(^|\s+)#.*$")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|git\+|\bfile:")


class BadRequirements(Exception):
    """They cannot be installed as they are written. The message names the line and what to write instead."""


@dataclass(frozen=True)
class Wanted:
    """What is to be installed, in pip's words, a requirement or an option each. `source` names the file; empty: the
    specification. `left_out` says, a sentence each, what is not followed."""

    lines: Tuple[str, ...] = ()
    constraints: Tuple[str, ...] = ()
    source: str = ""
    left_out: Tuple[str, ...] = ()


def wanted(code: str, given: Optional[Sequence[str]]) -> Wanted:
    """What a job asks for: `given` by its specification; where that is None, by the code in this folder. Raises
    `BadRequirements`."""
    reading = _Reading(code)
    if given is not None:
        reading.take(given, "the specification", 0)
        return reading.found("")
    for name in FILES:
        path = os.path.join(code, name)
        if os.path.isfile(path) and not os.path.islink(path):
            if name == "requirements.txt":
                reading.file(name, 0)
            else:
                reading.take(_of_project(_text(path, name), name), name, 0)
            return reading.found(name)
    return Wanted()


def name_of(line: str) -> str:
    """The normalised name of the distribution that a requirement names (PEP 503); empty for an option."""
    found = NAME.match(line)
    return normal(found.group(0)) if found else ""


def is_address(line: str) -> bool:
    """Whether a requirement says where it is to be fetched."""
    return _ADDRESS.search(line) is not None


def is_path(line: str) -> bool:
    """Whether a requirement is a file or folder beside the script."""
    return line.startswith((".", "/")) or line.endswith((".whl", ".tar.gz", ".zip"))


def normal(name: str) -> str:
    """A distribution's name as indexes compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


class _Reading:
    """One reading, over all files that include each other."""

    def __init__(self, code: str) -> None:
        self._code = code
        self._lines: Dict[bool, List[str]] = {False: [], True: []}
        self._left_out: List[str] = []

    def found(self, source: str) -> Wanted:
        return Wanted(tuple(self._lines[False]), tuple(self._lines[True]), source, tuple(self._left_out))

    def file(self, name: str, depth: int, is_constraint: bool = False) -> None:
        """A file of the code, by its path from the root."""
        if depth > MOST_DEPTH:
            raise BadRequirements("%s: requirement files include each other more than %d deep" % (name, MOST_DEPTH))
        self.take(_logical(_text(self._inside(name), name)), name, depth, is_constraint)

    def take(self, lines: Sequence[str], where: str, depth: int, is_constraint: bool = False) -> None:
        for one in lines:
            line = " ".join(one.split())
            if line:
                self._line(line, where, depth, is_constraint)
            if len(self._lines[False]) + len(self._lines[True]) > MOST_LINES:
                raise BadRequirements("%s: more than %d requirements" % (where, MOST_LINES))

    def _line(self, line: str, where: str, depth: int, is_constraint: bool) -> None:
        include = _INCLUDE.fullmatch(line)
        if include is not None:
            below = os.path.normpath(os.path.join(os.path.dirname(where), include.group("path").strip("\"' ")))
            self.file(below, depth + 1, is_constraint or line.startswith(("-c", "--c")))
        elif line.startswith("-") and not line.startswith(_EDITABLE):
            self._option(line, where)
        elif is_address(line):
            remedy = "Packages come from the portal's package index alone: write its name and version"
            raise BadRequirements("%s: %r names an address. %s" % (where, line[:200], remedy))
        elif is_path(line) or line.startswith(_EDITABLE):
            self._local(line, where)
        elif NAME.match(line) is None:
            raise BadRequirements(
                "%s: %r is no requirement. Write a name and a version, as in pandas>=2" % (where, line[:200])
            )
        else:
            self._lines[is_constraint].append(line)

    def _option(self, line: str, where: str) -> None:
        option = re.split(r"[ =]", line, maxsplit=1)[0]
        if option in KEPT_OPTIONS:
            self._lines[False].append(line)
        elif option in LEFT_OUT_OPTIONS or option.startswith(("-i", "-f")):
            self._left_out.append(
                "%s: %s is not followed, packages come from the portal's index" % (where, option[:40])
            )
        else:
            raise BadRequirements("%s: the option %s is not known here. Remove the line" % (where, option[:40]))

    def _local(self, line: str, where: str) -> None:
        """The code itself is on the path for modules; a wheel in it is not installed."""
        line = re.sub(r"^(-e|--editable)[ =]*", "", line)
        if line.rstrip("/") == "." or line.startswith(("./src", "src", ".[")):
            self._left_out.append("%s: %s is not installed, the code can be imported as it is" % (where, line[:100]))
            return
        message = "%s: %r is a path. Write the name and version of a package; modules of the code need no line"
        raise BadRequirements(message % (where, line[:200]))

    def _inside(self, name: str) -> str:
        path = os.path.realpath(os.path.join(self._code, name))
        if os.path.relpath(path, os.path.realpath(self._code)).startswith(".."):
            raise BadRequirements("%s leads outside the code" % name)
        if not os.path.isfile(path):
            raise BadRequirements("%s is named by a requirement file, and is not in the code" % name)
        return path


def _text(path: str, name: str) -> str:
    with open(path, "rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise BadRequirements("%s has more than %d KiB" % (name, MOST_BYTES >> 10))
    try:
        return content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadRequirements("%s is no text in UTF-8" % name) from error


def _logical(text: str) -> List[str]:
    """Lines without comments; those that end in a backslash are one with the next."""
    return list(_joined(text.splitlines()))


def _joined(lines: Sequence[str]) -> Iterator[str]:
    held = ""
    for line in lines:
        if line.endswith("\\") and not line.lstrip().startswith("#"):
            held += line[:-1] + " "
            continue
        yield _COMMENT.sub("", held + line)
        held = ""
    if held:
        yield _COMMENT.sub("", held)


def _of_project(text: str, name: str) -> List[str]:
    """`project.dependencies` (PEP 621)."""
    toml = _toml()
    if toml is None:
        raise BadRequirements("%s cannot be read by this image's Python. Add a requirements.txt" % name)
    try:
        project = toml.loads(text).get("project") or {}
        found = project.get("dependencies") or []
    except (ValueError, AttributeError) as error:
        raise BadRequirements("%s is not valid TOML: %s" % (name, error)) from error
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise BadRequirements("%s: project.dependencies is no list of texts" % name)
    return found


def _toml() -> Any:
    for module in ("tomllib", "tomli", "pip._vendor.tomli"):
        try:
            return __import__(module, fromlist=["loads"])
        except ImportError:
            continue
    return None

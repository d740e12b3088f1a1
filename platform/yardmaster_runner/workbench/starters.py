"""The starter notebooks, put into a user's home. What the user changed or removed stays so: of a file that was changed,
a newer release's lies beside it.
"""

from __future__ import annotations

import hashlib
import os
from typing import Iterator, Set, Tuple

from yardmaster_runner.exits import say
from yardmaster_runner.own_programs import runner_root

FOLDER = "Starter notebooks"
EXAMPLES = "examples"
GIVEN = ".given"
"""In that folder: the checksums of all files that were ever put there, a line each."""
SOURCES = {"notebooks": "", "digits": "digits"}
"""Folders of the examples, and where each lies below the folder of the notebooks, which use the others' files."""


def examples() -> str:
    """In the folder that has the runner, where the portal has sent that to a machine; beside it in the project and in
    the image."""
    sent = os.path.join(runner_root(), EXAMPLES)
    return sent if os.path.isdir(sent) else os.path.join(os.path.dirname(runner_root()), EXAMPLES)


def put(home: str, top: str = "") -> None:
    """Each file that was never put there; `top` has the examples. What cannot be written is said, and no session waits
    for it."""
    folder = os.path.join(home, FOLDER)
    try:
        given = _given(folder)
        os.makedirs(folder, exist_ok=True)
        for path, data in _files(top or examples()):
            checksum = hashlib.sha256(data).hexdigest()
            if checksum not in given:
                _put(os.path.join(folder, path), data, checksum, given)
                with open(os.path.join(folder, GIVEN), "a", encoding="ascii") as file:
                    file.write(checksum + "\n")
    except OSError as error:
        say("the starter notebooks could not be written: %s" % error)


def _files(top: str) -> Iterator[Tuple[str, bytes]]:
    for source, place in SOURCES.items():
        for name in sorted(os.listdir(os.path.join(top, source))):
            path = os.path.join(top, source, name)
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    yield os.path.join(place, name), file.read()


def _put(target: str, data: bytes, checksum: str, given: Set[str]) -> None:
    """In the place of an older one, unless the user has changed that."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.lexists(target) and _checksum(target) not in given | {checksum}:
        stem, ending = os.path.splitext(target)
        target = "%s (version %s)%s" % (stem, checksum[:8], ending)
    with open(target + ".new", "wb") as file:
        file.write(data)
    os.replace(target + ".new", target)


def _checksum(path: str) -> str:
    if not os.path.isfile(path):
        return ""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def _given(folder: str) -> Set[str]:
    try:
        with open(os.path.join(folder, GIVEN), encoding="ascii", errors="replace") as file:
            return set(file.read().split())
    except FileNotFoundError:
        return set()

"""What is made once for all test runs of a user: files in the cache, each named after a digest of what it is made of.

Not here: what is made once for one run (`tests.real.once`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

NEWEST = 6
"""So many files of a kind are kept: those of the branches that are worked on."""


def kept(name: str, digest: str, make: Callable[[Path], object]) -> Path:
    """The file `<name>-<digest>` that `make` writes at the path it is given, unless there is one already.

    Runs at the same time may both make it: the last to end replaces what is the same.
    """
    stem, dot, ending = name.partition(".")
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "yardmaster" / "migrated"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{stem}-{digest}{dot}{ending}"
    if file.exists():
        file.touch()
    else:
        draft = folder / f"draft-{os.getpid()}-{file.name}"
        try:
            make(draft)
            draft.replace(file)
        finally:
            draft.unlink(missing_ok=True)
    _forget_old(folder, f"{stem}-*{dot}{ending}")
    return file


def _forget_old(folder: Path, pattern: str) -> None:
    files = [(file.stat().st_mtime, file) for file in folder.glob(pattern)]
    for _, file in sorted(files, reverse=True)[NEWEST:]:
        file.unlink(missing_ok=True)

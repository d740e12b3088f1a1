"""Home and temporary folder of a task: its own, inside its work folder, so that they go with the run.

A unix socket's path holds 107 bytes, and programs put theirs below the temporary folder. Where that is deep, the task
is given a short link to it, in a folder of ours below /tmp that other users cannot enter.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from pathlib import Path

from yardmaster.engines.supervision.folder import RunFolder
from yardmaster.job.spec import Role

_LONGEST = 70
"""Room for names such as `pymp-abcdefgh/listener-abcdefgh`."""
_SHORT = Path("/tmp")


def variables(folder: RunFolder, role: Role, index: int) -> dict[str, str]:
    """What the task receives. Touches nothing."""
    place = _temporary(folder, role, index)
    is_long = len(os.fsencode(place)) > _LONGEST
    return {"HOME": str(_home(folder, role, index)), "TMPDIR": str(_link(folder, role, index) if is_long else place)}


def make(folder: RunFolder, role: Role, index: int) -> dict[str, str]:
    """Make both, or what is missing, and say where they are. Raises `OSError`."""
    chosen = variables(folder, role, index)
    place = _temporary(folder, role, index)
    for one in (_home(folder, role, index), place):
        one.mkdir(mode=0o700, parents=True, exist_ok=True)
    short = Path(chosen["TMPDIR"])
    if short == place:
        return chosen
    if not _is_ours(short.parent):
        return chosen | {"TMPDIR": str(place)}  # another user's: better too long than theirs
    _sweep(short.parent)
    with contextlib.suppress(FileExistsError):
        short.symlink_to(place)
    return chosen


def remove(folder: RunFolder) -> None:
    """Remove the run's links. The rest goes with its folder."""
    for role, index in folder.tasks():
        with contextlib.suppress(OSError):
            _link(folder, role, index).unlink()


def _sweep(links: Path) -> None:
    """Remove links of runs whose folders were removed by other hands."""
    for link in links.iterdir():
        if not link.exists():
            link.unlink(missing_ok=True)


def _home(folder: RunFolder, role: Role, index: int) -> Path:
    return folder.work(role, index) / "home"


def _temporary(folder: RunFolder, role: Role, index: int) -> Path:
    return folder.work(role, index) / "tmp"


def _link(folder: RunFolder, role: Role, index: int) -> Path:
    digest = hashlib.sha256(os.fsencode(folder.work(role, index))).hexdigest()[:16]
    return _SHORT / f"yardmaster-{os.getuid()}-tasks" / digest


def _is_ours(folder: Path) -> bool:
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o022

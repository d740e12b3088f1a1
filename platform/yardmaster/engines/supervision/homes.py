"""The homes of a machine: where they are, how much lies in one, and its removal. The last two are bounded in time, and
follow no link.

A home may hold whatever its user made: folders as deep as the disk takes, and folders that no one may read.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from itertools import islice
from pathlib import Path

from yardmaster.engines.base import HomeUse

SECONDS = 10.0
ENTRIES = 1_000_000
HOME = "YARDMASTER_HOME_DIR"
"""Says to the runner where the home is."""
_AT_ONCE = 1000
_BLOCK = 512


def home_in(root: Path, namespace_id: uuid.UUID, owner_id: uuid.UUID) -> Path:
    """One for each member of a namespace, below the engine's folder."""
    return root / "workbench" / str(namespace_id) / str(owner_id)


def make(home: Path) -> None:
    """Where it is not there yet; of this user alone. Raises `OSError`."""
    for folder in (home.parent.parent, home.parent, home):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def used(home: Path, *, seconds: float = SECONDS, entries: int = ENTRIES) -> HomeUse:
    """The bytes that its files take on the disk, and those of a removal that is not over; of the first `entries` files
    and folders, and for `seconds` at most."""
    until, size, is_whole = time.monotonic() + seconds, 0, True
    folders = [str(home), str(_going(home))]
    while folders:
        try:
            with os.scandir(folders.pop()) as found:
                for one in found:
                    entries -= 1
                    if entries < 0 or time.monotonic() > until:
                        return HomeUse(size, is_whole=False)
                    size += one.stat(follow_symlinks=False).st_blocks * _BLOCK
                    if one.is_dir(follow_symlinks=False):
                        folders.append(one.path)
        except FileNotFoundError:
            continue  # removed while we were looking
        except OSError:
            is_whole = False
    return HomeUse(size, is_whole)


def remove(home: Path, *, seconds: float = SECONDS) -> bool:
    """Remove it, for `seconds` at most. Returns whether it is gone; absent: it is. It has another name from the first
    step on, so that what is put into a home meanwhile is not half removed. Raises `OSError`."""
    until, going = time.monotonic() + seconds, _going(home)
    while True:
        if not os.path.lexists(going):
            try:
                home.rename(going)
            except FileNotFoundError:
                with contextlib.suppress(OSError):
                    home.parent.rmdir()  # the namespace's, where it was the last
                return True
        if not _removed(going, going, until):
            return False


def _going(home: Path) -> Path:
    return home.with_name(f"{home.name}.removed")


def _removed(folder: Path, top: Path, until: float) -> bool:
    """A folder in one below `top` is first moved to `top`, so that none is too deep."""
    if not folder.is_dir() or folder.is_symlink():
        folder.unlink()
        return True
    folder.chmod(0o700)
    while True:
        with os.scandir(folder) as found:
            some = list(islice(found, _AT_ONCE))
        if not some:
            folder.rmdir()
            return True
        for one in some:
            if time.monotonic() > until:
                return False
            if not one.is_dir(follow_symlinks=False):
                os.unlink(one.path)
            elif folder != top:
                os.chmod(one.path, 0o700)
                os.rename(one.path, top / uuid.uuid4().hex)
            elif not _removed(Path(one.path), top, until):
                return False

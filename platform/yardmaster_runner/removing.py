"""Removing a folder that users have filled, of any depth: deeper than Python's stack, than a path may be long, and than
a process may have files open.

A folder below another is moved up into the outermost one before the other is removed, so two are open at a time. Links
are removed and not followed. Folders that their owner may not read or write are opened first.
"""

from __future__ import annotations

import contextlib
import os
import stat
import uuid
from typing import List, Optional

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def remove_tree(folder: str) -> None:
    """The folder and everything in it. Raises OSError."""
    if not os.path.islink(folder):
        _allow(folder)
    top = os.open(folder, _FOLDER)
    try:
        while _remove_one_level(top):
            pass
    finally:
        os.close(top)
    os.rmdir(folder)


def _remove_one_level(top: int) -> bool:
    """The files of the outermost folder and of those in it, which go; theirs take their place. Whether there are."""
    mark, moved = uuid.uuid4().hex, 0
    for name in _without_files(top):
        _allow(name, top)
        inner = os.open(name, _FOLDER, dir_fd=top)
        try:
            for below in _without_files(inner):
                _allow(below, inner)
                os.rename(below, "%s-%d" % (mark, moved), src_dir_fd=inner, dst_dir_fd=top)
                moved += 1
        finally:
            os.close(inner)
        os.rmdir(name, dir_fd=top)
    return moved > 0


def _without_files(folder: int) -> List[str]:
    """The folders in this one, of which everything else is removed."""
    with os.scandir(folder) as found:
        entries = list(found)
    folders = []
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            folders.append(entry.name)
        else:
            os.unlink(entry.name, dir_fd=folder)
    return folders


def _allow(folder: str, above: Optional[int] = None) -> None:
    with contextlib.suppress(OSError):  # of another user: then it may be open all the same
        os.chmod(folder, stat.S_IRWXU, dir_fd=above)

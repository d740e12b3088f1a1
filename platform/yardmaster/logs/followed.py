"""Which jobs' logs are being followed: known to all web processes by a small file beside the logs.

A hint: it only decides whether tasks show their unfinished lines. What a process that was killed leaves behind counts
for a few seconds.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from pathlib import Path

FRESH = 30.0
"""Seconds for which one note counts."""
_FOLDER = ".followed"


def note_followed(root: Path, job_id: uuid.UUID) -> None:
    """The job's log is being followed now. Never raises: a full disk costs the unfinished lines."""
    with contextlib.suppress(OSError):
        path = _path(root, job_id)
        path.parent.mkdir(exist_ok=True)
        path.touch()
        os.utime(path)


def forget_followed(root: Path, job_id: uuid.UUID) -> None:
    """The last follower of this process has left; another process notes its own again."""
    with contextlib.suppress(OSError):
        _path(root, job_id).unlink(missing_ok=True)


def is_followed(root: Path, job_id: uuid.UUID) -> bool:
    try:
        return time.time() - _path(root, job_id).stat().st_mtime < FRESH
    except OSError:
        return False


def _path(root: Path, job_id: uuid.UUID) -> Path:
    return root / _FOLDER / job_id.hex

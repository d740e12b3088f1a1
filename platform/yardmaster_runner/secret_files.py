"""Secrets that the script reads as files: in a private folder, for as long as the script runs.

Not here: secrets in variables (`launch`), and keeping values out of the log (`masking`).
"""

from __future__ import annotations

import contextlib
import os
import shutil
from typing import Sequence

from yardmaster_runner.cache import inside
from yardmaster_runner.order import Secret


def write(folder: str, secrets: Sequence[Secret]) -> None:
    """Write the files, after what an earlier start left was removed. Only the task's user can read them."""
    remove(folder)
    files = [one for one in secrets if one.file]
    if not files:
        return
    os.mkdir(folder, 0o700)
    for one in files:
        _write(folder, one)


def remove(folder: str) -> None:
    """Remove the files. A script may have locked a folder of them for itself: then they are emptied at least."""
    if os.path.islink(folder):
        os.unlink(folder)
        return
    shutil.rmtree(folder, ignore_errors=True)
    for place, _, names in os.walk(folder):
        with contextlib.suppress(OSError):
            os.chmod(place, 0o700)
        for name in names:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(place, name))
    shutil.rmtree(folder, ignore_errors=True)


def _write(folder: str, one: Secret) -> None:
    path, place = inside(folder, one.file), folder
    for part in one.file.split("/")[:-1]:
        place = os.path.join(place, part)
        with contextlib.suppress(FileExistsError):
            os.mkdir(place, 0o700)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(one.value.encode("utf-8"))

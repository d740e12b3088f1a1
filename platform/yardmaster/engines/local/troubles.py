"""What the operating system refuses, said as the errors that an engine may raise."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

from yardmaster.errors import Misconfigured, Unavailable

_FULL = (errno.ENOSPC, errno.EDQUOT)
_NOT_OURS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR)


@contextlib.contextmanager
def translated(root: Path) -> Iterator[None]:
    """Raise `Unavailable` or `Misconfigured` in place of an `OSError` about the engine's files."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise Unavailable(
                f"The disk that holds {root} is full.",
                remedy=f"Free space there; then the same is tried again. ({error})",
            ) from error
        if error.errno in _NOT_OURS:
            raise Misconfigured(
                f"The local engine cannot use {error.filename or root}: {error.strerror}.",
                remedy="Set the option `root` in YARDMASTER_ENGINES to a folder that the portal may write.",
            ) from error
        raise Unavailable(f"The local engine's files under {root} could not be used: {error}") from error

"""The folder that an embedded portal lives in: who may use it now, its secret, and where its sockets go."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import IO


class HomeInUse(Exception):
    """Another portal runs in this home. The message says which process."""


def home_of(environment: Mapping[str, str], root: Path) -> Path:
    """The folder that is meant: the one that is named, else one in the checkout."""
    return Path(environment.get("YARDMASTER_HOME") or root / ".yardmaster").resolve()


def prepare(home: Path) -> None:
    """Make the folder and its secret. Repeating it changes nothing."""
    home.mkdir(parents=True, exist_ok=True)
    home.chmod(0o700)
    for name in ("run", "log"):
        (home / name).mkdir(exist_ok=True)
    key = home / "secret.key"
    if not key.exists():
        draft = key.with_suffix(f".{os.getpid()}")
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(48))
        try:
            os.link(draft, key)  # fails where another process was faster: then its secret counts
        except FileExistsError:
            return
        finally:
            draft.unlink()


def lock(home: Path) -> IO[str]:
    """Hold the home until this process ends, however it ends.

    Raises:
        HomeInUse: another portal holds it.
    """
    file = (home / "run" / "up.lock").open("a+")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.seek(0)
        holder = file.read().strip() or "another process"
        file.close()
        raise HomeInUse(f"A portal already runs in {home} ({holder}). Stop it, or set YARDMASTER_HOME.") from error
    file.truncate(0)
    file.write(f"process {os.getpid()}")
    file.flush()
    return file

"""Where `yardmaster login` keeps the portal's address and the token: one file that only its owner can read."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Credentials:
    url: str
    token: str


def credentials_file() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "yardmaster" / "credentials.json"


def load_credentials() -> Credentials | None:
    """What is stored; None when there is nothing usable."""
    try:
        data = json.loads(credentials_file().read_text())
        return Credentials(str(data["url"]), str(data["token"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def save_credentials(credentials: Credentials) -> Path:
    """Write them so that no other user can read them, not even for a moment; returns the file."""
    file = credentials_file()
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = file.with_suffix(f".{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        json.dump(asdict(credentials), stream)
    draft.replace(file)
    return file


def forget_credentials() -> bool:
    """Whether there was anything to forget."""
    file = credentials_file()
    existed = file.exists()
    file.unlink(missing_ok=True)
    return existed

"""Where logs lie while they are being removed, and what an interrupted removal left there.

Not here: which logs are removed (`LogStore.delete_job`, `yardmaster.logs.expiry`).
"""

from __future__ import annotations

import contextlib
import uuid
from pathlib import Path

_EXPIRED = ".expired"
_SEARCHED = ".searched"
_BEFORE = ".deleted-"


def expired_place(root: Path, name: str) -> Path:
    """A new place for what is being removed of a job that stays. Its folder is made, and what older versions left
    in the root is brought there, once for each root: the root has a folder for each job, too many to look through
    for one job. Raises `OSError`."""
    folder = root / _EXPIRED
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / _SEARCHED).exists():
        for old in root.glob(f"{_BEFORE}*"):
            with contextlib.suppress(FileNotFoundError):  # its job was deleted meanwhile
                old.rename(folder / old.name.removeprefix(_BEFORE))
        (folder / _SEARCHED).touch()
    return folder / f"{name}-{uuid.uuid4().hex}"


def expired(root: Path, name: str) -> list[Path]:
    """What is left to be removed of the job's attempts: a look at the one folder that has nothing else."""
    return list((root / _EXPIRED).glob(f"{name}-*"))


def leftovers(root: Path, name: str) -> list[Path]:
    """What is left to be removed of a job that was deleted."""
    return [*root.glob(f"{_BEFORE}{name}-*"), *expired(root, name)]

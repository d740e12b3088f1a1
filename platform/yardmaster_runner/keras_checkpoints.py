"""What Keras 3 saves in a directory to continue from: the pair of files of `BackupAndRestore`, or the files that a
`ModelCheckpoint` writes. Pure, but for reading.

Keras writes into the files in place. A file that is cut off is told by its own end: HDF5 says how long it is, a ZIP has
its directory there. The backup's metadata are written after its weights.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
import zipfile
from typing import Collection, Iterator, List, Optional, Tuple

METADATA = "training_metadata.json"
WEIGHTS = "latest.weights.h5"
BACKUP = frozenset({METADATA, WEIGHTS, METADATA + ".bkp", WEIGHTS + ".bkp"})
ENDINGS = (".weights.h5", ".keras")
SETTLED = 0.5
EPOCH = re.compile(r"epoch[-_.=]?(\d{1,12})", re.IGNORECASE)
NUMBER = re.compile(r"(?<!\d)(?<!\d\.)\d{1,12}(?!\d|\.\d)")
"""A whole one: in `02-0.76` it is the epoch and not a part of the loss."""
HDF5 = b"\x89HDF\r\n\x1a\n"
HDF5_END = {0: (40, 48), 1: (44, 52), 2: (28, 36), 3: (28, 36)}
"""Where each version of the superblock has the address of the file's end, of eight bytes."""

Files = Tuple[List[str], Optional[int]]


def is_saved(names: Collection[str]) -> bool:
    """Whether any of the names is that of something to continue from, complete or not."""
    return any(name == METADATA or name.endswith(ENDINGS) for name in names)


def complete_in(folder: str, names: Collection[str]) -> Iterator[Files]:
    """The names that belong together, and their step, the newest first. In the directory of a backup it is the backup
    or nothing: a script that makes one continues from nothing else."""
    if METADATA in names or WEIGHTS in names:
        epoch = _epoch_of_backup(folder)
        if epoch is not None:
            yield [METADATA, WEIGHTS], epoch
        return
    for name in sorted((one for one in names if one.endswith(ENDINGS)), key=lambda one: -_modified(folder, one)):
        if _is_whole(os.path.join(folder, name)):
            yield [name], step_of(name)


def step_of(name: str) -> Optional[int]:
    """The epoch, or else the first whole number, in a name that a script has chosen."""
    stem = next(name[: -len(ending)] for ending in ENDINGS if name.endswith(ending))
    match = EPOCH.search(stem)
    if match:
        return int(match.group(1))
    number = NUMBER.search(stem)
    return int(number.group()) if number else None


def remove_torn_backups(log_dir: str) -> None:
    """Remove backups whose weights were cut off while they were written: a script cannot start from them, and Keras has
    kept none before them."""
    for folder, _, names in os.walk(log_dir):
        weights = os.path.join(folder, WEIGHTS)
        if WEIGHTS not in names or WEIGHTS + ".bkp" in names or _is_whole(weights):
            continue
        if time.time() - _modified(folder, WEIGHTS) / 1e9 < SETTLED:
            continue  # another task is writing it
        for name in (WEIGHTS, METADATA):
            if name in names:
                with contextlib.suppress(FileNotFoundError):  # another task that starts now was faster
                    os.unlink(os.path.join(folder, name))


def _epoch_of_backup(folder: str) -> Optional[int]:
    """None: its files do not belong together, or are not complete."""
    if _modified(folder, METADATA) < _modified(folder, WEIGHTS) or not _is_whole(os.path.join(folder, WEIGHTS)):
        return None
    try:
        with open(os.path.join(folder, METADATA), encoding="utf-8") as file:
            epoch = json.load(file)["epoch"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return epoch if isinstance(epoch, int) else None


def _modified(folder: str, name: str) -> int:
    """In nanoseconds; less than any moment where there is no such file."""
    try:
        return os.stat(os.path.join(folder, name)).st_mtime_ns
    except OSError:
        return -1


def _is_whole(path: str) -> bool:
    if path.endswith(".keras"):
        return os.path.isfile(path) and zipfile.is_zipfile(path)
    try:
        with open(path, "rb") as file:
            head = file.read(64)
            size = os.fstat(file.fileno()).st_size
    except OSError:
        return False
    if not head.startswith(HDF5) or len(head) < 64 or head[8] not in HDF5_END:
        return False
    begins, ends = HDF5_END[head[8]]
    return size >= int.from_bytes(head[begins:ends], "little")

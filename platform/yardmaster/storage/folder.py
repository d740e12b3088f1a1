"""File-system steps that `local` is built of: safe paths, durable renames, kinds of OSError.

Not here: keys, parts and addresses.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from yardmaster.errors import Unavailable
from yardmaster.storage.base import CHUNK, KeyRefused, Readable, StorageFull, key_segments, read_chunks

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_RETRIES = 20


@contextlib.contextmanager
def errors_translated(what: str) -> Iterator[None]:
    """OSErrors of the body as the contract's errors. Absence is not translated: callers know what it means."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (NotADirectoryError, IsADirectoryError, FileExistsError) as error:
        raise KeyRefused(
            f"{what}: an object stands where a folder is needed, or a folder where an object is."
        ) from error
    except OSError as error:
        if error.errno in _FULL:
            raise StorageFull(
                f"{what}: the object store is full.",
                remedy="Delete data that you no longer need, or ask an administrator for more storage; then try again.",
            ) from error
        raise Unavailable(f"{what}: the object store answered {error.strerror or error}.") from error


def place_of(root: Path, key: str) -> Path:
    """The key's place below `root` (itself free of links). A link on the way is refused: it could lead anywhere."""
    place = root.joinpath(*key_segments(key))
    if os.path.realpath(place) != str(place):
        raise KeyRefused(f"The key {key!r} leads through a link, which is refused.")
    return place


def write_new(place: Path, data: bytes | Readable, *, durable: bool = True) -> None:
    """Write a file that is not there yet and make it durable; nothing stays behind when that fails."""
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o640)
    try:
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            for chunk in [data] if isinstance(data, bytes) else read_chunks(data, CHUNK):
                write_all(file.fileno(), chunk)
            if durable:
                os.fdatasync(file.fileno())
    except BaseException:
        place.unlink(missing_ok=True)
        raise


def write_all(descriptor: int, data: bytes) -> None:
    """`os.write` until nothing is left."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def move_into(source: Path, target: Path) -> None:
    """Rename `source` over `target` and make the name durable. Folders on the way are made.

    A concurrent `prune` may remove a folder between the steps, so they are tried again a few times. `mkdir` itself has
    two: a folder that is there when it makes it and gone when it looks is a FileExistsError, like a file in its place.
    """
    for attempt in range(_RETRIES):
        try:
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o750)
            os.replace(source, target)
        except (FileNotFoundError, FileExistsError):
            if attempt == _RETRIES - 1 or not source.exists():
                raise
        else:
            break
    with contextlib.suppress(FileNotFoundError):  # another process has deleted the object since, and its folder with it
        sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def prune(folder: Path, root: Path) -> None:
    """Remove `folder` and the ones above it, up to `root`, as far as they are empty."""
    while folder != root and root in folder.parents:
        try:
            folder.rmdir()
        except FileNotFoundError:
            pass  # another process was faster, and may have stopped here: the ones above are for us to look at
        except OSError:
            return  # not empty, or another process is just putting something in
        folder = folder.parent


def unused_name() -> str:
    """A name that no other process makes."""
    return secrets.token_hex(16)


def remove_older(folder: Path, before: float, prefix: str = "") -> None:
    """Remove what lies in the folder under names with this prefix and was made before this time."""
    with contextlib.suppress(FileNotFoundError):
        for entry in os.scandir(folder):
            with contextlib.suppress(FileNotFoundError):
                if not entry.name.startswith(prefix) or entry.stat(follow_symlinks=False).st_ctime >= before:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                else:
                    os.unlink(entry.path)

"""The files that a script writes below its log directory, and which bytes of them are still to be sent. Pure, but for
listing and opening.

Event files only grow: what was added is sent as a new segment. Each segment takes in the earlier ones that are not
larger than itself, so that a file has few segments, each smaller than the one before it, and a byte is sent again only
when its segment at least doubles. Any other file is sent whole when it has changed.

A script may write anything. No link is followed, and nothing but regular files is opened.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass
from typing import Callable, Collection, Dict, Iterable, List, Mapping, Tuple

from yardmaster_runner.checkpoints import OTHERS, SHARD, STATE_FILE
from yardmaster_runner.keras_checkpoints import BACKUP

MOST_FILES = 20_000
MOST_ENTRIES = 200_000
LONGEST_PATH = 512
LONGEST_NAME = 200
SMALL = 8 << 20
"""Bytes up to which a file is copied before it is sent. A larger one is sent from where it is, once it has not changed
for `QUIET` seconds."""
QUIET = 30.0
BATCH_FILES = 500
BATCH_BYTES = 32 << 20

_CHECKPOINT = re.compile(r"\.(index|meta|data-\d{5}-of-\d{5})$|\.tempstate\d+$|\.restoring$")
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\\\\]")


@dataclass(frozen=True)
class OutputFile:
    """A file as it was when it was listed. `path` is relative to the folder, with `/`."""

    path: str
    size: int
    modified: int
    """Nanoseconds."""
    inode: int
    name: str = ""
    """What the portal calls it, where that is not its path."""

    @property
    def stored_as(self) -> str:
        return self.name or self.path

    @property
    def has_events(self) -> bool:
        return has_events(self.path)

    def is_unchanged(self, now: os.stat_result) -> bool:
        """Whether what was listed is still there. Of an event file that may have grown."""
        if now.st_ino != self.inode or not stat.S_ISREG(now.st_mode):
            return False
        if self.has_events:
            return now.st_size >= self.size
        return now.st_size == self.size and now.st_mtime_ns == self.modified


@dataclass(frozen=True)
class Kept:
    """What the portal has of a file: where its segments end, and how the file was then. `inode` 0: not known."""

    ends: Tuple[int, ...]
    modified: int = 0
    inode: int = 0

    @property
    def size(self) -> int:
        return self.ends[-1]


@dataclass(frozen=True)
class Piece:
    """The bytes of a file from `start` to its size, and where its segments end once the portal has them."""

    file: OutputFile
    start: int
    ends: Tuple[int, ...]

    @property
    def length(self) -> int:
        return self.file.size - self.start

    @property
    def is_small(self) -> bool:
        return self.length <= SMALL

    @property
    def kept(self) -> Kept:
        return Kept(self.ends, self.file.modified, self.file.inode)


@dataclass(frozen=True)
class Listing:
    """`left_out`: why some files are not listed; empty: all are."""

    files: List[OutputFile]
    left_out: str = ""


def has_events(path: str) -> bool:
    return "tfevents" in path.rpartition("/")[2]


def _of_checkpoint(path: str, entry: "os.DirEntry[str]") -> bool:
    return is_of_checkpoint(path)


def list_files(
    root: str,
    *,
    passed_by: Collection[str] = (),
    is_other: Callable[[str, "os.DirEntry[str]"], bool] = _of_checkpoint,
) -> Listing:
    """The regular files below `root` that can be sent, without those that are `is_other` (checkpoints, which are kept
    in another way) and without folders of the names `passed_by`."""
    found: List[OutputFile] = []
    folders, entries, unsendable = [""], 0, 0
    while folders:
        below = folders.pop()
        try:
            with os.scandir(os.path.join(root, below)) as listed:
                for entry in listed:
                    entries += 1
                    if entries > MOST_ENTRIES or len(found) >= MOST_FILES:
                        return Listing(found, "there are more than %d files" % MOST_FILES)
                    path = below + "/" + entry.name if below else entry.name
                    if entry.is_dir(follow_symlinks=False):
                        if not (OTHERS.match(entry.name) or entry.name in passed_by or len(path) > LONGEST_PATH):
                            folders.append(path)
                    elif entry.is_file(follow_symlinks=False) and not is_other(path, entry):
                        if is_sendable(path):
                            found.append(_seen(path, entry.stat(follow_symlinks=False)))
                        else:
                            unsendable += 1
        except OSError:
            continue  # removed meanwhile, or not ours to read: perhaps at the next look
    return Listing(found, "%d files have names that cannot be stored" % unsendable if unsendable else "")


def _seen(path: str, state: os.stat_result) -> OutputFile:
    return OutputFile(path, state.st_size, state.st_mtime_ns, state.st_ino)


def is_of_checkpoint(path: str) -> bool:
    """Whether it belongs to a checkpoint. The variables of a SavedModel look the same, but for their folder. The files
    of a Keras `ModelCheckpoint` are outputs as well: people want them by their names."""
    folder, _, name = path.rpartition("/")
    if folder.rpartition("/")[2] == "variables":
        return False
    return name == STATE_FILE or name in BACKUP or bool(_CHECKPOINT.search(name)) or bool(SHARD.search(name))


def is_sendable(path: str) -> bool:
    """Whether the portal takes a file of this path; its own rules are in `yardmaster.storage.paths`."""
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        return False
    return size <= LONGEST_PATH and not _HIDDEN.search(path) and all(map(_is_plain, path.split("/")))


def _is_plain(name: str) -> bool:
    return name == name.strip() and not name.endswith(".") and len(name.encode()) <= LONGEST_NAME


def open_below(root: str, path: str) -> int:
    """A descriptor of the regular file, for reading. Raises OSError where any part of the path is a link now, or it is
    not a regular file: what was listed may have been replaced since."""
    folder_flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    folders, _, name = path.rpartition("/")
    at = os.open(root, folder_flags)
    try:
        for folder in folders.split("/") if folders else ():
            inner = os.open(folder, folder_flags, dir_fd=at)
            os.close(at)
            at = inner
        found = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=at)
    finally:
        os.close(at)
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise OSError("%s is not a regular file" % path)
    return found


def pieces_to_send(files: Iterable[OutputFile], kept: Mapping[str, Kept], quiet_before: int) -> List[Piece]:
    """What the portal lacks: event files first, then small files before large ones. A large file that has changed since
    `quiet_before` (nanoseconds) is left for later."""
    found = []
    for file in files:
        piece = _piece(file, kept.get(file.stored_as))
        if piece is not None and (piece.is_small or file.has_events or file.modified <= quiet_before):
            found.append(piece)
    return sorted(found, key=lambda one: (not one.file.has_events, one.length, one.file.path))


def _piece(file: OutputFile, kept: "Kept | None") -> "Piece | None":
    if kept is None:
        return Piece(file, 0, (file.size,))
    if file.has_events and kept.inode in (0, file.inode) and file.size >= kept.size:
        return _added(file, kept.ends) if file.size > kept.size else None
    if (file.size, file.modified, file.inode) == (kept.size, kept.modified, kept.inode):
        return None
    return Piece(file, 0, (file.size,))


def _added(file: OutputFile, ends: Tuple[int, ...]) -> Piece:
    """The new segment, with the earlier ones that it takes in."""
    before = list(ends)
    start = before[-1]
    while before:
        begins = before[-2] if len(before) > 1 else 0
        if before[-1] - begins > file.size - start:
            break
        start = begins
        before.pop()
    return Piece(file, start, (*before, file.size))


def batches(pieces: Iterable[Piece]) -> List[List[Piece]]:
    """Small pieces together, in their order, and each large one alone."""
    found: List[List[Piece]] = []
    size = 0
    for piece in pieces:
        is_full = not found or len(found[-1]) >= BATCH_FILES or size + piece.length > BATCH_BYTES
        if is_full or not piece.is_small or not found[-1][0].is_small:
            found.append([])
            size = 0
        found[-1].append(piece)
        size += piece.length
    return found


def kept_of(files: Iterable[Mapping[str, object]]) -> Dict[str, Kept]:
    """What the portal says it has of event files. Each counts as one segment."""
    return {str(one["path"]): Kept((int(str(one["size"])),)) for one in files}

"""Checkpoints in a log directory: which are complete, a copy that no longer changes, and putting one back.

Of TensorFlow a directory's `checkpoint` file names the newest; that one is complete when its index and every one of its
data shards are there. What Keras 3 saves has no such file (`keras_checkpoints`). What a job can continue from is the
newest of every directory below the log directory, taken together.

Not here: when and by whom they are uploaded (`keeper`).
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
import uuid
from dataclasses import dataclass
from typing import List, Optional, Tuple

from yardmaster_runner import keras_checkpoints

STATE_FILE = "checkpoint"
NEWEST = re.compile(r'^model_checkpoint_path:\s*"((?:[^"\\]|\\.)*)"', re.MULTILINE)
SHARD = re.compile(r"\.data-(\d{5})-of-(\d{5})$")
STEP = re.compile(r"-(\d+)$")
OTHERS = re.compile(r"^workertemp_\d+")
"""Where a distribution strategy lets the workers save that are not the chief: copies to be thrown away."""
SETTLED = keras_checkpoints.SETTLED


@dataclass(frozen=True)
class Complete:
    """The newest complete checkpoint of one directory. `files` are relative to the log directory."""

    folder: str
    prefix: str
    files: Tuple[str, ...]
    step: Optional[int]
    written: float
    signature: Tuple[Tuple[str, int, int], ...]
    is_rewritten: bool = False
    """Whether the script writes into these files again, instead of replacing them."""


def find_complete(log_dir: str, now: Optional[float] = None) -> List[Complete]:
    """The newest complete checkpoint of every directory below `log_dir`, the latest written last.

    One whose files changed within the last half second is not complete yet.
    """
    found = []
    now = time.time() if now is None else now
    for folder, folders, names in os.walk(log_dir):
        folders[:] = [name for name in folders if not OTHERS.match(name)]
        if STATE_FILE in names:
            found.append(_newest_in(log_dir, folder, names, now))
        saved = keras_checkpoints.complete_in(folder, names)
        ones = (_settled(log_dir, folder, mine[0], mine, step, now, is_rewritten=True) for mine, step in saved)
        found.append(next((one for one in ones if one is not None), None))
    return sorted((one for one in found if one is not None), key=lambda one: one.written)


def _newest_in(log_dir: str, folder: str, names: List[str], now: float) -> Optional[Complete]:
    prefix = newest_prefix(folder)
    if not prefix:
        return None
    shards = [match for match in (SHARD.search(name) for name in names if name.startswith(prefix + ".data-")) if match]
    shards = [match for match in shards if match.string == prefix + match.group(0)]
    wanted = {int(match.group(2)) for match in shards}
    if prefix + ".index" not in names or len(wanted) != 1 or len(shards) != wanted.pop():
        return None
    mine = [prefix + ".index", *(match.string for match in shards), STATE_FILE]
    mine.extend(name for name in (prefix + ".meta",) if name in names)
    step = STEP.search(prefix)
    return _settled(log_dir, folder, prefix, mine, int(step.group(1)) if step else None, now)


def _settled(
    log_dir: str,
    folder: str,
    prefix: str,
    names: List[str],
    step: Optional[int],
    now: float,
    *,
    is_rewritten: bool = False,
) -> Optional[Complete]:
    """These files as they are; None where they still change."""
    try:
        states = [(name, os.stat(os.path.join(folder, name))) for name in sorted(names)]
    except OSError:
        return None  # being replaced by a newer one
    written = max(state.st_mtime for _, state in states)
    if now - written < SETTLED:
        return None
    below = os.path.relpath(folder, log_dir)
    return Complete(
        folder=folder,
        prefix=prefix,
        files=tuple(os.path.normpath(os.path.join(below, name)) for name, _ in states),
        step=step,
        written=written,
        signature=tuple((name, state.st_size, state.st_mtime_ns) for name, state in states),
        is_rewritten=is_rewritten,
    )


def newest_prefix(folder: str) -> str:
    """What the directory's `checkpoint` file names, as a name in that directory; empty where it names none."""
    try:
        with open(os.path.join(folder, STATE_FILE), encoding="utf-8", errors="replace") as file:
            match = NEWEST.search(file.read(1 << 20))
    except OSError:
        return ""
    return os.path.basename(match.group(1)) if match else ""


def snapshot(log_dir: str, found: List[Complete], target: str) -> List[str]:
    """Put what was found into `target`, where it does not change any more; the files' paths below it.

    Hard links where possible: TensorFlow replaces files and does not write into them. Those of Keras are copied. The
    `checkpoint` files are written again, with names instead of absolute paths, so that they are right wherever they are
    put back. Raises OSError when the script has removed or changed a file meanwhile.
    """
    shutil.rmtree(target, ignore_errors=True)
    paths = []
    for one in found:
        for path in one.files:
            copy = os.path.join(target, path)
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            if os.path.basename(path) == STATE_FILE:
                with open(copy, "w", encoding="utf-8") as file:
                    file.write('model_checkpoint_path: "%s"\nall_model_checkpoint_paths: "%s"\n' % ((one.prefix,) * 2))
            else:
                (shutil.copyfile if one.is_rewritten else link_or_copy)(os.path.join(log_dir, path), copy)
            paths.append(path.replace(os.sep, "/"))
        if one.is_rewritten:
            _check_unchanged(one)
    return paths


def _check_unchanged(one: Complete) -> None:
    for name, size, modified in one.signature:
        state = os.stat(os.path.join(one.folder, name))
        if (state.st_size, state.st_mtime_ns) != (size, modified):
            raise OSError("%s was written again" % os.path.join(one.folder, name))


def has_checkpoint(log_dir: str) -> bool:
    """Whether there is any checkpoint to continue from, which must not be touched."""
    return any(STATE_FILE in names or keras_checkpoints.is_saved(names) for _, _, names in os.walk(log_dir))


def put_back(staged: str, log_dir: str, paths: List[str]) -> None:
    """Place a fetched checkpoint into the log directory, the files that name others last, replacing nothing.

    Several tasks may do this at once in a directory they share, and a script may already be writing newer ones.
    """
    for path in sorted(paths, key=lambda path: os.path.basename(path) in (STATE_FILE, keras_checkpoints.METADATA)):
        target = os.path.join(log_dir, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        temporary = "%s.%s.restoring" % (target, uuid.uuid4().hex)
        shutil.copyfile(os.path.join(staged, path), temporary)
        try:
            os.link(temporary, target)
        except FileExistsError:
            continue
        except OSError:  # a file system without links
            if not os.path.lexists(target):
                os.replace(temporary, target)
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)


def link_or_copy(source: str, target: str) -> None:
    """A second name for the file; where there can be none, a file of its own. Raises `FileNotFoundError`."""
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(source, target)

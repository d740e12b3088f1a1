"""Which inputs a task has, found by name; outside a job a folder takes the place of a name."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import List, Optional, Tuple, Union

from yardmaster_runner.data.description import FILE_NAME, LARGEST, BadDescription, Description, from_text

VARIABLE = "YARDMASTER_DATA"
"""Names the file with the task's inputs (`yardmaster_runner.offered` writes it)."""
Share = Union[None, str, Tuple[int, int]]


class DataError(ValueError):
    """The data cannot be read. The message says which file, and what to do. A ValueError, so that TensorFlow passes it
    on as an error that a restart does not cure."""


class DataUnavailable(RuntimeError):
    """The data cannot be had now; a later start may well get it."""


@dataclass(frozen=True)
class Input:
    """One input of the task, or a folder."""

    name: str
    dataset: str
    folder: str
    is_streamed: bool = False
    is_divided: bool = False
    part: Optional[Tuple[int, int]] = None
    """Which part of how many this task has where shards are divided; None for a task that does not train."""
    socket: str = ""
    stream_bytes: int = 0
    is_partial: bool = False
    """Of its shards only this task's part is in the folder; the others can be asked for, as if it was streamed."""
    stands_for: str = ""
    """The `s3://` path whose place it takes."""
    version: str = ""
    """The portal's id of what it is; empty for a folder."""

    @property
    def has_shards_elsewhere(self) -> bool:
        """Whether shards may have to be asked for."""
        return self.is_streamed or self.is_partial

    def part_for(self, share: Share) -> Tuple[int, int]:
        """Which part of how many to read. `share` None: as the job says."""
        if isinstance(share, tuple):
            index, count = share
            if not 0 <= index < count:
                raise DataError("share is %r: expected (index, count) with an index from 0 below the count" % (share,))
            return share
        if share not in (None, "all", "shards"):
            raise DataError('share is %r: expected "all", "shards" or (index, count)' % (share,))
        divided = self.is_divided if share is None else share == "shards"
        return self.part if divided and self.part is not None else (0, 1)


def inputs() -> List[Input]:
    """Those of this task; none outside a job."""
    where = os.environ.get(VARIABLE)
    if not where:
        return []
    with open(where, encoding="utf-8") as file:
        said = json.load(file)
    part = tuple(said["part"]) if said["part"] else None
    return [
        Input(
            one["name"],
            one["dataset"],
            one["folder"],
            one["mode"] == "stream",
            one["share"] == "shards",
            part,
            said["socket"] or "",
            said["stream_bytes"],
            one.get("partial", False),
            one.get("stands_for", ""),
            one.get("version", ""),
        )
        for one in said["inputs"]
    ]


def find(name: str = "") -> Input:
    """The input of this name, else the one whose dataset has it, else the folder at this path. An empty name: the only
    input. Raises `DataError`."""
    known = inputs()
    if not name and len(known) == 1:
        return known[0]
    for attribute in ("name", "dataset"):
        named = [one for one in known if name and getattr(one, attribute) == name]
        if len(named) == 1:
            return named[0]
    if name and os.path.isdir(name):
        return Input("", "", os.path.abspath(name))
    if not known:
        where = "The job has no inputs" if os.environ.get(VARIABLE) else "Outside a job"
        raise DataError("%s: give the path of a folder with %s instead of %r." % (where, FILE_NAME, name))
    names = ", ".join(sorted(repr(one.name or one.dataset) for one in known))
    raise DataError("No input is called %r. This job has: %s." % (name, names))


def path(name: str = "") -> str:
    """The folder of an input, as `--data_dir` gives it. Of an input that is streamed it has everything but the shards.
    Raises `DataError`."""
    return find(name).folder


def describe(name: str = "") -> Description:
    """What a prepared dataset holds: features, splits, classes, counts, statistics. Raises `DataError`."""
    return description_of(find(name))


def description_of(found: Input) -> Description:
    where = os.path.join(found.folder, FILE_NAME)
    try:
        with open(where, encoding="utf-8") as file:
            return from_text(file.read(LARGEST + 1))
    except FileNotFoundError:
        message = "%s has no %s: the dataset is not prepared. Prepare it (a preparation job, or `python -m "
        message += "yardmaster_runner.prepare`), or read its TFRecord files with records()."
        raise DataError(message % (found.folder, FILE_NAME)) from None
    except (OSError, UnicodeDecodeError, BadDescription) as error:
        raise DataError("%s cannot be read: %s" % (where, error)) from error

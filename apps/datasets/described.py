"""The description of a prepared dataset version (`dataset.json`), for its page. The text is users': bounded in
size, and read in a sandboxed process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from apps.buckets.access import PREFIX
from apps.datasets.models import DatasetVersion
from apps.stores import storage
from apps.uploads.versioned.selectors import file_key, files_at
from yardmaster.errors import Unavailable
from yardmaster.sandbox.function import NoResult, Sandbox
from yardmaster.storage.base import ObjectMissing
from yardmaster_runner.data.description import FILE_NAME

LARGEST = 8 << 20
_READER = Sandbox("yardmaster.formats.described:summary", seconds=4)
BAR_WIDTH, BAR_HEIGHT = 4, 40


@dataclass(frozen=True)
class Described:
    """What `yardmaster.formats.described.summary` gives; with a `problem` there are no tables."""

    tables: dict[str, Any]
    problem: str = ""


def description_of(version: DatasetVersion, path: str = "") -> Described | None:
    """With the number of records of the shard at `path`, where it has one. None where the version has no description,
    or a file of that name from elsewhere."""
    file = files_at(version, [FILE_NAME]).get(FILE_NAME)
    if file is None or version.key_prefix.startswith(PREFIX):
        return None  # of a registered bucket nothing is read for a page
    if file.size > LARGEST:
        return Described({}, f"{FILE_NAME} is too large to be shown here. Scripts can read it.")
    try:
        with storage().open_range(file_key(version, FILE_NAME)) as stream:
            text = stream.read(file.size).decode("utf-8", "replace")
        found = _READER.call(text, path, wait=8.0)
    except (ObjectMissing, Unavailable):
        return Described({}, f"{FILE_NAME} could not be read.")
    except NoResult as error:
        words = "Too many descriptions are being read. Reload the page." if error.is_busy else "It is too complex."
        return Described({}, f"{FILE_NAME} could not be read. {words}")
    if not found:
        return None
    if "error" in found:
        return Described({}, f"{FILE_NAME} is not a valid description: {found['error']}")
    for one in found["numbers"]:
        heights = [round(height * BAR_HEIGHT / 100, 1) for height in one["heights"]]
        one["bars"] = [(at * BAR_WIDTH, BAR_HEIGHT - height, height) for at, height in enumerate(heights)]
        one["width"] = len(heights) * BAR_WIDTH
    return Described(found)

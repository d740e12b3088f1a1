"""The results of the tasks of a preparation, or of batch inference, as one `dataset.json`. Each task leaves
`part-<n>.json` beside its shards; they are user-supplied: bounded in size, and merged in a sandboxed process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from apps.errors import Conflict, Unprocessable
from apps.stores import storage
from apps.uploads.file_blocks import files_at
from apps.uploads.models import Upload
from yardmaster.errors import Unavailable
from yardmaster.sandbox.function import NoResult, Sandbox
from yardmaster.storable import storable
from yardmaster.storage.base import key_join
from yardmaster.storage.file_list import ListedFile
from yardmaster_runner.data.description import FILE_NAME

PART_FILES = "part-{}.json"
LARGEST_PART = 16 << 20
LARGEST_SUM = 64 << 20
MOST_RECORDS = 2**53
_MERGER = Sandbox("yardmaster_runner.prepare.merging:merged_texts", seconds=20, memory=1 << 30)


@dataclass(frozen=True)
class Prepared:
    """What is added to the files of the tasks, and what was counted. `words`: the same as a note for the version."""

    files: tuple[tuple[ListedFile, bytes], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    words: str = ""


def prepared_from(uploads: Mapping[str, Upload], done: str) -> Prepared:
    """Raises `Unprocessable` where the results are too large or do not belong together, `Conflict` where one is
    missing."""
    try:
        found = _MERGER.call(_texts(uploads), wait=60.0)
    except NoResult as error:
        if error.is_busy:
            raise Unavailable("Too many descriptions are being merged.") from error
        message = "The results of the tasks could not be merged within the limits of time and memory."
        raise Unprocessable(message, "too_hard", remedy="Use fewer classes or features.") from error
    if found.get("error"):
        raise Unprocessable(str(found["error"])[:500], "bad_results", remedy="Relaunch the preparation.")
    records, skipped = int(found["records"]), int(found["skipped"])
    if not (0 <= records <= MOST_RECORDS and 0 <= skipped <= MOST_RECORDS):
        raise Unprocessable("The results count more records than there can be.", "bad_results")
    content = str(found["text"]).encode()
    file = ListedFile(path=FILE_NAME, size=len(content), sha256=hashlib.sha256(content).hexdigest())
    bad = [storable(str(one)[:500]) for one in found["bad"][:100]]
    words = f"{done}: {records:,} records" + (f", {skipped:,} skipped." if skipped else ".")
    if found["empty"]:
        words += f" No record is in {' or '.join(map(str, found['empty']))}: too few files or rows."
    return Prepared(((file, content),), {"records": records, "skipped": skipped, "bad": bad}, words)


def _texts(uploads: Mapping[str, Upload]) -> list[str]:
    texts, left = [], LARGEST_SUM
    for name, upload in uploads.items():
        path = PART_FILES.format(name.rpartition("-")[2])
        file = files_at(upload.pk, [path]).get(path)
        if file is None:
            raise Conflict(f"{name} has left no {path}.", "part_missing", remedy="Relaunch the preparation.")
        left -= file.size
        if file.size > LARGEST_PART or left < 0:
            message = f"The result of {name} has {file.size:,} bytes: too many."
            raise Unprocessable(message, "too_large", remedy="Use fewer classes or features.")
        with storage().open_range(key_join(upload.key_prefix, path)) as stream:
            texts.append(stream.read(file.size).decode("utf-8", "replace"))
    return texts

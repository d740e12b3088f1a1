"""What a version's files say of themselves: format, framework, signatures. Read once, by a worker, in a sandbox; a
message that was lost is replaced by the sweep.
"""

from __future__ import annotations

import json
import logging
import tempfile
import uuid
from typing import Any, BinaryIO

from apps.dispatch.messages import READ_MODEL, enqueue
from apps.registry.models import ModelVersion
from apps.stores import storage
from apps.uploads.versioned.selectors import file_for, file_key, files_in
from yardmaster.errors import Unavailable
from yardmaster.formats.model_files import FRAMEWORKS, FoundModel, find_model
from yardmaster.sandbox.function import NoResult, Sandbox
from yardmaster.storage.base import ObjectMissing

log = logging.getLogger(__name__)

WHOLE = 64 << 20
"""Bytes of a file up to which all of it is read; of a larger one both ends, between which its weights lie."""
END = 16 << 20
LARGEST = 512 << 10
"""Bytes of what is kept of a version's contents, as JSON."""
AT_ONCE = 20
_PIECE = 1 << 20

READER = Sandbox("yardmaster.formats.model_files:read_model", at_once=1, seconds=20, memory=512 << 20)


def contents_sweep() -> None:
    """Ask for those that have not been read, the oldest first."""
    waiting = ModelVersion.objects.filter(contents__isnull=True).order_by("pk")
    for version_id in waiting.values_list("pk", flat=True)[:AT_ONCE]:
        enqueue(READ_MODEL, version_id)


def contents_read(version_id: uuid.UUID) -> None:
    """Read the version's files and keep what they say. Where the store does not answer, or too many are read already,
    the sweep asks again. Repeats harmlessly."""
    version = ModelVersion.objects.filter(pk=version_id, contents__isnull=True).first()
    if version is None:
        return
    try:
        contents = contents_of(version)
    except Unavailable:
        log.warning("The object store does not answer; model version %s is read later.", version_id, exc_info=True)
        return
    except NoResult:
        return
    ModelVersion.objects.filter(pk=version_id).update(contents=contents)


def contents_of(version: ModelVersion) -> dict[str, Any]:
    """`format`, `path`, `framework`, `framework_version`, `tags`, `signatures` and `problem`. Raises `Unavailable`,
    and `NoResult` where too many are read already."""
    found = find_model(one.path for one in files_in(version))
    known = _contents(found, {})
    if not found.is_read:
        return known
    size = file_for(version, found.path).size
    try:
        with tempfile.NamedTemporaryFile() as copy:
            _copy(file_key(version, found.path), size, copy)  # type: ignore[arg-type]  # the wrapper of a BinaryIO
            read = READER.call(found.format.value, copy.name, wait=40.0)
    except ObjectMissing:
        return known | {"problem": "The file is missing in the object store."}
    except OSError as error:
        return known | {"problem": f"The file cannot be read: {error.strerror}."}
    except NoResult as error:
        if error.is_busy:
            raise
        return known | {"problem": "The file cannot be read within the limits of time and memory."}
    contents = _contents(found, read)
    if len(json.dumps(contents)) > LARGEST:
        return known | {"problem": "Its signatures are too large to be shown."}
    return contents


def _contents(found: FoundModel, read: dict[str, Any]) -> dict[str, Any]:
    return {
        "format": found.format.value,
        "path": found.path,
        "framework": FRAMEWORKS[found.format],
        "framework_version": str(read.get("version", ""))[:100],
        "tags": read.get("tags", []),
        "signatures": read.get("signatures", []),
        "problem": read.get("problem", ""),
    }


def _copy(key: str, size: int, copy: BinaryIO) -> None:
    """The file, or its two ends with a hole between them: as long as the file, and little on the disk."""
    copy.truncate(size)
    ends = [(0, size)] if size <= WHOLE else [(0, END), (size - END, END)]
    for start, length in ends:
        copy.seek(start)
        with storage().open_range(key, start, length) as body:
            while piece := body.read(_PIECE):
                copy.write(piece)
    copy.flush()

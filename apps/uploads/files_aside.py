"""The files of a complete upload, copied out of the database as it packs them, for who reads them while something is
sent: then no connection may be held, and a million files are 70 MB."""

from __future__ import annotations

import struct
import tempfile
import uuid
from collections.abc import Iterator
from typing import cast

from apps.uploads.models import FileBlock
from apps.uploads.selectors import StoredFile
from yardmaster.storage.base import key_join
from yardmaster.storage.file_list import unpack

_IN_MEMORY = 8 << 20
_ROWS = 20
_LENGTH = struct.Struct("<L")


def files_aside(upload_id: uuid.UUID, key_prefix: str) -> Iterator[StoredFile]:
    """The files in their order, which lie below this prefix. The database is read now, and not later."""
    copy = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - closed with the last file, or with the iterator
    rows = FileBlock.objects.filter(upload=upload_id).order_by("number").values_list("packed", flat=True)
    for packed in rows.iterator(chunk_size=_ROWS):
        copy.write(_LENGTH.pack(len(packed)))
        copy.write(packed)
    copy.seek(0)
    files = _read(copy, key_prefix)
    next(files)  # begun: one that no one reads closes the copy, too, when it goes
    return cast(Iterator[StoredFile], files)


def _read(copy: tempfile.SpooledTemporaryFile[bytes], key_prefix: str) -> Iterator[StoredFile | None]:
    """None first, and then the files."""
    with copy:
        yield None
        while length := copy.read(_LENGTH.size):
            for file in unpack(copy.read(_LENGTH.unpack(length)[0])):
                yield StoredFile(file.path, file.size, file.sha256, key_join(key_prefix, file.path))

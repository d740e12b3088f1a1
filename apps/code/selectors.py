"""Which code versions a person may see, their files, and the text of those as far as it may be shown. Reads only."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from apps.accounts.models import User
from apps.code.models import Code, CodeVersion
from apps.stores import storage
from apps.uploads.models import Kind
from apps.uploads.selectors import StoredFile
from apps.uploads.versioned import selectors
from apps.uploads.versioned.selectors import Shelf, file_key
from yardmaster.storage.base import ObjectMissing
from yardmaster.storage.file_list import ListedFile

CODE = Shelf(Kind.CODE, "code", Code, CodeVersion)


LARGEST = 1 << 20
"""Bytes up to which a file is read for showing it."""


@dataclass(frozen=True)
class Source:
    """A file's text with plain line ends, or why there is none to show (`fault`)."""

    text: str = ""
    fault: str = ""


def read_source(version: CodeVersion, file: ListedFile) -> Source:
    """The file's text. Line ends of other systems become plain ones, so that lines count the same everywhere."""
    if file.size > LARGEST:
        return Source(fault="This file is too large to show.")
    try:
        with storage().open_range(file_key(version, file.path)) as stream:
            data = stream.read(file.size)
    except ObjectMissing:
        return Source(fault="The file is missing in the object store. Upload the code again.")
    if b"\0" in data:
        return Source(fault="This file is binary.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return Source(fault="This file is not UTF-8 text.")
    return Source(text.replace("\r\n", "\n").replace("\r", "\n"))


_SOURCE = ".py"


def version_for(user: User, version_id: uuid.UUID) -> CodeVersion:
    """The version, if the user may see it; else 404."""
    return selectors.version_for(CODE, user, version_id)


def files_of(version: CodeVersion) -> list[StoredFile]:
    """Its files, by path."""
    return selectors.files_of(version)


def sources_of(version: CodeVersion, limit_bytes: int) -> dict[str, str]:
    """The text of its Python files, by path, as long as `limit_bytes` last: shallow and small ones come first, so that
    entry points are there whatever lies beside them. What is not UTF-8 has replacement characters."""
    python = [file for file in files_of(version) if file.path.endswith(_SOURCE)]
    sources: dict[str, str] = {}
    for file in sorted(python, key=lambda file: (file.path.count("/"), file.size, file.path)):
        if file.size <= limit_bytes:
            limit_bytes -= file.size
            with storage().open_range(file.key) as stream:
                sources[file.path] = stream.read(file.size).decode("utf-8-sig", "replace")
    return sources

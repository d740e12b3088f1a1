"""The tables of code, and the text of its files as far as it may be shown. Reads only."""

from __future__ import annotations

from dataclasses import dataclass

from apps.code.models import Code, CodeVersion
from apps.stores import storage
from apps.uploads.models import Kind
from apps.uploads.versioned.selectors import VersionStore, file_key
from yardmaster.storage.base import ObjectMissing
from yardmaster.storage.file_list import ListedFile

CODE = VersionStore(Kind.CODE, "code", Code, CodeVersion)


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

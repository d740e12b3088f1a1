"""Lists of files as requests carry them: read file by file, since 16 MiB of other JSON are a gigabyte of objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from apps.api.parsers import check_value
from apps.errors import Invalid, TooLarge
from apps.uploads.announcing import too_many_at_once
from apps.uploads.manifest import FILE_LIST_BYTES, FILES_AT_ONCE
from apps.uploads.serializers import DeclaredFilesField, listed_file
from yardmaster.errors import Problem
from yardmaster.storage.file_list import ListedFile, NotJson, read_object


class FileListParser(BaseParser):
    """A JSON object whose `files` are taken one by one: the first that is none ends the reading, and so does one more
    than a request may announce. Otherwise refuses what `apps.api.parsers.JSONParser` does."""

    media_type = "application/json"

    def parse(
        self, stream: IO[bytes], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        try:
            value = read_object(_Bounded(stream), "files", _file)
        except NotJson as error:
            raise ParseError(f"This is not valid JSON: {error}.") from error
        check_value({name: one for name, one in value.items() if name != "files" or not _is_read(one)})
        return value


def _is_read(files: Any) -> bool:
    return isinstance(files, list) and all(isinstance(one, ListedFile) for one in files)


def _file(index: int, entry: Any) -> ListedFile:
    if index >= FILES_AT_ONCE:
        raise too_many_at_once("more")
    file = listed_file(entry)
    if file is None:
        raise Invalid([Problem(f"files.{index}", "invalid", str(DeclaredFilesField.default_error_messages["entry"]))])
    return file


class _Bounded:
    """The body, as far as it may be long."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._left = FILE_LIST_BYTES

    def read(self, size: int = -1, /) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise TooLarge(f"A request holds at most {FILE_LIST_BYTES} bytes here.", remedy="Send fewer files at once.")
        return data

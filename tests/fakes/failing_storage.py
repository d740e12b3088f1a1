"""An object store whose verbs fail as a test says: busy, away, or full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from yardmaster.storage.base import ByteStream, ObjectStat, Part, Readable
from yardmaster.storage.local import LocalStorage


class FailingStorage(LocalStorage):
    """A folder. A call of a verb raises the next of its `failures`, and works when there are none left."""

    failures: ClassVar[dict[str, list[Exception]]] = {}

    def _fail(self, verb: str) -> None:
        if self.failures.get(verb):
            raise self.failures[verb].pop(0)

    def put(self, key: str, data: bytes | Readable) -> ObjectStat:
        self._fail("put")
        return super().put(key, data)

    def open_range(self, key: str, start: int = 0, length: int | None = None) -> ByteStream:
        self._fail("open_range")
        return super().open_range(key, start, length)

    def multipart_begin(self, key: str, part_size: int) -> str:
        self._fail("multipart_begin")
        return super().multipart_begin(key, part_size)

    def parts(self, key: str, upload_id: str) -> list[Part]:
        self._fail("parts")
        return super().parts(key, upload_id)

    def multipart_complete(self, key: str, upload_id: str, parts: Sequence[Part]) -> ObjectStat:
        self._fail("multipart_complete")
        return super().multipart_complete(key, upload_id, parts)

    def delete_prefix(self, prefix: str) -> None:
        self._fail("delete_prefix")
        super().delete_prefix(prefix)

"""A store in which the keys of one prefix lead to other stores. Those are only read: what lies there belongs to others.

Not here: which stores these are, and with whose keys they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from yardmaster.storage.base import Audience, ByteStream, ObjectStat, Storage

Place = tuple[Storage, str]
"""A store, and the key of an object there."""


class Mounted:
    """`own`, but for keys that begin with `prefix`. `place_of` says where such an object lies; it raises
    `ObjectMissing` where it lies nowhere."""

    def __init__(self, own: Storage, prefix: str, place_of: Callable[[str], Place]) -> None:
        self._own, self._prefix, self._place_of = own, prefix, place_of

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def open_range(self, key: str, start: int = 0, length: int | None = None) -> ByteStream:
        store, name = self._place(key)
        return store.open_range(name, start, length)

    def stat(self, key: str) -> ObjectStat:
        store, name = self._place(key)
        return store.stat(name)

    def read_url(
        self,
        key: str,
        expires: timedelta,
        *,
        filename: str | None = None,
        content_type: str | None = None,
        audience: Audience = Audience.PEOPLE,
    ) -> str:
        store, name = self._place(key)
        return store.read_url(name, expires, filename=filename, content_type=content_type, audience=audience)

    def list_prefix(self, prefix: str, first: str = "") -> Iterator[ObjectStat]:
        return iter(()) if prefix.startswith(self._prefix) else self._own.list_prefix(prefix, first)

    def delete(self, key: str) -> None:
        if not key.startswith(self._prefix):
            self._own.delete(key)

    def delete_prefix(self, prefix: str) -> None:
        if not prefix.startswith(self._prefix):
            self._own.delete_prefix(prefix)

    def _place(self, key: str) -> Place:
        return self._place_of(key) if key.startswith(self._prefix) else (self._own, key)

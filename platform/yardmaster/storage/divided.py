"""A store in which keys of one prefix lie in another store, which is the portal's, too.

Not here: buckets of others, which are only read (`mounted`), and which objects lie where.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

from yardmaster.errors import Unavailable
from yardmaster.storage.base import (
    Audience,
    ByteStream,
    ObjectStat,
    Part,
    PortalServed,
    Readable,
    SignedRequest,
    Storage,
)
from yardmaster.storage.signing import AddressBook, PartGrant


class Divided:
    """`own`, but for keys that begin with `prefix`: those are of `other`, with all of their name. `setting` names what
    is missing where there is no other store; verbs for those keys then raise `Unavailable`."""

    def __init__(self, own: Storage, prefix: str, other: Storage | None, setting: str) -> None:
        self._own, self._prefix, self._other, self._setting = own, prefix, other, setting

    def put(self, key: str, data: bytes | Readable) -> ObjectStat:
        return self._of(key).put(key, data)

    def open_range(self, key: str, start: int = 0, length: int | None = None) -> ByteStream:
        return self._of(key).open_range(key, start, length)

    def stat(self, key: str) -> ObjectStat:
        return self._of(key).stat(key)

    def copy(self, source: str, target: str) -> ObjectStat:
        place, new_place = self._of(source), self._of(target)
        if place is new_place:
            return place.copy(source, target)
        with place.open_range(source) as data:
            return new_place.put(target, data)

    def move(self, source: str, target: str) -> ObjectStat:
        place = self._of(source)
        if place is self._of(target):
            return place.move(source, target)
        moved = self.copy(source, target)
        place.delete(source)
        return moved

    def delete(self, key: str) -> None:
        self._of(key).delete(key)

    def delete_prefix(self, prefix: str) -> None:
        self._of(prefix).delete_prefix(prefix)

    def list_prefix(self, prefix: str, first: str = "") -> Iterator[ObjectStat]:
        return self._of(prefix).list_prefix(prefix, first)

    def multipart_begin(self, key: str, part_size: int) -> str:
        return self._of(key).multipart_begin(key, part_size)

    def part_url(
        self,
        key: str,
        upload_id: str,
        part: int,
        *,
        size: int,
        sha256: str,
        expires: timedelta,
        audience: Audience = Audience.PEOPLE,
    ) -> SignedRequest:
        place = self._of(key)
        return place.part_url(key, upload_id, part, size=size, sha256=sha256, expires=expires, audience=audience)

    def object_url(
        self, key: str, *, size: int, sha256: str, expires: timedelta, audience: Audience = Audience.PEOPLE
    ) -> SignedRequest | None:
        return self._of(key).object_url(key, size=size, sha256=sha256, expires=expires, audience=audience)

    def parts(self, key: str, upload_id: str) -> list[Part]:
        return self._of(key).parts(key, upload_id)

    def multipart_complete(self, key: str, upload_id: str, parts: Sequence[Part]) -> ObjectStat:
        return self._of(key).multipart_complete(key, upload_id, parts)

    def multipart_abort(self, key: str, upload_id: str) -> None:
        self._of(key).multipart_abort(key, upload_id)

    def clean_up(self, older_than: timedelta) -> None:
        self._own.clean_up(older_than)
        if self._other is not None:
            self._other.clean_up(older_than)

    def read_url(
        self,
        key: str,
        expires: timedelta,
        *,
        filename: str | None = None,
        content_type: str | None = None,
        audience: Audience = Audience.PEOPLE,
    ) -> str:
        place = self._of(key)
        return place.read_url(key, expires, filename=filename, content_type=content_type, audience=audience)

    def origin(self, audience: Audience) -> str:
        return self._own.origin(audience)

    def prepare(self, prefix: str = "") -> None:
        (self._of(prefix) if prefix else self._own).prepare(prefix)

    @property
    def is_near(self) -> bool:
        return self._own.is_near

    def served(self) -> PortalServed | None:
        """Both stores sign with the portal's key, so the address book of one reads the addresses of the other."""
        own = self._own.served()
        other = self._other.served() if self._other is not None else None
        if own is None or other is None:
            return own or other
        return _Both(own, other, self._prefix)

    def _of(self, key: str) -> Storage:
        if not (key + "/").startswith(self._prefix):
            return self._own
        if self._other is None:
            message = (
                f"This object lies in another store, and the portal does not reach that: {self._setting} is not set."
            )
            raise Unavailable(message, remedy="An administrator sets it again.")
        return self._other


class _Both:
    def __init__(self, own: PortalServed, other: PortalServed, prefix: str) -> None:
        self._own, self._other, self._prefix = own, other, prefix

    @property
    def addresses(self) -> AddressBook:
        return self._own.addresses

    def part_write(self, grant: PartGrant, data: Readable) -> str:
        return (self._other if grant.key.startswith(self._prefix) else self._own).part_write(grant, data)

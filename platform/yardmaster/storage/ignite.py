"""Objects in Apache Ignite, in its key-value caches, which the portal reaches over the thin client protocol. The portal
serves its signed addresses itself: who has one needs no way to Ignite.

An object is a row, and pieces of 1 MiB that the row refers to (`ignite_rows`, `ignite_pieces`). The row is written
last, so the object is seen whole or not at all. Before pieces are written, and before an object is released, they are
noted as loose; `clean_up` removes those that an interruption has left behind.
"""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from yardmaster.errors import Unavailable
from yardmaster.ids import new_id
from yardmaster.storage.base import (
    MAX_PART_SIZE,
    Audience,
    ByteStream,
    ObjectMissing,
    ObjectStat,
    Part,
    PortalServed,
    Readable,
    SignedRequest,
    key_segments,
)
from yardmaster.storage.ignite_link import Link, access_of
from yardmaster.storage.ignite_pieces import Pieces
from yardmaster.storage.ignite_rows import Extent, LooseRow, ObjectRow, Rows, now_ms
from yardmaster.storage.ignite_uploads import Uploads
from yardmaster.storage.signing import AddressBook, PartGrant, ReadGrant
from yardmaster_runner.data.ignite_reader.connection import Connection

_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,39}")
_REGION = re.compile(r"[A-Za-z0-9_.-]{0,60}")
_MOST_BACKUPS = 3
_TRIES = 20
"""To write an object while others write it, too."""


class IgniteStorage:
    """`Storage` in the cluster at `hosts`, in tables and a cache whose names begin with `name`. `backups`: copies of
    everything on other nodes; `region`: the data region that holds it, where that is not the default one.

    `base_url`, `task_url` and `signing_key` as in `LocalStorage`."""

    def __init__(
        self,
        hosts: str,
        *,
        base_url: str,
        signing_key: str,
        task_url: str = "",
        username: str = "",
        password_file: str = "",
        certificate_file: str = "",
        name: str = "YARDMASTER",
        backups: int = 1,
        region: str = "",
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not _NAME.fullmatch(name):
            raise ValueError(f"the name {name!r} has other characters than A to Z, 0 to 9 and _, or too many")
        if not _REGION.fullmatch(region):
            raise ValueError(f"the region {region!r} is no name of a data region")
        if not 0 <= backups <= _MOST_BACKUPS:
            raise ValueError(f"there are 0 to {_MOST_BACKUPS} backups, not {backups}")
        self._rows, self._pieces = Rows(name, backups, region), Pieces(name, backups, region)
        self._link = Link(access_of(hosts, username, password_file, certificate_file), self._make)
        self._rows.link = self._pieces.link = self._link
        self._uploads = Uploads(self._rows, self._pieces, self._placed)
        self._seen_from = {
            Audience.PEOPLE: base_url.rstrip("/"),
            Audience.TASKS: (task_url or base_url).rstrip("/"),
        }
        self.addresses = AddressBook(signing_key, clock)

    def close(self) -> None:
        """End the connections that are kept."""
        self._link.close()

    # --- Objects ---------------------------------------------------------------------------------------------------

    def put(self, key: str, data: bytes | Readable) -> ObjectStat:
        return self._put(key, io.BytesIO(data) if isinstance(data, bytes) else data)

    def open_range(self, key: str, start: int = 0, length: int | None = None) -> ByteStream:
        if start < 0 or (length is not None and length < 0):
            raise ValueError("a range begins at 0 or later and has 0 or more bytes")
        row = self._row(key)
        length = row.size if length is None else length
        while not self._pieces.are_whole(row.extents, start, length):
            was, row = row.id, self._row(key)
            if row.id == was:
                raise ObjectMissing(
                    f"The object {key!r} is damaged: nodes of Ignite with the only copy of a part of it have ended.",
                    remedy="Continue from an earlier checkpoint. More backups keep objects when nodes end.",
                )
        return self._pieces.read(row.extents, start, length)

    def stat(self, key: str) -> ObjectStat:
        return _stat(self._row(key))

    def copy(self, source: str, target: str) -> ObjectStat:
        row = self._row(source)
        with self.open_range(source) as data:
            return self._put(target, data, row.sha256)

    def move(self, source: str, target: str) -> ObjectStat:
        # Two rows must not refer to the same pieces, so the bytes are copied.
        key_segments(target)
        try:
            moved = self.copy(source, target)
        except ObjectMissing:
            return self.stat(target)
        self.delete(source)
        return moved

    def delete(self, key: str) -> None:
        key_segments(key)
        if (row := self._rows.object_of(key)) is not None:
            self._release(row)

    def delete_prefix(self, prefix: str) -> None:
        key_segments(prefix)
        for found in self._rows.objects_below(prefix):
            self.delete(found.key)

    def list_prefix(self, prefix: str, first: str = "") -> Iterator[ObjectStat]:
        key_segments(prefix)
        return (_stat(one) for one in self._rows.objects_below(prefix, first) if one.key >= first)

    # --- Uploads in parts ------------------------------------------------------------------------------------------

    def multipart_begin(self, key: str, part_size: int) -> str:
        key_segments(key)
        if not 0 < part_size <= MAX_PART_SIZE:
            raise ValueError(f"a part has 1 to {MAX_PART_SIZE} bytes, not {part_size}")
        return self._uploads.begin(key, part_size)

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
        address = self.addresses.part_address(PartGrant(key, upload_id, part, size, sha256), expires)
        return SignedRequest("PUT", f"{self._seen_from[audience]}{address}")

    def part_write(self, grant: PartGrant, data: Readable) -> str:
        return self._uploads.write(grant, data)

    def object_url(
        self, key: str, *, size: int, sha256: str, expires: timedelta, audience: Audience = Audience.PEOPLE
    ) -> None:
        return None  # parts are as quick here, and end with their upload

    def parts(self, key: str, upload_id: str) -> list[Part]:
        return self._uploads.parts(key, upload_id)

    def multipart_complete(self, key: str, upload_id: str, parts: Sequence[Part]) -> ObjectStat:
        key_segments(key)
        return _stat(self._uploads.complete(key, upload_id, parts))

    def multipart_abort(self, key: str, upload_id: str) -> None:
        self._uploads.abort(key, upload_id)

    def clean_up(self, older_than: timedelta) -> None:
        before = now_ms() - int(older_than.total_seconds() * 1000)
        while rows := self._rows.loose_before(before):
            for row in rows:
                self._uploads.loose_end(row)
        self._uploads.clean_up(before)

    # --- Addresses -------------------------------------------------------------------------------------------------

    def read_url(
        self,
        key: str,
        expires: timedelta,
        *,
        filename: str | None = None,
        content_type: str | None = None,
        audience: Audience = Audience.PEOPLE,
    ) -> str:
        grant = ReadGrant(key, filename or "", content_type or "")
        return f"{self._seen_from[audience]}{self.addresses.read_address(grant, expires)}"

    def origin(self, audience: Audience) -> str:
        return self._seen_from[audience]

    def prepare(self, prefix: str = "") -> None:
        self._link.make()

    @property
    def is_near(self) -> bool:
        return False

    def served(self) -> PortalServed:
        return self

    # ---------------------------------------------------------------------------------------------------------------

    def _make(self, connection: Connection) -> None:
        self._pieces.make(connection)
        self._rows.make(connection)

    def _row(self, key: str) -> ObjectRow:
        key_segments(key)
        if (row := self._rows.object_of(key)) is None:
            raise ObjectMissing(f"There is no object {key!r}.")
        return row

    def _put(self, key: str, data: Readable, sha256: str = "") -> ObjectStat:
        key_segments(key)
        made = new_id().hex

        def reserve(size: int) -> None:
            self._rows.loose_set(LooseRow(made, key, made, (Extent(made, size),)))

        try:
            size = self._pieces.write(made, data, reserve)
            extents = (Extent(made, size),) if size else ()
            row = self._placed(ObjectRow(key, made, size, now_ms(), sha256, extents))
        except BaseException:
            with suppress(Unavailable):  # what is left of it `clean_up` finds
                self._uploads.loose_end_of(made)
            raise
        self._rows.loose_drop(made)
        return _stat(row)

    def _placed(self, new: ObjectRow) -> ObjectRow:
        """Show the object, and release the one in whose place it is."""
        for _ in range(_TRIES):
            old = self._rows.object_of(new.key)
            if old is not None and old.id == new.id:
                return old  # another one, or an earlier try, was faster
            if old is not None:
                self._rows.loose_set(LooseRow(old.id, old.key, old.id, old.extents))
            if self._rows.object_set(new, old):
                if old is not None:
                    self._pieces.remove(old.extents)
                    self._rows.loose_drop(old.id)
                return new
        raise Unavailable(f"The object {new.key!r} is being written by others.", remedy="Try again in a moment.")

    def _release(self, row: ObjectRow) -> None:
        self._rows.upload_forget(row.id)  # where its upload's end was interrupted, it must not come back
        self._rows.loose_set(LooseRow(row.id, row.key, row.id, row.extents))
        self._rows.object_drop(row)
        self._pieces.remove(row.extents)
        self._rows.loose_drop(row.id)


def _stat(row: ObjectRow) -> ObjectStat:
    return ObjectStat(row.key, row.size, row.id, datetime.fromtimestamp(row.changed / 1000, UTC), row.sha256)

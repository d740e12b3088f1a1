"""What the store in Apache Ignite knows of its objects, in three tables: objects, open uploads, and loose pieces.

Each verb changes one row, and where two could change it at once, only if it is still as it was read. A row of an object
is its existence: it is written when all pieces are there. Pieces that no row of an object or an upload refers to yet,
or any more, are in the table of loose ones before they are written or released. So whatever is interrupted, all
pieces are known by name.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from yardmaster.storage.base import Part
from yardmaster.storage.ignite_link import Link
from yardmaster_runner.data.ignite_reader import keyed
from yardmaster_runner.data.ignite_reader.connection import Connection
from yardmaster_runner.data.ignite_reader.errors import ServerRefusal

_TABLES = ("OBJECTS", "UPLOADS", "LOOSE")
_EXTENT = struct.Struct("<16sq")
_PART = struct.Struct("<iq16s32s")
_SECONDS = 20.0
"""After which the server gives up a statement."""
_AT_ONCE = 500
"""Rows that are listed with one statement."""
_FIRST_SURROGATE = "\ud800"
"""Ignite orders texts by their UTF-16: below this character that is the order of their characters."""


@dataclass(frozen=True)
class Extent:
    """The pieces of one writing: their generation (32 hexadecimal digits), and how many bytes they hold."""

    generation: str
    size: int


@dataclass(frozen=True)
class ObjectRow:
    """An object that is there. `id` is another one after each writing."""

    key: str
    id: str
    size: int
    changed: int
    sha256: str
    extents: tuple[Extent, ...]


@dataclass(frozen=True)
class ArrivedPart:
    """A part, and where it lies."""

    number: int
    extent: Extent
    sha256: str

    def part(self) -> Part:
        return Part(self.number, self.extent.size, self.sha256, self.sha256)


@dataclass(frozen=True)
class UploadRow:
    """An upload in parts. `is_closed`: its object is being made, and no part is taken any more."""

    id: str
    key: str
    part_size: int
    version: int
    changed: int
    is_closed: bool
    parts: tuple[ArrivedPart, ...]


@dataclass(frozen=True)
class LooseRow:
    """Pieces of `owner` (the id of an object or an upload of this key) that may be referred to by nothing."""

    id: str
    key: str
    owner: str
    extents: tuple[Extent, ...]


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def caches_of(name: str) -> frozenset[str]:
    """The caches of a store with this name: those of the tables, and that of the pieces (`ignite_pieces`)."""
    return frozenset({*(f"{name}_{one}" for one in _TABLES), f"{name}_PIECES"})


class Rows:
    """The three tables, whose names begin with `name`."""

    def __init__(self, name: str, backups: int, region: str) -> None:
        self._objects, self._uploads, self._loose = (f"{name}_{one}" for one in _TABLES)
        self._backups, self._region = backups, region
        self.link: Link

    def make(self, connection: Connection) -> None:
        """Make the tables that are missing."""
        named = "NAME VARCHAR"
        with_region = f",DATA_REGION={self._region}" if self._region else ""
        for table, columns in (
            (self._objects, "BYTES BIGINT, CHANGED BIGINT, ID VARCHAR, SHA VARCHAR, EXTENTS BINARY"),
            (self._uploads, f"{named}, PART_SIZE BIGINT, VERSION BIGINT, CHANGED BIGINT, CLOSED BIGINT, PARTS BINARY"),
            (self._loose, f"{named}, OWNER VARCHAR, SINCE BIGINT, EXTENTS BINARY"),
        ):  # fmt: skip
            first = "NAME" if table == self._objects else "ID"
            text = (
                f"CREATE TABLE IF NOT EXISTS {table} ({first} VARCHAR PRIMARY KEY, {columns}) WITH "
                f'"TEMPLATE=PARTITIONED,ATOMICITY=ATOMIC,WRITE_SYNCHRONIZATION_MODE=FULL_SYNC,BACKUPS={self._backups},'
                f'CACHE_NAME={table}{with_region},PK_INLINE_SIZE=160"'
            )
            try:
                keyed.statement(connection, text, (), _SECONDS)
            except ServerRefusal as error:
                if "already exists" not in str(error):  # another process was faster
                    raise

    # --- Objects ---------------------------------------------------------------------------------------------------

    def object_of(self, key: str) -> ObjectRow | None:
        text = f"SELECT NAME, ID, BYTES, CHANGED, SHA, EXTENTS FROM {self._objects} WHERE NAME = ?"
        return next((_object(row) for row in self._ask(text, key)), None)

    def objects_below(self, prefix: str, first: str = "") -> Iterator[ObjectRow]:
        """All objects of a folder in Ignite's order of their keys, page by page; without their extents. `first`: only
        those behind it, as far as that order tells."""
        text = (
            f"SELECT NAME, ID, BYTES, CHANGED, SHA FROM {self._objects} WHERE NAME >= ? AND NAME < ? "
            f"ORDER BY NAME LIMIT {_AT_ONCE}"
        )
        begin, end = f"{prefix}/", f"{prefix}0"  # the character after the slash
        if first > begin and max(first) < _FIRST_SURROGATE:
            begin = first
        while True:
            page = self._ask(text, begin, end)
            yield from (_object(row) for row in page)
            if len(page) < _AT_ONCE:
                return
            begin = f"{page[-1][0]}\0"

    def object_set(self, new: ObjectRow, old: ObjectRow | None) -> bool:
        """Write the object in the place of `old`, which was read before. False: something else is there now."""
        values = (new.id, new.size, new.changed, new.sha256, _packed(new.extents))
        if old is None:
            text = f"INSERT INTO {self._objects} (ID, BYTES, CHANGED, SHA, EXTENTS, NAME) VALUES (?, ?, ?, ?, ?, ?)"
            changed = self._changed(text, *values, new.key)
        else:
            text = f"UPDATE {self._objects} SET ID = ?, BYTES = ?, CHANGED = ?, SHA = ?, EXTENTS = ? "
            changed = self._changed(f"{text}WHERE NAME = ? AND ID = ?", *values, new.key, old.id)
        if changed:
            return True
        found = self.object_of(new.key)  # the answer to an earlier try may have been lost
        return found is not None and found.id == new.id

    def object_drop(self, row: ObjectRow) -> None:
        """Forget the object, unless another one has taken its place."""
        self._changed(f"DELETE FROM {self._objects} WHERE NAME = ? AND ID = ?", row.key, row.id)

    # --- Uploads ---------------------------------------------------------------------------------------------------

    def upload_add(self, row: UploadRow) -> None:
        text = f"MERGE INTO {self._uploads} (ID, NAME, PART_SIZE, VERSION, CHANGED, CLOSED, PARTS) VALUES "
        self._ask(f"{text}(?, ?, ?, 0, ?, 0, ?)", row.id, row.key, row.part_size, row.changed, b"")

    def upload_of(self, upload_id: str) -> UploadRow | None:
        text = f"SELECT ID, NAME, PART_SIZE, VERSION, CHANGED, CLOSED, PARTS FROM {self._uploads} WHERE ID = ?"
        return next((_upload(*row) for row in self._ask(text, upload_id)), None)

    def upload_set(self, old: UploadRow, parts: Sequence[ArrivedPart], *, is_closed: bool = False) -> bool:
        """Write the parts, and close it, if the row is still `old`. False: perhaps not done; read it again."""
        text = (
            f"UPDATE {self._uploads} SET VERSION = ?, CHANGED = ?, CLOSED = ?, PARTS = ? WHERE ID = ? AND VERSION = ?"
        )
        packed = b"".join(
            _PART.pack(one.number, one.extent.size, bytes.fromhex(one.extent.generation), bytes.fromhex(one.sha256))
            for one in parts
        )
        changed = (old.version + 1, now_ms(), int(is_closed), packed)
        return self._changed(text, *changed, old.id, old.version) > 0

    def upload_drop(self, row: UploadRow) -> bool:
        """Forget it if it is still as it was read. False: perhaps not done; read it again."""
        return self._changed(f"DELETE FROM {self._uploads} WHERE ID = ? AND VERSION = ?", row.id, row.version) > 0

    def upload_forget(self, upload_id: str) -> None:
        self._ask(f"DELETE FROM {self._uploads} WHERE ID = ?", upload_id)

    def uploads_before(self, before_ms: int) -> list[UploadRow]:
        """Those that have stood still since then, the oldest first."""
        text = f"SELECT ID, NAME, PART_SIZE, VERSION, CHANGED, CLOSED, PARTS FROM {self._uploads} WHERE CHANGED < ? "
        return [_upload(*row) for row in self._ask(f"{text}ORDER BY CHANGED LIMIT {_AT_ONCE}", before_ms)]

    # --- Loose pieces ----------------------------------------------------------------------------------------------

    def loose_set(self, row: LooseRow) -> None:
        text = f"MERGE INTO {self._loose} (ID, NAME, OWNER, SINCE, EXTENTS) VALUES (?, ?, ?, ?, ?)"
        self._ask(text, row.id, row.key, row.owner, now_ms(), _packed(row.extents))

    def loose_drop(self, row_id: str) -> None:
        self._ask(f"DELETE FROM {self._loose} WHERE ID = ?", row_id)

    def loose_of(self, row_id: str) -> LooseRow | None:
        text = f"SELECT ID, NAME, OWNER, EXTENTS FROM {self._loose} WHERE ID = ?"
        return next((_loose(*row) for row in self._ask(text, row_id)), None)

    def loose_before(self, before_ms: int) -> list[LooseRow]:
        """Some that are as old, the oldest first."""
        text = f"SELECT ID, NAME, OWNER, EXTENTS FROM {self._loose} WHERE SINCE < ? ORDER BY SINCE LIMIT {_AT_ONCE}"
        return [_loose(*row) for row in self._ask(text, before_ms)]

    # ---------------------------------------------------------------------------------------------------------------

    def _ask(self, text: str, *values: keyed.Value) -> list[tuple[keyed.Value, ...]]:
        return self.link.run(lambda connection: keyed.statement(connection, text, values, _SECONDS))

    def _changed(self, text: str, *values: keyed.Value) -> int:
        """How many rows a statement has changed; 0 where another change came first."""
        try:
            return int(self._ask(text, *values)[0][0])
        except ServerRefusal as error:
            if any(word in str(error) for word in ("uplicate key", "already in cache", "concurrently")):
                return 0
            raise


def _object(row: Sequence[keyed.Value]) -> ObjectRow:
    """Of a row whose last column, the extents, may be left out."""
    key, row_id, size, changed, sha256, *extents = row
    return ObjectRow(key, row_id, size, changed, sha256 or "", _unpacked(extents[0] if extents else None))


def _upload(
    row_id: str, key: str, part_size: int, version: int, changed: int, closed: int, parts: bytes | None
) -> UploadRow:
    found = tuple(
        ArrivedPart(number, Extent(generation.hex(), size), sha256.hex())
        for number, size, generation, sha256 in _PART.iter_unpack(parts or b"")
    )
    return UploadRow(row_id, key, part_size, version, changed, bool(closed), found)


def with_part(row: UploadRow, part: ArrivedPart) -> tuple[tuple[ArrivedPart, ...], ArrivedPart | None]:
    """The upload's parts with this one, and the one in whose place it is."""
    others = [one for one in row.parts if one.number != part.number]
    replaced = next((one for one in row.parts if one.number == part.number), None)
    return tuple(sorted([*others, part], key=lambda one: one.number)), replaced


def _loose(row_id: str, key: str, owner: str, extents: bytes) -> LooseRow:
    return LooseRow(row_id, key, owner, _unpacked(extents))


def _packed(extents: Sequence[Extent]) -> bytes:
    return b"".join(_EXTENT.pack(bytes.fromhex(one.generation), one.size) for one in extents)


def _unpacked(packed: bytes | None) -> tuple[Extent, ...]:
    return tuple(Extent(generation.hex(), size) for generation, size in _EXTENT.iter_unpack(packed or b""))

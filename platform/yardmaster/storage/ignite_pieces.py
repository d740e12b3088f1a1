"""The bytes of objects in Apache Ignite: pieces of 1 MiB in one cache, under names of their own.

A generation is one writing of bytes; its pieces are `<generation>.0`, `.1`, … Nothing is ever written twice under one
name, but by a try that is repeated. Not here: which generations make up an object (`ignite_rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from yardmaster.errors import Unavailable
from yardmaster.storage.base import Readable
from yardmaster.storage.ignite_link import Link
from yardmaster.storage.ignite_rows import Extent
from yardmaster_runner.data.ignite_reader import keyed, wire
from yardmaster_runner.data.ignite_reader.connection import Connection

PIECE = 1 << 20
"""Bytes of a piece. What is stored already would be read wrongly with another number."""
AHEAD = 4
"""Pieces that are on their way at the same time. So many are in memory for one reader or writer."""
_NAMES_AT_ONCE = 1000
RESERVED_AT_ONCE = 64
"""Pieces that are reserved at once for a writing whose length is not known."""


class Pieces:
    """The cache `name`."""

    def __init__(self, name: str, backups: int, region: str) -> None:
        self._name, self._backups, self._region = f"{name}_PIECES", backups, region
        self._cache = wire.java_hash(self._name)
        self.link: Link

    def make(self, connection: Connection) -> None:
        keyed.cache_make(connection, self._name, self._backups, self._region)

    def write(self, generation: str, data: Readable, reserve: Callable[[int], None] | None = None) -> int:
        """Write all bytes; their number. `reserve` is called before, with a number of bytes that will not be passed
        until it is called again."""
        done = reserved = 0
        pieces = _pieces_of(data)
        while some := list(islice(pieces, AHEAD)):
            if reserve is not None and done + AHEAD > reserved:
                reserved += RESERVED_AT_ONCE
                reserve(reserved * PIECE)
            named = {f"{generation}.{done + at}": piece for at, piece in enumerate(some)}
            self.link.run(lambda connection, named=named: keyed.put_all(connection, self._cache, named))  # type: ignore[misc]
            done += len(some)
            if len(some[-1]) < PIECE:
                return (done - 1) * PIECE + len(some[-1])
        return done * PIECE

    def read(self, extents: Sequence[Extent], start: int, length: int) -> PieceStream:
        return PieceStream(self._get, list(_places(extents, start, length)))

    def are_whole(self, extents: Sequence[Extent], start: int, length: int) -> bool:
        """Whether every piece that these bytes lie in is there."""
        names = [name for name, _, _ in _places(extents, start, length)]
        return all(
            self.link.run(lambda connection, some=some: keyed.are_there(connection, self._cache, some))  # type: ignore[misc]
            for some in _in_steps(names)
        )

    def remove(self, extents: Sequence[Extent]) -> None:
        names = [f"{one.generation}.{at}" for one in extents for at in range(-(-one.size // PIECE))]
        for some in _in_steps(names):
            self.link.run(lambda connection, some=some: keyed.remove_all(connection, self._cache, some))  # type: ignore[misc]

    def _get(self, names: Sequence[str]) -> list[bytes | None]:
        return self.link.run(lambda connection: keyed.get_all(connection, self._cache, names))


Place = tuple[str, int, int]
"""The name of a piece, and from where to where its bytes are wanted."""


class PieceStream:
    """A `ByteStream` of some pieces. Between two reads it holds no connection."""

    def __init__(self, get: Callable[[Sequence[str]], list[bytes | None]], places: list[Place]) -> None:
        self._get = get
        self._places = places[::-1]
        self._ready: list[memoryview] = []

    def read(self, size: int = -1, /) -> bytes:
        """Raises `Unavailable` where a piece is gone: the object was replaced or removed since it was opened."""
        if size < 0:
            return b"".join(iter(lambda: self.read(PIECE), b""))
        if not self._ready:
            self._fetch()
        if not self._ready:
            return b""
        piece = self._ready[-1]
        if len(piece) > size:
            self._ready[-1] = piece[size:]
            return bytes(piece[:size])
        return bytes(self._ready.pop())

    def close(self) -> None:
        self._places, self._ready = [], []

    def __enter__(self) -> PieceStream:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _fetch(self) -> None:
        wanted = [self._places.pop() for _ in range(min(AHEAD, len(self._places)))]
        if not wanted:
            return
        for (name, begin, end), value in zip(wanted, self._get([name for name, _, _ in wanted]), strict=True):
            if value is None or len(value) < end:
                raise Unavailable(
                    f"Reading an object: its piece {name} is not in Ignite any more: it was replaced or removed.",
                    remedy="Read it again.",
                )
            self._ready.insert(0, memoryview(value)[begin:end])


def _places(extents: Sequence[Extent], start: int, length: int) -> Iterator[Place]:
    """Where the bytes from `start` lie, `length` of them, as far as there are so many."""
    end, before = start + length, 0
    for one in extents:
        first, last = max(start - before, 0), min(end - before, one.size)
        if first < last:
            for at in range(first // PIECE, -(-last // PIECE)):
                begin = max(first - at * PIECE, 0)
                yield f"{one.generation}.{at}", begin, min(last - at * PIECE, PIECE)
        before += one.size


def _pieces_of(data: Readable) -> Iterator[bytes]:
    """The bytes in pieces, all of them full but the last; none for no bytes."""
    waiting = bytearray()
    while chunk := data.read(PIECE):
        if not waiting and len(chunk) == PIECE:
            yield chunk
            continue
        waiting += chunk
        while len(waiting) >= PIECE:
            yield bytes(waiting[:PIECE])
            del waiting[:PIECE]
    if waiting:
        yield bytes(waiting)


def _in_steps(names: list[str]) -> Iterator[list[str]]:
    for at in range(0, len(names), _NAMES_AT_ONCE):
        yield names[at : at + _NAMES_AT_ONCE]

"""The files of an upload in blocks of a thousand, one row each: a page of them, one of them or a pass over a million
costs the memory of a few blocks, and a page few statements.

While files are announced, they stand in the order in which they came; of a complete upload, and of one that
`is_sorted`, in the order of their paths. Only then they can be found by path.
"""

from __future__ import annotations

import uuid
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TypeVar

from django.db.models import BinaryField, F, QuerySet, Subquery
from django.db.models.functions import Coalesce, Substr

from apps.uploads.models import FileBlock
from yardmaster.storage.file_list import ListedFile, noteworthy, pack, unpack

BLOCK = 1_000
_AT_ONCE = 8
"""Blocks that are read with one statement: about a megabyte."""
_WRITTEN_AT_ONCE = 20
T = TypeVar("T")


def manifest_of(upload_id: uuid.UUID, first_block: int = 0) -> Iterator[ListedFile]:
    """The files in their order, from a block on, read as they are needed."""
    return chain.from_iterable(_forward(upload_id, first_block))


def block_of(upload_id: uuid.UUID, number: int) -> Sequence[ListedFile]:
    """The files of one block; none where there is no such block."""
    return next(_files(_rows(upload_id).filter(number=number)), ())


def blocks_of(upload_id: uuid.UUID, indexes: Iterable[int]) -> dict[int, Sequence[ListedFile]]:
    """The blocks, by number, that hold the files with these numbers. One statement."""
    numbers = {index // BLOCK for index in indexes}
    return {number: unpack(packed) for number, packed in packed_numbered(upload_id, numbers).items()}


def packed_numbered(upload_id: uuid.UUID, numbers: Collection[int], first_bytes: int | None = None) -> dict[int, bytes]:
    """These blocks as they are stored, by number; of each so many bytes, or all. One statement."""
    packed = Substr("packed", 1, first_bytes, output_field=BinaryField()) if first_bytes else F("packed")
    rows = _rows(upload_id).filter(number__in=numbers).values_list("number", packed)
    return {number: bytes(found) for number, found in rows}


def block_index(upload_id: uuid.UUID, start: str, stop: str) -> list[tuple[int, bytes, int]]:
    """Of each block that may hold a path from `start` up to `stop` (empty: to the end) its number, its first path, as
    the database compares it, and the bytes of its files. One statement."""
    rows = _rows(upload_id)
    before = rows.filter(first_path__lt=_raw(start)).order_by("-first_path").values("number")[:1]
    wanted = rows.filter(number__gte=Coalesce(Subquery(before), 0)).order_by("number")
    if stop:
        wanted = wanted.filter(first_path__lt=_raw(stop))
    return [(number, bytes(path), size) for number, path, size in wanted.values_list("number", "first_path", "size")]


def manifest_append(upload_id: uuid.UUID, count: int, files: Iterable[ListedFile]) -> None:
    """Put files behind the `count` that there are. Holds the upload's row, or makes it."""
    number, taken = divmod(count, BLOCK)
    _write(upload_id, chain(block_of(upload_id, number)[:taken] if taken else (), files), number)


def manifest_replace(upload_id: uuid.UUID, files: Iterable[ListedFile]) -> tuple[int, int]:
    """The files as they are now; how many, and their bytes. They may be read from here meanwhile, as long as none is
    added. Belongs into the transaction that says so."""
    blocks, count, size = _write(upload_id, files)
    _rows(upload_id).filter(number__gte=blocks).delete()
    return count, size


def noteworthy_of(upload_id: uuid.UUID) -> Iterator[ListedFile]:
    """The files whose records were counted, or in which a fault was found, in their order."""
    return chain.from_iterable(noteworthy(packed) for packed in packed_blocks(upload_id))


def packed_blocks(upload_id: uuid.UUID, behind: str = "") -> Iterator[bytes]:
    """The blocks as they are stored; with a path, from the one on that holds what follows it."""
    block = _holding(upload_id, behind) if behind else None
    first = block.number if block else 0
    while True:
        rows = _rows(upload_id).filter(number__gte=first, number__lt=first + _AT_ONCE).order_by("number")
        found = list(rows.values_list("packed", flat=True))
        yield from map(bytes, found)
        if len(found) < _AT_ONCE:
            return
        first += _AT_ONCE


def files_after(upload_id: uuid.UUID, path: str) -> Iterator[ListedFile]:
    """The files behind this path (empty: all), in the order of their paths."""
    block = _holding(upload_id, path) if path else None
    if block is None:
        yield from manifest_of(upload_id)
        return
    files = unpack(bytes(block.packed))
    yield from map(files.__getitem__, range(bisect_right(files.paths, path), len(files)))
    yield from manifest_of(upload_id, block.number + 1)


def files_before(upload_id: uuid.UUID, path: str) -> Iterator[ListedFile]:
    """The files before this path, the last first."""
    block = _holding(upload_id, path)
    if block is None:
        return
    files = unpack(bytes(block.packed))
    yield from map(files.__getitem__, reversed(range(bisect_left(files.paths, path))))
    for number in range(block.number - 1, -1, -1):
        yield from reversed(block_of(upload_id, number))


def files_at(upload_id: uuid.UUID, paths: Collection[str]) -> dict[str, ListedFile]:
    """Several files by their paths; those that the upload has not are left out. At most two statements."""
    wanted = set(paths)
    if not wanted:
        return {}
    if len(wanted) == 1:
        blocks = [_holding(upload_id, next(iter(wanted)))]
    else:
        index = list(_rows(upload_id).order_by("number").values_list("first_path", flat=True))
        firsts = [bytes(path) for path in index]
        numbers = {bisect_right(firsts, _raw(path)) - 1 for path in wanted}
        blocks = list(_rows(upload_id).filter(number__in=numbers))
    found: dict[str, ListedFile] = {}
    for block in filter(None, blocks):
        files = unpack(bytes(block.packed))
        found |= {path: files[at] for at, path in enumerate(files.paths) if path in wanted}
    return {path: found[path] for path in paths if path in found}


def last_path(upload_id: uuid.UUID, count: int) -> str:
    """The path of the last of `count` files."""
    return block_of(upload_id, (count - 1) // BLOCK)[(count - 1) % BLOCK].path


def _forward(upload_id: uuid.UUID, first: int) -> Iterator[Sequence[ListedFile]]:
    """Block by block; one at first, since most readers stop soon. All but the last are full."""
    step = 1
    while True:
        rows = _rows(upload_id).filter(number__gte=first, number__lt=first + step).order_by("number")
        found = list(rows.values_list("packed", flat=True))
        files: Sequence[ListedFile] = ()
        for packed in found:
            files = unpack(bytes(packed))
            yield files
        if len(found) < step or len(files) < BLOCK:
            return
        first, step = first + step, min(2 * step, _AT_ONCE)


def _files(rows: QuerySet[FileBlock]) -> Iterator[Sequence[ListedFile]]:
    return (unpack(bytes(packed)) for packed in rows.values_list("packed", flat=True))


def _holding(upload_id: uuid.UUID, path: str) -> FileBlock | None:
    """The block that holds the path if any does; None: it would stand before the first."""
    return _rows(upload_id).filter(first_path__lte=_raw(path)).order_by("-first_path").first()


def _write(upload_id: uuid.UUID, files: Iterable[ListedFile], first: int = 0) -> tuple[int, int, int]:
    """Write blocks from this number on: the number of the block behind them, how many files they hold, and bytes."""
    number, count, size = first, 0, 0
    for blocks in _batched(_batched(files, BLOCK), _WRITTEN_AT_ONCE):
        rows = [
            FileBlock(
                upload_id=upload_id, number=number + at, first_path=_raw(block[0].path), packed=pack(block),
                size=sum(file.size for file in block),
            )
            for at, block in enumerate(blocks)
        ]  # fmt: skip
        FileBlock.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["upload", "number"],
            update_fields=["first_path", "packed", "size"],
        )  # fmt: skip
        number += len(blocks)
        count += sum(map(len, blocks))
        size += sum(row.size for row in rows)
    return number, count, size


def _batched(items: Iterable[T], most: int) -> Iterator[tuple[T, ...]]:
    source = iter(items)
    while batch := tuple(islice(source, most)):
        yield batch


def _rows(upload_id: uuid.UUID) -> QuerySet[FileBlock]:
    return FileBlock.objects.filter(upload=upload_id)


def _raw(path: str) -> bytes:
    """As the database compares it: in the order of the characters, whatever its collation."""
    return path.encode("utf-8", "surrogatepass")

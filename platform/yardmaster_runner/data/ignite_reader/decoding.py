"""Rows of a page as columns: every field of all rows at once, without a Python object per row.

The page is viewed as numbers that begin at every single byte: taking from that view at the places of a field gives the
field of all rows. Where a field lies in an object is said by the object's schema and by the offsets at its end; rows
with the same schema and the same flags are taken together.

    places of objects ─▶ their schemas ─▶ places of fields ─▶ numbers, or lengths and bytes
"""

from __future__ import annotations

from typing import Any, Dict, Sequence

import numpy as np

from yardmaster_runner.data.ignite_reader import wire
from yardmaster_runner.data.ignite_reader.binary_types import HAS_SCHEMA, BinaryTypes, id_width, offset_width
from yardmaster_runner.data.ignite_reader.columns import Column, Columns, Ragged, Text, copied, empty, splits_of
from yardmaster_runner.data.ignite_reader.errors import IgniteNullError, IgniteShapeError, IgniteTypeError
from yardmaster_runner.data.ignite_reader.layout import ARRAY, NOTHING, SCALAR, TEXT, Leaf, Node, Tree, leaves
from yardmaster_runner.data.ignite_reader.rows import strings_at

NOWHERE = -1
"""The place of what is not there: a null, or a field that the row's schema does not have."""
SHORT = 48
"""Bytes of a text or an array up to which they are gathered one by one; longer ones are copied each."""
OFFSETS = {1: "u1", 2: "<u2", 4: "<i4"}


class Page:
    """The bytes of one answer, and views of them as numbers that begin at every byte."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self._views: Dict[str, Any] = {}

    def numbers(self, dtype: str) -> Any:
        found = self._views.get(dtype)
        if found is None:
            kind = np.dtype(dtype)
            count = max(0, len(self.data) - kind.itemsize + 1)
            found = self._views[dtype] = np.ndarray((count,), kind, self.data, 0, (1,))
        return found

    def at(self, dtype: str, places: Any) -> Any:
        return self.numbers(dtype)[places]

    def blocks(self, starts: Any, count: int, dtype: str = "u1") -> Any:
        """`count` numbers from each of the places on, as rows of an array: of this page itself where they are most of
        it, else copied."""
        kind = np.dtype(dtype)
        size = count * kind.itemsize
        steps = np.diff(starts)
        if size and len(starts) and (not len(steps) or (steps == steps[0]).all()):
            step = int(steps[0]) if len(steps) else size
            even = np.ndarray((len(starts), count), kind, self.data, int(starts[0]), (step, kind.itemsize))
            return even if 2 * size * len(starts) >= len(self.data) else copied(even)
        found = empty((len(starts), size), np.uint8)
        if not size or not len(starts):
            pass
        elif size <= SHORT:
            found[...] = self.numbers("u1")[starts[:, None] + np.arange(size)]
        else:
            for row, start in zip(found, starts.tolist()):
                row[:] = np.frombuffer(self.data, np.uint8, size, start)
        return found.reshape(-1).view(kind).reshape(len(starts), count)

    def pieces(self, starts: Any, counts: Any, dtype: str = "u1") -> Any:
        """So many numbers from each of the places on, all behind each other; where all are as many, as `blocks`."""
        if len(counts) and (counts == counts[0]).all():
            return self.blocks(starts, int(counts[0]), dtype)
        kind = np.dtype(dtype)
        sizes = counts.astype(np.int64) * kind.itemsize
        splits = splits_of(sizes)
        total = int(splits[-1])
        if total <= SHORT * len(sizes):
            found = self.numbers("u1")[np.repeat(starts - splits[:-1], sizes) + np.arange(total)]
            return found.view(kind)
        found = empty((total,), np.uint8)
        target, data = memoryview(found), self.data
        for start, at, size in zip(starts.tolist(), splits.tolist(), sizes.tolist()):
            target[at : at + size] = data[start : start + size]
        return found.view(kind)


class Decoder:
    """Decodes pages by a layout. Safe to use from several threads."""

    def __init__(self, layout: Tree, types: BinaryTypes, where: str) -> None:
        self._layout = layout
        self._types = types
        self._where = where
        self.leaves = list(leaves(layout))

    def columns(self, data: memoryview, places: Dict[str, Any]) -> Columns:
        """The columns of the rows whose values lie at these places, by the name of each column. Long ones may
        be views of `data`. Raises `IgniteTypeError`, `IgniteNullError`, `IgniteShapeError`."""
        page = Page(data)
        made: Columns = []
        for name, node in self._layout.fields.items():
            self._decode(page, node, places[name], made)
        return made

    def _decode(self, page: Page, node: Node, at: Any, made: Columns) -> None:
        at = self._resolved(page, at)
        if isinstance(node, Leaf):
            made.append(self._leaf(page, node, at))
            return
        for name, places in self._field_places(page, node, at).items():
            self._decode(page, node.fields[name], places, made)

    def _resolved(self, page: Page, at: Any) -> Any:
        """The places of what is wrapped or referred to, and `NOWHERE` for nulls."""
        codes = page.at("u1", at)
        if len(codes) and codes[0] not in (wire.WRAPPED, wire.HANDLE, wire.NULL) and (codes == codes[0]).all():
            return at if at.min() >= 0 else np.where(at < 0, NOWHERE, at)
        there = at >= 0
        wrapped, referred = there & (codes == wire.WRAPPED), there & (codes == wire.HANDLE)
        if wrapped.any():
            lengths = page.at("<i4", np.where(wrapped, at + 1, 0))
            inside = page.at("<i4", np.where(wrapped, at + 5 + lengths, 0))
            at = np.where(wrapped, at + 5 + inside, at)
        if referred.any():
            at = np.where(referred, at - page.at("<i4", np.where(referred, at + 1, 0)), at)
        return np.where(~there | (codes == wire.NULL), NOWHERE, at)

    def _field_places(self, page: Page, tree: Tree, at: Any) -> Dict[str, Any]:
        """Where the wanted fields of the objects lie."""
        there = at >= 0
        objects = at if there.all() else at[there]
        if not len(objects):
            return {name: np.full(len(at), NOWHERE, np.int64) for name in tree.fields}
        self._check_type(page, tree, objects)
        flags, schemas = page.at("<i2", objects + 2), page.at("<i4", objects + 16)
        footers = objects + page.at("<i4", objects + 20)
        if (schemas == schemas[0]).all() and (flags == flags[0]).all():
            found = self._places_by(page, tree, objects, footers, int(flags[0]), int(schemas[0]))
        else:
            found = {name: np.full(len(objects), NOWHERE, np.int64) for name in tree.fields}
            for key in np.unique(schemas.astype(np.int64) << 16 | flags):
                chosen = np.nonzero((schemas == key >> 16) & (flags == key & 0xFFFF))[0]
                some = self._places_by(
                    page, tree, objects[chosen], footers[chosen], int(key & 0xFFFF), int(schemas[chosen[0]])
                )
                for name, places in some.items():
                    found[name][chosen] = places
        return found if objects is at else {name: _spread(places, there) for name, places in found.items()}

    def _places_by(self, page: Page, tree: Tree, objects: Any, footers: Any, flags: int, schema: int) -> Dict[str, Any]:
        """The same where all objects have one schema and the same flags."""
        order = self._types.fields_of(tree.type_id, schema) if flags & HAS_SCHEMA else ()
        width, extra = offset_width(flags), id_width(flags)
        found = {}
        for name, number in tree.field_ids.items():
            if number in order:
                place = order.index(number) * (width + extra) + extra
                found[name] = objects + page.at(OFFSETS[width], footers + place)
            else:
                found[name] = np.full(len(objects), NOWHERE, np.int64)
        return found

    def _check_type(self, page: Page, tree: Tree, objects: Any) -> None:
        wrong = page.at("u1", objects) != wire.OBJECT
        if wrong.any():
            code = int(page.at("u1", objects[wrong][:1])[0])
            self._differs(tree.path, "an object of the type %s" % tree.type_name, "a %s" % wire.name_of(code))
        ids = page.at("<i4", objects + 4)
        wrong = ids != tree.type_id
        if wrong.any():
            other = self._types.of(int(ids[wrong][0])).name
            self._differs(tree.path, "an object of the type %s" % tree.type_name, "one of %s" % other)

    def _differs(self, path: str, expected: str, found: str) -> None:
        message = (
            "%s: the field %s is %s in the first rows and %s in a later one. Leave it out (fields=…), or read the "
        )
        message += "rows of one type with an SQL query."
        raise IgniteTypeError(message % (self._where, path, expected, found))

    def _leaf(self, page: Page, leaf: Leaf, at: Any) -> Column:
        there = at >= 0
        if there.all():
            return self._values(page, leaf, at)
        if leaf.default is NOTHING:
            zero = b"" if leaf.kind == TEXT else 0 if leaf.kind == SCALAR else ()
            message = "%s: the field %s is null in %d of %d rows. Give a value to replace it: nulls={%r: %r}, or leave "
            message += "the field out (fields=…)."
            raise IgniteNullError(message % (self._where, leaf.path, np.sum(~there), len(at), leaf.path, zero))
        return _with_default(leaf, self._values(page, leaf, at[there]), there)

    def _values(self, page: Page, leaf: Leaf, at: Any) -> Column:
        """The values at places that are all there."""
        codes = page.at("u1", at)
        wrong = codes != leaf.code
        if wrong.any():
            code = int(codes[wrong][0])
            self._differs(leaf.path, "a %s" % wire.name_of(leaf.code), "a %s" % wire.name_of(code))
        if leaf.kind == SCALAR:
            return _scalars(page, leaf, at)
        if leaf.kind == TEXT:
            return _texts(page, leaf, at)
        counts = page.at("<i4", at + 1)
        if leaf.kind != ARRAY:
            found, counts = strings_at(page.data, at.tolist())
            values = np.empty(len(found), object)
            values[:] = found
            return Ragged(values, splits_of(counts))
        values = page.pieces(at + 5, counts, leaf.dtype)
        if leaf.shape is None:
            return Ragged(values, splits_of(counts))
        wanted = int(np.prod(leaf.shape, dtype=np.int64))
        other = counts != wanted
        if other.any():
            message = "%s: the field %s has %d items in a row, and shapes says %s, which is %d."
            raise IgniteShapeError(message % (self._where, leaf.path, counts[other][0], leaf.shape, wanted))
        return values.reshape((len(at), *leaf.shape))


def _scalars(page: Page, leaf: Leaf, at: Any) -> Any:
    if leaf.code == wire.TIMESTAMP:
        return page.at("<i8", at + 1) * 1_000_000 + page.at("<i4", at + 9)
    if leaf.code in (wire.ENUM, wire.BINARY_ENUM):
        return page.at("<i4", at + 5)
    return page.at(np.dtype(leaf.dtype).newbyteorder("<").str, at + 1)


def _texts(page: Page, leaf: Leaf, at: Any) -> Text:
    if leaf.code == wire.UUID:
        halves = page.blocks(at + 1, 16).reshape(-1, 2, 8)[:, :, ::-1]
        return Text(np.ascontiguousarray(halves).reshape(-1), np.arange(len(at) + 1, dtype=np.int64) * 16)
    sizes = page.at("<i4", at + 1)
    return Text(page.pieces(at + 5, sizes), splits_of(sizes))


def _spread(places: Any, there: Any) -> Any:
    found = np.full(len(there), NOWHERE, np.int64)
    found[there] = places
    return found


def _with_default(leaf: Leaf, column: Column, there: Any) -> Column:
    """The column of all rows, with the default where there is no value."""
    if isinstance(column, Ragged):
        return _ragged_with_default(leaf, column, there)
    found = empty((len(there), *column.shape[1:]), column.dtype)
    found[there] = column
    found[~there] = leaf.default
    return found


def _ragged_with_default(leaf: Leaf, column: Ragged, there: Any) -> Ragged:
    given = leaf.default
    if leaf.kind == TEXT:
        stands = np.frombuffer(given.encode() if isinstance(given, str) else bytes(given), np.uint8)
    else:
        stands = np.array(list(given) if isinstance(given, Sequence) else given, column.dtype)
    lengths = np.full(len(there), len(stands), np.int64)
    lengths[there] = np.diff(column.splits)
    values = np.empty(int(lengths.sum()), column.dtype)
    from_rows = np.repeat(there, lengths)
    values[from_rows] = column.values
    values[~from_rows] = np.tile(stands, int((~there).sum()))
    return type(column)(values, splits_of(lengths))

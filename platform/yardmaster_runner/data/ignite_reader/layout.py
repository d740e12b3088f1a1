"""What a row becomes: a tree of named fields with a kind and a type each. Found from some rows and what the cluster
knows of their types; decided once, before any tensor is made.

    {"key": int64, "val": {"name": string, "metadata": {"width": int32, …}, "pixels": uint8 of any length}}

Every path is dotted: `val.metadata.width`. Not here: decoding (`decoding`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, Union

from yardmaster_runner.data.ignite_reader import wire
from yardmaster_runner.data.ignite_reader.binary_types import BinaryObject, BinaryTypes, DataObject
from yardmaster_runner.data.ignite_reader.errors import IgniteCacheError, IgniteDataError, IgniteTypeError

SCALARS = {
    wire.BYTE: "int8", wire.SHORT: "int16", wire.INT: "int32", wire.LONG: "int64", wire.FLOAT: "float32",
    wire.DOUBLE: "float64", wire.CHAR: "uint16", wire.BOOL: "bool", wire.DATE: "int64", wire.TIMESTAMP: "int64",
    wire.TIME: "int64", wire.ENUM: "int32", wire.BINARY_ENUM: "int32",
}  # fmt: skip
ARRAYS = {
    wire.BYTES: "uint8", wire.SHORTS: "int16", wire.INTS: "int32", wire.LONGS: "int64", wire.FLOATS: "float32",
    wire.DOUBLES: "float64", wire.CHARS: "uint16", wire.BOOLS: "bool",
}  # fmt: skip
SCALAR, ARRAY, TEXT, TEXTS = "scalar", "array", "text", "texts"
NOTHING: Any = object()
"""No value was given to stand for a null."""
Shape = Tuple[int, ...]


@dataclass(frozen=True)
class Leaf:
    """A field that becomes a tensor. `shape` is that of an array with a fixed number of items; None: any number."""

    path: str
    code: int
    kind: str
    dtype: str
    shape: Optional[Shape] = None
    default: Any = NOTHING


@dataclass(frozen=True)
class Tree:
    """An object: its fields by name."""

    path: str
    type_id: int
    type_name: str
    fields: Dict[str, "Node"] = field(default_factory=dict)
    field_ids: Dict[str, int] = field(default_factory=dict)


Node = Union[Leaf, Tree]


@dataclass(frozen=True)
class Wishes:
    """What the script says of the fields, by their paths."""

    fields: Optional[Sequence[str]] = None
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    strings: Sequence[str] = ()
    nulls: Mapping[str, Any] = field(default_factory=dict)
    has_unsigned_bytes: bool = False

    def wants(self, path: str) -> bool:
        if self.fields is None:
            return True
        return any(one in (path, "") or path.startswith(one + ".") for one in self.fields)

    def wants_below(self, path: str) -> bool:
        return self.wants(path) or any(one.startswith(path + ".") for one in self.fields or ())

    def named(self) -> Set[str]:
        return {*(self.fields or ()), *self.shapes, *self.strings, *self.nulls}


def leaves(node: Node) -> Iterator[Leaf]:
    """The leaves in the order of the columns."""
    if isinstance(node, Leaf):
        yield node
    else:
        for one in node.fields.values():
            yield from leaves(one)


def packed(node: Node, columns: Iterator[Any]) -> Any:
    """The columns as nested dicts."""
    if isinstance(node, Leaf):
        return next(columns)
    return {name: packed(one, columns) for name, one in node.fields.items()}


def layout_of(rows: Mapping[str, Sequence[DataObject]], types: BinaryTypes, wishes: Wishes, where: str) -> Tree:
    """The layout of rows like these: the values of each column by its name. `where` is the cache, in words.

    Raises `IgniteTypeError`, `IgniteCacheError`, and `IgniteDataError` where a wish names no field."""
    builder = _Builder(types, wishes)
    builder.paths.update(rows)
    fields = {name: builder.node(name, some) for name, some in rows.items() if wishes.wants_below(name)}
    found = Tree("", 0, "", {name: one for name, one in fields.items() if one is not None})
    if builder.unknown:
        message = "No row that was examined has a value of %s, so its type is not known. Leave it out: fields=%r."
        raise IgniteCacheError(message % (", ".join(builder.unknown), [one.path for one in leaves(found)]))
    if builder.unfit:
        others = [one.path for one in leaves(found)]
        message = "%s: %s cannot become a tensor. Leave it out: fields=%r. Or read a part of it with an SQL query, a "
        message += "BigDecimal with CAST(… AS DOUBLE)."
        raise IgniteTypeError(message % (where, " and ".join(builder.unfit), others))
    known = builder.paths
    missing = sorted(one for one in wishes.named() if one not in known)
    if missing:
        message = "%s has no field %s. It has: %s."
        raise IgniteDataError(message % (where, ", ".join(map(repr, missing)), ", ".join(sorted(known))))
    return found


class _Builder:
    def __init__(self, types: BinaryTypes, wishes: Wishes) -> None:
        self._types = types
        self._wishes = wishes
        self.paths: Set[str] = set()
        self.unfit: List[str] = []
        self.unknown: List[str] = []

    def node(self, path: str, some: Sequence[DataObject], declared: int = wire.OBJECT) -> Optional[Node]:
        """None: it is not wanted, or no tensor (`unfit`), or not known (`unknown`)."""
        self.paths.add(path)
        there = [one.resolved() for one in some]
        codes = {one.code for one in there if one.code != wire.NULL}
        if declared not in (wire.OBJECT, wire.WRAPPED) and not codes:
            codes = {declared}
        if len(codes) > 1:
            names = " and ".join(sorted(map(wire.name_of, codes)))
            raise IgniteTypeError(
                "%s is of different types in different rows (%s): no tensor holds both." % (path, names)
            )
        if not codes:
            self.unknown.append(path)
            return None
        code = codes.pop()
        if code == wire.OBJECT:
            return self._tree(path, [one.opened() for one in there if one.code == wire.OBJECT])
        return self._leaf(path, code)

    def _tree(self, path: str, objects: Sequence[BinaryObject]) -> Optional[Node]:
        ids = {one.type_id for one in objects}
        if len(ids) > 1:
            names = " and ".join(sorted(self._types.of(one).name for one in ids))
            message = "%s is an object of different types in different rows (%s): read them with one SQL query each."
            raise IgniteTypeError(message % (path, names))
        kind = self._types.of(ids.pop())
        made = Tree(path, kind.type_id, kind.name)
        for name, (code, number) in kind.fields.items():
            below = path + "." + name
            self.paths.add(below)
            if not self._wishes.wants_below(below):
                continue
            some = [found for one in objects for found in one.field(kind, number)]
            node = self.node(below, some, code)
            if node is not None:
                made.fields[name], made.field_ids[name] = node, number
        return made if made.fields else None

    def _leaf(self, path: str, code: int) -> Optional[Leaf]:
        wishes = self._wishes
        if not wishes.wants(path):
            return None
        default = wishes.nulls.get(path, NOTHING)
        if code in (wire.STRING, wire.UUID) or (code == wire.BYTES and path in wishes.strings):
            return Leaf(path, code, TEXT, "string", None, default)
        if code == wire.STRINGS:
            return Leaf(path, code, TEXTS, "string", None, default)
        if code in SCALARS:
            dtype = "uint8" if code == wire.BYTE and wishes.has_unsigned_bytes else SCALARS[code]
            return Leaf(path, code, SCALAR, dtype, None, default)
        if code in ARRAYS:
            shape = wishes.shapes.get(path)
            return Leaf(path, code, ARRAY, ARRAYS[code], None if shape is None else tuple(shape), default)
        self.unfit.append("the field %s, a %s" % (path, wire.name_of(code)))
        return None

"""What a SavedModel says of itself, read from its `saved_model.pb` without TensorFlow: its signatures, its tags, and
the version of TensorFlow that wrote it.

The graph is passed over. Whatever the file, so many bytes and fields are looked at and no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import Any, BinaryIO

from yardmaster_runner.protowire import BYTES, VARINT, WireError, as_bytes, as_signed, fields, varint

MOST_FIELDS = 20_000
"""Of the file and its graphs: signatures, collections, assets."""
LARGEST_FIELD = 8 << 20
"""Bytes of one that is read; the graph is not."""
SIGNATURES, TENSORS, DIMENSIONS = 20, 100, 32
LONGEST_NAME = 200
_HIDDEN = "__saved_model"
_META_GRAPH = 2
_META_INFO, _SIGNATURE = 1, 5
_DTYPES = {
    1: "float32", 2: "float64", 3: "int32", 4: "uint8", 5: "int16", 6: "int8", 7: "string", 8: "complex64", 9: "int64",
    10: "bool", 11: "qint8", 12: "quint8", 13: "qint32", 14: "bfloat16", 15: "qint16", 16: "quint16", 17: "uint16",
    18: "complex128", 19: "float16", 20: "resource", 21: "variant", 22: "uint32", 23: "uint64",
}  # fmt: skip


def saved_model_facts(source: BinaryIO, size: int) -> dict[str, Any]:
    """`version`, `tags` and `signatures` of its graph for serving, or of its first. Raises `WireError`."""
    graphs = []
    for number, kind, start, end in _entries(source, 0, size):
        if number == _META_GRAPH and kind == BYTES:
            graphs.append(_graph(source, start, end))
    if not graphs:
        raise WireError("it has no graph")
    return next((one for one in graphs if "serve" in one["tags"]), graphs[0])


def _graph(source: BinaryIO, start: int, end: int) -> dict[str, Any]:
    facts: dict[str, Any] = {"version": "", "tags": [], "signatures": []}
    for number, kind, first, last in _entries(source, start, end):
        if kind != BYTES or number not in (_META_INFO, _SIGNATURE):
            continue
        body = _read(source, first, last)
        if number == _META_INFO:
            facts |= _meta_info(body)
        elif len(facts["signatures"]) < SIGNATURES:
            key, value = _entry(body)
            if not key.startswith(_HIDDEN):
                facts["signatures"].append(_signature(key, value))
    facts["signatures"].sort(key=lambda one: (one["name"] != "serving_default", one["name"]))
    return facts


def _meta_info(body: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {"version": "", "tags": []}
    for number, _, value in fields(body):
        if number == 4 and len(found["tags"]) < 20:
            found["tags"].append(_text(value))
        elif number == 5:
            found["version"] = _text(value)
    return found


def _signature(name: str, body: bytes) -> dict[str, Any]:
    inputs: list[dict[str, Any]] = []
    outputs: list[dict[str, Any]] = []
    method = ""
    for number, _, value in fields(body):
        if number in (1, 2):
            tensors = inputs if number == 1 else outputs
            if len(tensors) < TENSORS:
                tensors.append(_tensor(*_entry(as_bytes(value))))
        elif number == 3:
            method = _text(value)
    for tensors in (inputs, outputs):
        tensors.sort(key=itemgetter("name"))
    return {"name": name, "method": method, "inputs": inputs, "outputs": outputs}


def _tensor(name: str, body: bytes) -> dict[str, Any]:
    """`shape` is None where the rank is unknown; a dimension of any length is None."""
    dtype, shape = "", None
    for number, kind, value in fields(body):
        if number == 2 and kind == VARINT:
            dtype = _DTYPES.get(int(value) % 100, "unknown")  # above 100: a reference to such a tensor
        elif number == 3:
            shape = _shape(as_bytes(value))
    return {"name": name, "dtype": dtype, "shape": shape}


def _shape(body: bytes) -> list[int | None] | None:
    shape: list[int | None] = []
    for number, _, value in fields(body):
        if number == 3 and value:
            return None
        if number == 2 and len(shape) < DIMENSIONS:
            sizes = [as_signed(one) for part, kind, one in fields(as_bytes(value)) if part == 1 and kind == VARINT]
            length = sizes[-1] if sizes else 0
            shape.append(None if length < 0 else length)
    return shape


def _entry(body: bytes) -> tuple[str, bytes]:
    """Key and value of an entry of a map."""
    key, found = "", b""
    for number, _, value in fields(body):
        if number == 1:
            key = _text(value)
        elif number == 2:
            found = as_bytes(value)
    return key, found


def _text(value: Any) -> str:
    """Without NUL, which no database takes."""
    return as_bytes(value)[: 4 * LONGEST_NAME].decode("utf-8", "replace")[:LONGEST_NAME].replace("\0", "\ufffd")


def _entries(source: BinaryIO, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """Number, wire type, and where the content begins and ends, of each field. What is in it is not read."""
    at = start
    for _ in range(MOST_FIELDS):
        if at >= end:
            return
        source.seek(at)
        head = source.read(min(20, end - at))
        key, taken = varint(head, 0)
        kind = key & 7
        if kind == VARINT:
            _, taken = varint(head, taken)
            first = last = at + taken
        elif kind == BYTES:
            length, taken = varint(head, taken)
            first, last = at + taken, at + taken + length
        else:
            raise WireError(f"wire type {kind}")
        if last > end or key >> 3 == 0:
            raise WireError("a field goes past the end")
        yield key >> 3, kind, first, last
        at = last
    raise WireError("it has too many fields")


def _read(source: BinaryIO, start: int, end: int) -> bytes:
    if end - start > LARGEST_FIELD:
        raise WireError("a signature or the description is too large")
    source.seek(start)
    return source.read(end - start)

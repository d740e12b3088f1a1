"""A prediction as a row: `file` and `row` of the record that it is about, the columns that were to be kept, and one
column per output; as JSON, or as the values of a `tf.train.Example`. And what all rows have shown.
"""

from __future__ import annotations

import math
from typing import Any, Collection, Dict, Mapping, Sequence, Tuple

from yardmaster_runner.data import example_bytes
from yardmaster_runner.data.description import Feature
from yardmaster_runner.predict.examples import Picture
from yardmaster_runner.predict.records import Record
from yardmaster_runner.prepare.histogram import Histogram
from yardmaster_runner.prepare.numbers import Numbers
from yardmaster_runner.prepare.schema import listed
from yardmaster_runner.prepare.trouble import BadRecord, PrepareError
from yardmaster_runner.serving.signatures import BadRequest
from yardmaster_runner.serving.tensors import as_json

FILE, ROW = "file", "row"


def names_of(outputs: Collection[str], keep: Sequence[str]) -> Dict[str, str]:
    """The column of each output: its name, with `output_` before it where a column has that name already."""
    names: Dict[str, str] = {}
    for one in outputs:
        taken = {FILE, ROW, *keep, *names.values()}
        name = one
        while name in taken:
            name = "output_" + name
        names[one] = name
    return names


def row_of(record: Record, keep: Sequence[str], outputs: Mapping[str, Any], names: Mapping[str, str]) -> Dict[str, Any]:
    """The row's columns, as the record and the model have them. Raises `BadRecord` where one is missing."""
    row: Dict[str, Any] = {FILE: record.file, ROW: record.row}
    for name in keep:
        if name not in record.values:
            raise BadRecord(record.place, "no column %s, which is to be kept" % name)
        row[name] = record.values[name]
    row.update((names[name], one) for name, one in outputs.items())
    return row


def json_of(row: Mapping[str, Any]) -> Dict[str, Any]:
    """The row as JSON has it; bytes as the model server writes them. Raises `PrepareError`."""
    try:
        return {name: _json(name, value) for name, value in row.items()}
    except BadRequest as error:
        raise PrepareError(error.message) from None


def _json(name: str, value: Any) -> Any:
    if isinstance(value, Picture):
        return as_json(name + "_bytes", value.data)
    if isinstance(value, list) and value and isinstance(value[0], bytes):
        return [as_json(name, one) for one in value]
    return as_json(name, value, strict=True) if hasattr(value, "dtype") or isinstance(value, bytes) else value


class Seen:
    """The features of all rows, and the numbers of the model's outputs. `widening`: a column of whole numbers may still
    become one of fractions."""

    def __init__(self, outputs: Collection[str], *, widening: bool) -> None:
        self.features: Dict[str, Feature] = {}
        self.numbers: Dict[str, Numbers] = {}
        self.histograms: Dict[str, Histogram] = {}
        self._outputs, self._widening = outputs, widening

    def see(self, place: str, row: Mapping[str, Any]) -> Dict[str, example_bytes.Values]:
        """The row as an example has it. Raises `BadRecord` where a column is of another kind than before."""
        seen, values = {}, {}
        for name, value in row.items():
            one, found = column_of(name, value, place)
            known = self.features.get(name, one)
            if not self._widening and (known.kind, one.kind) == ("int64", "float"):
                raise BadRecord(place, "%s is a fraction: expected a whole number as before" % name)
            seen[name] = _joined(place, name, known, one)
            values[name] = ("bytes" if one.kind == "none" else seen[name].kind, found)
        self.features.update(seen)
        for name in self._outputs:
            if values[name][0] != "bytes":
                self._count(name, values[name][1])
        return values

    def _count(self, name: str, found: Sequence[Any]) -> None:
        numbers = self.numbers.setdefault(name, Numbers())
        for one in found:
            numbers.add(one)
        if len(found) == 1 and math.isfinite(found[0]):
            self.histograms.setdefault(name, Histogram()).add(found[0])


def _joined(place: str, name: str, known: Feature, one: Feature) -> Feature:
    """What holds of both. Numbers do not become text."""
    kinds = {known.kind, one.kind} - {"none"}
    if len(kinds) > 1 and kinds != {"int64", "float"}:
        raise BadRecord(place, "%s is %s: expected %s as before" % (name, one.kind, known.kind))
    kind = "float" if len(kinds) > 1 else next(iter(kinds), "none")
    encodings = {each.encoding for each in (known, one) if each.kind != "none"}
    encoding = encodings.pop() if len(encodings) == 1 else ""
    return Feature(kind, known.shape if known.shape == one.shape else None, encoding)


def column_of(name: str, value: Any, place: str) -> Tuple[Feature, Sequence[Any]]:
    """The value as a feature with its elements. Raises `BadRecord`."""
    if isinstance(value, Picture):
        return Feature("bytes", (), "image"), [value.data]
    try:
        if hasattr(value, "dtype"):
            return _of_array(name, value)
        if isinstance(value, list) and any(isinstance(one, list) for one in value):
            return _of_array(name, _array(name, value))
        kind, encoding, found, shape = listed(name, value)
    except ValueError as error:
        raise BadRecord(place, str(error)) from None
    return Feature(kind, shape, encoding), found


def _array(name: str, value: Any) -> Any:
    import numpy

    try:
        return numpy.array(value)
    except ValueError:
        raise ValueError("%s has rows that differ in length" % name) from None


def _of_array(name: str, value: Any) -> Tuple[Feature, Sequence[Any]]:
    import numpy

    array = numpy.asarray(value)
    kind = array.dtype.kind
    if kind == "c":
        raise PrepareError("%s has complex numbers, which neither JSON lines nor examples can hold" % name)
    if kind in "OSU":
        found = [one if isinstance(one, bytes) else str(one).encode("utf-8", "replace") for one in array.ravel()]
        return Feature("bytes", array.shape, "utf8" if all(map(_is_text, found)) else ""), found
    if kind in "biu":
        if kind == "u" and array.size and int(array.max()) >= 2**63:
            raise ValueError("%s is outside 64 bits" % name)
        return Feature("int64", array.shape), [int(one) for one in array.ravel()]
    with numpy.errstate(over="ignore"):
        return Feature("float", array.shape), array.astype("float32").ravel().tolist()


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True

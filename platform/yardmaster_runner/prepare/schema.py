"""The columns of the records: their kinds, found in a first pass or with the first record, and the values by them."""

from __future__ import annotations

import struct
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from yardmaster_runner.data.description import Feature
from yardmaster_runner.data.example_bytes import Values

WIDER = {("int64", "float"), ("none", "int64"), ("none", "float"), ("none", "bytes")}
MOST_COLUMNS = 10_000
LARGEST_FLOAT = 3.4e38
Shape = Optional[Tuple[int, ...]]


def listed(name: str, value: Any) -> Tuple[str, str, Sequence[Any], Shape]:
    """Kind, encoding, values and shape of one member. Raises ValueError that names it."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    shape: Shape = (len(values),) if isinstance(value, (list, tuple)) else ()
    if value is None:
        return "none", "", [], None
    types = {type(one) for one in values}
    if not types:
        return "none", "", [], (0,)
    if types <= {int, bool}:
        if any(not -(2**63) <= one < 2**63 for one in values):
            raise ValueError("%s is outside 64 bits" % name)
        return "int64", "", [int(one) for one in values], shape
    if types <= {int, bool, float}:
        try:
            struct.pack("<%df" % len(values), *values)
        except (OverflowError, struct.error):
            raise ValueError("%s is too large for a float of 32 bits" % name) from None
        return "float", "", values, shape
    if types == {str}:
        return "bytes", "utf8", [one.encode("utf-8", "replace") for one in values], shape
    if types == {bytes}:
        return "bytes", "", values, shape
    raise ValueError("%s holds %s: expected numbers, text, or a list of one of them" % (name, sorted(map(str, types))))


class Columns:
    """Collects features. While `widening`, whole numbers become floats and numbers text where values ask for it."""

    def __init__(self, known: Optional[Mapping[str, Feature]] = None) -> None:
        self.features: Dict[str, Feature] = dict(known or {})
        self.records = 0

    def see(self, record: Mapping[str, Any], widening: bool = True) -> None:
        for name, value in record.items():
            kind, encoding, _, shape = listed(name, value)
            self._add(str(name), kind, encoding, shape, widening)
        if len(record) != len(self.features):
            for name in self.features.keys() - record.keys():
                self._loosen(name)
        self.records += 1

    def see_same(self, records: Sequence[Mapping[str, Any]]) -> bool:
        """See records that have the known features and no others, each a single value of the kind that is known. False:
        nothing was seen, since one of them differs."""
        if not are_like(self.features, records):
            return False
        self.records += len(records)
        return True

    def _add(self, name: str, kind: str, encoding: str, shape: Shape, widening: bool) -> None:
        known = self.features.get(name)
        if known is None:
            if len(self.features) >= MOST_COLUMNS:
                raise ValueError("more than %d features" % MOST_COLUMNS)
            self.features[name] = Feature(kind, None if self.records else shape, encoding)
            return
        if known.shape != shape:
            self._loosen(name)
        if kind == known.kind or kind == "none" or (known.kind == "float" and kind == "int64"):
            return
        if known.kind != "none" and not (widening and (known.kind, kind) in WIDER):
            raise ValueError("%s is %s: expected %s as in the records before" % (name, kind, known.kind))
        self.features[name] = Feature(kind, self.features[name].shape, encoding)

    def _loosen(self, name: str) -> None:
        known = self.features[name]
        if known.shape is not None:
            self.features[name] = Feature(known.kind, None, known.encoding)

    def values(self, record: Mapping[str, Any]) -> Dict[str, Values]:
        """The record as its features want it. A feature that it lacks is an empty list."""
        out: Dict[str, Values] = {}
        for name, feature in self.features.items():
            kind = feature.kind if feature.kind != "none" else "bytes"
            if name not in record:
                out[name] = (kind, [])
                continue
            there, _, values, _ = listed(name, record[name])
            if there not in (kind, "none") and (there, kind) != ("int64", "float"):
                raise ValueError("%s is %s: expected %s as in the records before" % (name, there, kind))
            out[name] = (kind, list(values))
        return out


def are_like(features: Mapping[str, Feature], records: Sequence[Mapping[str, Any]]) -> bool:
    """Whether all records have these features and no others, each a single value of its kind."""
    if not features or any(one.shape != () for one in features.values()):
        return False
    if any(record.keys() != features.keys() for record in records):
        return False
    return all(_all_are(one, [record[name] for record in records]) for name, one in features.items())


def _all_are(feature: Feature, values: List[Any]) -> bool:
    """Whether each is a single value that the feature holds as it is."""
    types = set(map(type, values))
    if feature.kind == "int64":
        return types <= {int, bool} and min(values) >= -(2**63) and max(values) < 2**63
    if feature.kind == "float":
        # NaN is no larger than anything; the sum shows it.
        return types <= {int, bool, float} and max(map(abs, values)) < LARGEST_FLOAT and _is_number(sum(values))
    return feature.kind == "bytes" and feature.encoding == "utf8" and types == {str}


def _is_number(total: float) -> bool:
    return total - total == 0


def joined(parts: Sequence[Mapping[str, Feature]], *, is_text: bool = False) -> Dict[str, Feature]:
    """The features of all workers' records. `is_text`: records are text, so that whole numbers and fractions are one
    kind. Raises ValueError where two differ in kind, or arrays in shape."""
    out: Dict[str, Feature] = {}
    for part in parts:
        for name, one in part.items():
            old = out.get(name)
            out[name] = one if old is None else _both(name, old, one, is_text)
    for name in out:
        if any(name not in part for part in parts):
            out[name] = Feature(out[name].kind, None, out[name].encoding)
    return {n: Feature("bytes", None) if one.kind == "none" else one for n, one in out.items()}


def _both(name: str, old: Feature, one: Feature, is_text: bool) -> Feature:
    shape = one.shape if old.shape == one.shape else None
    if "none" in (old.kind, one.kind):
        better = one if old.kind == "none" else old
        return Feature(better.kind, shape, better.encoding)
    if one.encoding.startswith("raw:") and one.shape != old.shape:
        raise ValueError(
            "%s has the shape %s in one worker's records and %s in another's" % (name, old.shape, one.shape)
        )
    kinds = {old.kind, one.kind}
    if len(kinds) > 1 and not (is_text and kinds == {"int64", "float"}):
        raise ValueError("%s is %s in one worker's records and %s in another's" % (name, old.kind, one.kind))
    if old.encoding != one.encoding and {old.encoding, one.encoding} != {"", "utf8"}:
        raise ValueError("%s is %s in one worker's records and %s in another's" % (name, old.encoding, one.encoding))
    return Feature("float" if len(kinds) > 1 else one.kind, shape, one.encoding if old.encoding == one.encoding else "")

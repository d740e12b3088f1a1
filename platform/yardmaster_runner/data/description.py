"""What a prepared dataset holds: its features, its splits with their shards, its classes and its statistics.

The description lies in the file `dataset.json` at the top of a dataset version. Preparation writes it last, the
portal's pages show it, and `yardmaster_runner.data` reads the records by it. Pure; nothing here needs TensorFlow.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple

FILE_NAME = "dataset.json"
FORMAT = "yardmaster-dataset"
VERSION = 1
LARGEST = 32 << 20
"""Bytes of a description that is read at all."""
KINDS = ("int64", "float", "bytes")
RAW_TYPES = ("uint8", "int8", "uint16", "int16", "int32", "int64", "float16", "float32", "float64", "bool")
ENCODINGS = ("", "utf8", "image", *("raw:" + one for one in RAW_TYPES))
MOST_BINS = 64
COMPRESSIONS = ("", "GZIP")
JSON_LINES = "jsonl"
FILE_FORMATS = ("tfrecord", JSON_LINES)


_SHARD = re.compile(r"[^/]\.tfrecords?(?:\.gz)?\Z", re.IGNORECASE)


def is_shard(path: str) -> bool:
    """Whether a file of this name is taken for a TFRecord shard: what is streamed to a reader. All else is small, or
    cannot be read that way."""
    return _SHARD.search(path) is not None


class BadDescription(ValueError):
    """The text is no description, or one of a later release. The message names the member at fault."""


class OtherFormat(BadDescription):
    """The text is JSON of another program, which has a file of this name, too."""


@dataclass(frozen=True)
class Feature:
    """One feature of every record, as `tf.train.Example` holds it.

    `shape` None: a list of any length. `encoding` says what a feature of bytes holds: any bytes (""), text in UTF-8
    ("utf8"), an encoded picture in JPEG, PNG, GIF or BMP ("image"), or an array in C order with little-endian items of
    a type ("raw:float32"); `shape` is then that of the array.
    """

    kind: str
    shape: Optional[Tuple[int, ...]] = ()
    encoding: str = ""


@dataclass(frozen=True)
class Shard:
    """One file with records: its path in the version, its records, its size in bytes."""

    path: str
    records: int
    size: int


@dataclass(frozen=True)
class Histogram:
    """How many of the numbers of a feature lie in each bin; the first one begins at `start`, all have one width."""

    start: float
    width: float
    counts: Tuple[int, ...]


@dataclass(frozen=True)
class Description:
    """All of it. `classes` are the names of the values of the feature `label`, by number; empty where there are none.
    `counts` has records by split and class. `statistics` has numbers by feature (`min`, `max`, `mean`, `std`, …)."""

    features: Mapping[str, Feature]
    splits: Mapping[str, Tuple[Shard, ...]]
    compression: str = ""
    label: str = ""
    classes: Tuple[str, ...] = ()
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    statistics: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    file_format: str = FILE_FORMATS[0]
    """What the shards are: TFRecord files, or JSON lines with one member per feature (predictions)."""

    def records(self, split: str) -> int:
        """How many records a split has. Raises KeyError for one that there is not."""
        return sum(one.records for one in self.splits[split])


def to_text(description: Description) -> str:
    """The description as the text of `dataset.json`; the same for the same description."""
    members: Dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "compression": description.compression,
        "features": {
            name: {"kind": one.kind, "shape": None if one.shape is None else list(one.shape), "encoding": one.encoding}
            for name, one in sorted(description.features.items())
        },
        "label": description.label,
        "classes": list(description.classes),
        "splits": {
            name: [{"path": one.path, "records": one.records, "size": one.size} for one in shards]
            for name, shards in description.splits.items()
        },
        "counts": {split: dict(counts) for split, counts in description.counts.items()},
        "statistics": {name: dict(numbers) for name, numbers in sorted(description.statistics.items())},
        "histograms": {
            name: {"start": one.start, "width": one.width, "counts": list(one.counts)}
            for name, one in sorted(description.histograms.items())
        },
    }
    if description.file_format != FILE_FORMATS[0]:
        members["file_format"] = description.file_format
    return json.dumps(members, indent=1) + "\n"


def from_text(text: str) -> Description:
    """The description that `text` holds. Unknown members are passed over. Raises `BadDescription`, `OtherFormat` among
    it."""
    if len(text) > LARGEST:
        raise BadDescription("%s is longer than %d characters" % (FILE_NAME, LARGEST))
    try:
        members = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadDescription("%s is not JSON: %s" % (FILE_NAME, error)) from error
    if not isinstance(members, dict) or members.get("format") != FORMAT:
        raise OtherFormat('%s has no "format": "%s"' % (FILE_NAME, FORMAT))
    if members.get("version") != VERSION:
        raise BadDescription("version is %r: this release reads %d" % (members.get("version"), VERSION))
    try:
        return Description(
            features={str(name): _feature(str(name), one) for name, one in _object(members, "features").items()},
            splits={str(name): _shards(str(name), one) for name, one in _object(members, "splits").items()},
            compression=_one_of("compression", members.get("compression", ""), COMPRESSIONS),
            label=str(members.get("label", "")),
            classes=tuple(str(one) for one in members.get("classes", ())),
            counts={
                str(split): {str(name): int(count) for name, count in counts.items()}
                for split, counts in (members.get("counts") or {}).items()
            },
            statistics={
                str(name): {str(key): float(number) for key, number in numbers.items()}
                for name, numbers in (members.get("statistics") or {}).items()
            },
            histograms={str(name): _histogram(one) for name, one in (members.get("histograms") or {}).items()},
            file_format=_one_of("file_format", members.get("file_format", FILE_FORMATS[0]), FILE_FORMATS),
        )
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise BadDescription("%s is incomplete: %s %s" % (FILE_NAME, type(error).__name__, error)) from error


def _object(members: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = members.get(name)
    if not isinstance(value, dict):
        raise BadDescription("%s is not an object" % name)
    return value


def _feature(name: str, value: Mapping[str, Any]) -> Feature:
    shape = value.get("shape", ())
    if shape is not None and not all(type(one) is int and one >= 0 for one in shape):
        raise BadDescription("features.%s.shape is %r: expected whole numbers from 0" % (name, shape))
    kind = _one_of("features.%s.kind" % name, value["kind"], KINDS)
    encoding = _one_of("features.%s.encoding" % name, value.get("encoding", ""), ENCODINGS)
    if encoding and kind != "bytes":
        raise BadDescription("features.%s.encoding is %r: only bytes have one" % (name, encoding))
    return Feature(kind, None if shape is None else tuple(shape), encoding)


def _histogram(value: Mapping[str, Any]) -> Histogram:
    counts = tuple(int(one) for one in value["counts"][:MOST_BINS])
    return Histogram(float(value["start"]), float(value["width"]), counts)


def _shards(split: str, value: List[Mapping[str, Any]]) -> Tuple[Shard, ...]:
    shards = tuple(Shard(str(one["path"]), one["records"], one["size"]) for one in value)
    for number, one in enumerate(shards):
        for member, amount in (("records", one.records), ("size", one.size)):
            if type(amount) is not int or amount < 0:
                message = "splits.%s[%d].%s is %r: expected a whole number from 0"
                raise BadDescription(message % (split, number, member, amount))
        parts = one.path.split("/")
        if "\\" in one.path or any(part in ("", ".", "..") for part in parts):
            raise BadDescription("splits.%s[%d].path is %r: it leads outside" % (split, number, one.path))
    return shards


def _one_of(member: str, value: object, known: Tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in known:
        raise BadDescription("%s is %r: expected one of %s" % (member, value, ", ".join(map(repr, known))))
    return value

"""The first records of a TFRecord file: their features, sample values, and how often each label occurs. Pure."""

from __future__ import annotations

import base64
import codecs
import re
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import isfinite, isqrt, prod
from types import MappingProxyType
from typing import BinaryIO

from apps.datasets.record_arrays import RawArrays, array_in, numbers_in
from yardmaster.formats.png import data_address, png_of
from yardmaster.formats.tf_example import KEPT_BYTES, Feature, NotAnExample, parse_example
from yardmaster.formats.tfrecord import FRAME, Damaged, TooLong, read_records
from yardmaster.quantity import format_bytes

_PIXEL_NAMES = ("image", "pixel", "picture", "img")
_SMALLEST, _LARGEST = 4, 128


def picture_of(name: str, values: Sequence[object]) -> str:
    """The values as a greyscale or colour PNG in a data address, darkest to brightest; empty where they are none."""
    if not any(word in name.lower() for word in _PIXEL_NAMES):
        return ""
    channels = next((n for n in (1, 3) if len(values) % n == 0 and isqrt(len(values) // n) ** 2 == len(values) // n), 0)
    side = isqrt(len(values) // channels) if channels else 0
    numbers = [float(value) for value in values if isinstance(value, int | float) and isfinite(value)] if side else []
    if not _SMALLEST <= side <= _LARGEST or len(numbers) != len(values):
        return ""
    low, high = min(numbers), max(numbers)
    scale = 255 / (high - low) if high > low else 0.0
    return data_address(png_of(bytes(round((number - low) * scale) for number in numbers), side, channels))


_VALUES = 10
_TEXT = 200
_BLANKS = re.compile(r"[\t\n\r]+")
_LONGEST = 8 << 20
_FEATURES = 200
_NAMES = 16 << 10
"""Characters of all names that are shown of one record."""
_PICTURES = 256 << 10
"""Characters of all pictures that are shown of one record."""
_PIXELS = 48 << 10
"""Items of arrays that are looked at for the pictures of one record."""
PATIENCE = 2.0
_MANY_CLASSES = 1_000
_LABELS = ("label", "labels", "class", "target", "y")
_IMAGES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}

Value = str | int | float


@dataclass(frozen=True)
class SampleFeature:
    """A feature of one record: how many values it has, and the first few.

    Bytes are shown as text or hexadecimal digits, small pictures and the pixels of square ones as a data address.
    """

    name: str
    dtype: str
    shape: list[int]
    values: list[Value]
    image: str = ""

    @property
    def is_cut(self) -> bool:
        """Whether it has more values than are shown."""
        return prod(self.shape) > len(self.values)


@dataclass(frozen=True)
class RecordSample:
    """One record. `features` is empty, and `note` says why, where it is no tf.train.Example or too long."""

    index: int
    offset: int
    size: int
    features: list[SampleFeature]
    note: str = ""


@dataclass(frozen=True)
class FeatureSummary:
    """A feature over the sampled records. `shape` holds -1 where its length differs."""

    name: str
    dtype: str
    shape: list[int]


@dataclass(frozen=True)
class LabelCounts:
    """How often each value of the label occurs in `records` records; `complete`: that is all of the file."""

    feature: str
    counts: dict[str, int]
    records: int
    complete: bool


@dataclass(frozen=True)
class Damage:
    """Where the file is damaged."""

    record: int
    offset: int
    message: str


@dataclass(frozen=True)
class RecordsPreview:
    samples: list[RecordSample]
    features: list[FeatureSummary]
    labels: LabelCounts | None
    damage: Damage | None
    more: bool


def preview_records(
    source: BinaryIO,
    count: int,
    *,
    size: int | None = None,
    clock: Callable[[], float] = time.monotonic,
    patience: float = PATIENCE,
    raw: RawArrays = MappingProxyType({}),
) -> RecordsPreview:
    """Of a file of `size` bytes, sample `count` records, then continue counting labels until the end, damage, or
    `patience` seconds later. `raw`: features of bytes that are arrays."""
    deadline = clock() + patience
    samples: list[RecordSample] = []
    parsed: list[dict[str, Feature]] = []
    labels: Counter[int] = Counter()
    label, seen, behind, ended = "", 0, 0, False
    try:
        for record in read_records(source, longest=_LONGEST, check_data=False):
            if len(samples) < count:
                features, note = _features(record.data)
                parsed.append({name: replace(feature, values=()) for name, feature in features.items()})
                samples.append(_sample(record.index, record.offset, len(record.data), features, note, raw))
                label = label or _label_in(features)
                if len(samples) == count and not label:
                    break
            if label:
                labels.update(_label_values(record.data, label))
            seen, behind = seen + 1, record.offset + FRAME + len(record.data)
            if clock() > deadline or len(labels) > _MANY_CLASSES:
                break
        else:
            ended = True
        damage = None
    except TooLong as error:
        damage = _cut_off(error, size)
        if damage is None and len(samples) < count:
            note = f"Records of more than {format_bytes(_LONGEST)} are not shown, nor those after them."
            samples.append(RecordSample(error.record, error.offset, error.size, [], note))
    except Damaged as error:
        damage = Damage(error.record, error.offset, error.what)
    except zlib.error:
        damage = Damage(seen, behind, "its gzip data is damaged")
    counts = {str(value): labels[value] for value in sorted(labels)} if len(labels) <= _MANY_CLASSES else {}
    found = LabelCounts(label, counts, seen, ended) if label and counts else None
    return RecordsPreview(samples, _summaries(parsed, raw), found, damage, not ended)


def _cut_off(record: TooLong, size: int | None) -> Damage | None:
    """Where a file of `size` bytes cannot hold the record."""
    missing = record.offset + FRAME + record.size - (size or 0)
    if size is None or missing <= 0:
        return None
    return Damage(record.record, record.offset, f"the file ends {missing} bytes too early")


def _features(data: bytes) -> tuple[dict[str, Feature], str]:
    try:
        return parse_example(data), ""
    except NotAnExample as error:
        return {}, f"Not a tf.train.Example: {error}"


def _sample(
    index: int, offset: int, size: int, features: dict[str, Feature], note: str, raw: RawArrays
) -> RecordSample:
    shown, pictures, pixels = [], 0, _PIXELS
    for name in _some_of(features):
        about = array_in(features[name], raw.get(name))
        if about is None:
            feature = _shown(name, features[name])
        else:
            numbers = numbers_in(features[name], about, max(pixels, _VALUES))
            pixels -= len(numbers)
            feature = _shown(name, Feature(about.dtype, numbers, prod(about.shape)))
            is_whole = len(numbers) == prod(about.shape)
            feature = replace(feature, shape=list(about.shape), image=feature.image if is_whole else "")
        pictures += len(feature.image)
        shown.append(feature if pictures <= _PICTURES else replace(feature, image=""))
    return RecordSample(index, offset, size, shown, note)


def _some_of(names: Iterable[str]) -> list[str]:
    """The first names in order, as many as are shown."""
    chosen = sorted(names)[:_FEATURES]
    lengths = accumulate(map(len, chosen))
    return [name for name, length in zip(chosen, lengths, strict=True) if length <= _NAMES]


def _shown(name: str, feature: Feature) -> SampleFeature:
    sizes = feature.sizes or (0,) * _VALUES
    values = [_value(value, size) for value, size in zip(feature.values[:_VALUES], sizes, strict=False)]
    first = feature.values[0] if feature.values else b""
    is_whole = not feature.sizes or feature.sizes[0] <= KEPT_BYTES
    image = (_image(first) if is_whole else "") if isinstance(first, bytes) else picture_of(name, feature.values)
    return SampleFeature(name, feature.dtype, [feature.count], values, image)


def _value(value: bytes | float | int, size: int) -> Value:
    """`size`: of bytes, of which `value` may be the beginning."""
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        # JSON has no NaN and no infinity.
        return value if value == value and abs(value) != float("inf") else str(value)
    try:
        # The last character may have been cut: an incremental decoder leaves it out.
        text = codecs.getincrementaldecoder("utf-8")().decode(value[:_TEXT], final=size <= _TEXT)
    except UnicodeDecodeError:
        text = ""
    text = _BLANKS.sub(" ", text)
    if text.isprintable() and (text or not value):
        return text + ("…" if size > _TEXT else "")
    return f"{size} bytes: {value[:16].hex(' ')}{'…' if size > 16 else ''}"


def _image(value: bytes) -> str:
    media = next((media for magic, media in _IMAGES.items() if value.startswith(magic)), "")
    if not media:
        return ""
    return f"data:{media};base64,{base64.b64encode(value).decode()}"


def _label_in(features: dict[str, Feature]) -> str:
    """The feature that looks like a label: one integer, and a name that says so."""
    for wanted in _LABELS:
        for name, feature in sorted(features.items()):
            if name.lower().rpartition("/")[2] == wanted and feature.dtype == "int64" and feature.count == 1:
                return name
    return ""


def _label_values(data: bytes, label: str) -> list[int]:
    try:
        feature = parse_example(data, only=label).get(label)
    except NotAnExample:
        return []
    return [value for value in feature.values if isinstance(value, int)] if feature else []


def _summaries(parsed: list[dict[str, Feature]], raw: RawArrays) -> list[FeatureSummary]:
    names = _some_of({name for features in parsed for name in features})
    summaries = []
    for name in names:
        found = [features[name] for features in parsed if name in features]
        about = raw.get(name)
        if about is not None and all(array_in(feature, about) for feature in found):
            summaries.append(FeatureSummary(name, about.dtype, list(about.shape)))
            continue
        lengths = {feature.count for feature in found}
        length = lengths.pop() if len(lengths) == 1 and len(found) == len(parsed) else -1
        summaries.append(FeatureSummary(name, "/".join(sorted({feature.dtype for feature in found})), [length]))
    return summaries

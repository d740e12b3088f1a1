"""What a value of `tf.summary` holds that is no scalar: images, a histogram, a text, the hyperparameters of a run. As
TensorFlow 2 writes it (a tensor and the name of a plugin), and images and histograms as TensorFlow 1 does. Pure.

Whatever is not as expected is no value, or a `WireError`.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Tuple, Union

from yardmaster_runner.protowire import BYTES, FIXED64, VARINT, as_bytes, as_double, as_signed, fields

PNG, JPEG = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff"
LARGEST_IMAGE = 256 << 10
LARGEST_SIDE = 4_096
IMAGES_OF_A_VALUE = 3
BUCKETS = 20
MOST_ROWS = 10_000
LONGEST_TEXT = 2_000
MOST_PARAMETERS = 30
LONGEST_PARAMETER = 100
LONGEST_NAME = 200
DT_FLOAT, DT_DOUBLE, DT_STRING = 1, 2, 7
_HPARAMS_SESSION_START = 3
Parameter = Union[str, float, bool]
Row = Tuple[float, float, float]


@dataclass(frozen=True)
class Image:
    """A PNG or JPEG file."""

    data: bytes
    width: int
    height: int

    @property
    def ending(self) -> str:
        return ".png" if self.data.startswith(PNG) else ".jpg"


@dataclass(frozen=True)
class Histogram:
    """How many values lie in each of `BUCKETS` parts of the same width between `left` and `right`."""

    left: float
    right: float
    counts: Tuple[float, ...]


@dataclass(frozen=True)
class Summary:
    """One of these is there."""

    tag: str
    images: Tuple[Image, ...] = ()
    histogram: Optional[Histogram] = None
    text: Optional[str] = None
    parameters: Optional[Dict[str, Parameter]] = None


@dataclass(frozen=True)
class _Tensor:
    kind: int
    content: bytes
    strings: Tuple[bytes, ...]


def read_summary(message: bytes) -> Optional[Summary]:
    """What a Summary.Value holds; None: nothing of these kinds. Raises `WireError`."""
    tag, plugin, content, tensor = "", "", b"", b""
    image, histogram = b"", b""
    for number, kind, value in fields(message):
        if kind != BYTES:
            continue
        if number == 1:
            tag = plain(as_bytes(value).decode("utf-8", "replace"), LONGEST_NAME)
        elif number == 4:
            image = as_bytes(value)
        elif number == 5:
            histogram = as_bytes(value)
        elif number == 8:
            tensor = as_bytes(value)
        elif number == 9:
            plugin, content = _plugin(as_bytes(value))
    if image:
        return _images(tag, [_string_of(image, 4)])
    if histogram:
        return Summary(tag, histogram=_found(_rows_of_proto(histogram)))
    if plugin == "hparams":
        return _hparams(tag, content)
    if plugin in ("images", "histograms", "text") and tensor:
        return _of_tensor(tag, plugin, _tensor(tensor))
    return None


def _of_tensor(tag: str, plugin: str, tensor: _Tensor) -> Optional[Summary]:
    if plugin == "histograms":
        return Summary(tag, histogram=_found(_rows(tensor)))
    if tensor.kind != DT_STRING or not tensor.strings:
        return None
    if plugin == "images":
        return _images(tag, tensor.strings[2 : 2 + IMAGES_OF_A_VALUE])  # before them are the width and the height
    text = "\n".join(one[: 4 * LONGEST_TEXT].decode("utf-8", "replace") for one in tensor.strings[:100])
    return Summary(tag, text=plain(text, LONGEST_TEXT, keep="\n\t"))


def _images(tag: str, files: Sequence[bytes]) -> Optional[Summary]:
    found = [image for image in map(image_of, files) if image is not None]
    return Summary(tag, images=tuple(found)) if found else None


def image_of(data: bytes) -> Optional[Image]:
    """None: it is too large, or no PNG or JPEG."""
    size = size_of_image(data)
    if size is None or len(data) > LARGEST_IMAGE or not all(0 < side <= LARGEST_SIDE for side in size):
        return None
    return Image(data, *size)


def size_of_image(data: bytes) -> Optional[Tuple[int, int]]:
    """Width and height, as the file's own head has them; None: it is neither PNG nor JPEG."""
    if data.startswith(PNG) and data[12:16] == b"IHDR" and len(data) >= 24:
        width, height = struct.unpack(">II", data[16:24])
        return width, height
    return _size_of_jpeg(data) if data.startswith(JPEG) else None


def _size_of_jpeg(data: bytes) -> Optional[Tuple[int, int]]:
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker, length = data[at + 1], struct.unpack(">H", data[at + 2 : at + 4])[0]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        at += 2 + max(2, length)
    return None


def _rows(tensor: _Tensor) -> List[Row]:
    form = {DT_FLOAT: "f", DT_DOUBLE: "d"}.get(tensor.kind)
    if form is None:
        return []
    row = struct.Struct("<3" + form)
    whole = len(tensor.content) // row.size * row.size
    return list(row.iter_unpack(tensor.content[: min(whole, MOST_ROWS * row.size)]))


def _rows_of_proto(message: bytes) -> List[Row]:
    """Of TensorFlow 1: the least value, the upper limit of each bucket, and how many are in it."""
    least, limits, counts = 0.0, b"", b""
    for number, kind, value in fields(message):
        if number == 1 and kind == FIXED64:
            least = as_double(value)
        elif number == 6:
            limits += as_bytes(value)
        elif number == 7:
            counts += as_bytes(value)
    most = min(len(limits), len(counts)) // 8
    most = min(most, MOST_ROWS)
    form = "<%dd" % most
    found, left = [], least
    for right, count in zip(struct.unpack_from(form, limits), struct.unpack_from(form, counts)):
        found.append((min(left, right), right, count))
        left = right
    return found


def _found(rows: Sequence[Row]) -> Optional[Histogram]:
    """The rows in buckets of one width; None where there is nothing to draw."""
    rows = [one for one in rows if all(map(math.isfinite, one)) and one[2] > 0 and abs(one[0]) < 1e300 > abs(one[1])]
    if not rows:
        return None
    left, right = min(one[0] for one in rows), max(one[1] for one in rows)
    if right <= left:
        left, right = left - 0.5, right + 0.5
    width = (right - left) / BUCKETS
    counts = [0.0] * BUCKETS
    for begins, ends, count in rows:
        _add(counts, (begins - left) / width, (ends - left) / width, count)
    return Histogram(_short(left), _short(right), tuple(_short(one) for one in counts))


def _add(counts: List[float], begins: float, ends: float, count: float) -> None:
    """Share out what lies between these two places, measured in buckets."""
    first, last = (min(BUCKETS - 1, max(0, int(at))) for at in (begins, ends))
    if ends - begins < 1e-9 or first == last:
        counts[first] += count
        return
    for at in range(first, last + 1):
        counts[at] += count * max(0.0, min(ends, at + 1) - max(begins, at)) / (ends - begins)


def _short(value: float) -> float:
    return float("%.6g" % value)


def _tensor(message: bytes) -> _Tensor:
    kind, content = 0, b""
    strings: List[bytes] = []
    for number, wire, value in fields(message):
        if number == 1 and wire == VARINT:
            kind = as_signed(value)
        elif number in (4, 5, 6) and wire == BYTES:
            content = as_bytes(value)  # tensor_content, or packed numbers: the same bytes
        elif number == 8 and wire == BYTES and len(strings) < 100:
            strings.append(as_bytes(value))
    return _Tensor(kind, content, tuple(strings))


def _plugin(metadata: bytes) -> Tuple[str, bytes]:
    """The plugin's name and its data."""
    name, content = "", b""
    for number, kind, value in fields(metadata):
        if number == 1 and kind == BYTES:
            for inner, wire, one in fields(as_bytes(value)):
                if inner == 1 and wire == BYTES:
                    name = as_bytes(one).decode("utf-8", "replace")
                elif inner == 2 and wire == BYTES:
                    content = as_bytes(one)
    return name, content


def _hparams(tag: str, content: bytes) -> Optional[Summary]:
    started = _string_of(content, _HPARAMS_SESSION_START)
    found: Dict[str, Parameter] = {}
    for number, kind, entry in fields(started):
        if number == 1 and kind == BYTES and len(found) < MOST_PARAMETERS:
            name = plain(_string_of(as_bytes(entry), 1).decode("utf-8", "replace"), LONGEST_PARAMETER)
            value = _parameter(_string_of(as_bytes(entry), 2))
            if name and value is not None:
                found[name] = value
    return Summary(tag, parameters=found) if found else None


def _parameter(message: bytes) -> Optional[Parameter]:
    """A `google.protobuf.Value`: a number, a text or a truth value."""
    for number, kind, value in fields(message):
        if number == 2 and kind == FIXED64:
            amount = as_double(value)
            return amount if math.isfinite(amount) else str(amount)
        if number == 3 and kind == BYTES:
            return plain(as_bytes(value).decode("utf-8", "replace"), LONGEST_PARAMETER)
        if number == 4 and kind == VARINT:
            return bool(value)
    return None


def _string_of(message: bytes, wanted: int) -> bytes:
    """The content of the last field of this number; empty where there is none."""
    found = b""
    for number, kind, value in fields(message):
        if number == wanted and kind == BYTES:
            found = as_bytes(value)
    return found


def plain(text: str, most: int, keep: str = "") -> str:
    """Of at most `most` characters, and without those that no one can see."""
    return "".join(one for one in text[:most] if one.isprintable() or one in keep)

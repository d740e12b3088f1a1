"""The index of what scripts wrote with `tf.summary`, as a task's runner sends it, and which bytes are an image. Written
by a task, so nothing in it is believed: what is not as it should be is left out, and every list is bounded.

Not here: how the index is made (`yardmaster_runner.summaries`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

FOLDER, INDEX = "_summaries", "index.json"
LARGEST_INDEX = 4 << 20
LARGEST_IMAGE = 256 << 10
MOST_SERIES, MOST_STEPS, MOST_BUCKETS, MOST_PARAMETERS = 100, 100, 100, 100
LONGEST_NAME, LONGEST_TEXT = 200, 4_000
_LARGEST = 2**53
_IMAGE = re.compile(r"images/[0-9a-f]{16}-\d{1,2}\.(png|jpg)", re.ASCII)
_MAGIC = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg"}


class Step(Protocol):
    @property
    def step(self) -> int: ...


S = TypeVar("S", bound=Step)


@dataclass(frozen=True)
class ImageStep:
    """`file` is relative to the folder of the index."""

    step: int
    time: float
    file: str
    width: int
    height: int


@dataclass(frozen=True)
class HistogramStep:
    """How many values lie in each of as many parts of the same width as there are `counts`."""

    step: int
    time: float
    left: float
    right: float
    counts: tuple[float, ...]


@dataclass(frozen=True)
class TextStep:
    step: int
    time: float
    text: str


@dataclass(frozen=True)
class Series(Generic[S]):
    """What was written under one tag in one run, by step. `folder`: where the index is, for its files."""

    run: str
    tag: str
    steps: tuple[S, ...]
    folder: str = ""


@dataclass(frozen=True)
class Parameters:
    """The hyperparameters of a run."""

    run: str
    time: float
    values: Mapping[str, str | float | bool]


@dataclass(frozen=True)
class Summaries:
    """`left_out`: how many tags of each kind were more than a task sends."""

    images: tuple[Series[ImageStep], ...] = ()
    histograms: tuple[Series[HistogramStep], ...] = ()
    texts: tuple[Series[TextStep], ...] = ()
    hparams: tuple[Parameters, ...] = ()
    left_out: int = 0

    @property
    def is_empty(self) -> bool:
        return not (self.images or self.histograms or self.texts or self.hparams)


def read_index(data: bytes, folder: str = "") -> Summaries:
    """What an index says; nothing where it is none."""
    try:
        index = json.loads(data) if len(data) <= LARGEST_INDEX else None
    except (ValueError, RecursionError):
        return Summaries()
    if not isinstance(index, dict) or index.get("version") != 1:
        return Summaries()
    return Summaries(
        images=_all_series(index.get("images"), _image, folder),
        histograms=_all_series(index.get("histograms"), _histogram, folder),
        texts=_all_series(index.get("texts"), _text, folder),
        hparams=tuple(one for row in _rows(index.get("hparams"), MOST_SERIES) if (one := _parameters(row))),
        left_out=sum(_whole(one) for one in _table(index.get("left_out")).values()),
    )


def merged(found: Sequence[Summaries]) -> Summaries:
    """Of several tasks. A series that two of them have, as an evaluator reads the files of all, is that which goes
    further."""
    return Summaries(
        images=_furthest([one for some in found for one in some.images]),
        histograms=_furthest([one for some in found for one in some.histograms]),
        texts=_furthest([one for some in found for one in some.texts]),
        hparams=tuple({one.run: one for some in found for one in some.hparams}.values()),
        left_out=max((one.left_out for one in found), default=0),
    )


def is_image_file(path: str) -> bool:
    """Whether a runner names an image so, below the folder of its index."""
    return _IMAGE.fullmatch(path) is not None


def image_type(data: bytes) -> str | None:
    """The content type of a PNG or JPEG file, by its first bytes; None: it is neither, or too large."""
    if len(data) > LARGEST_IMAGE:
        return None
    return next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), None)


def _furthest(series: Sequence[Series[S]]) -> tuple[Series[S], ...]:
    found: dict[tuple[str, str], Series[S]] = {}
    for one in series:
        known = found.get((one.run, one.tag))
        if known is None or one.steps[-1].step > known.steps[-1].step:
            found[one.run, one.tag] = one
    return tuple(found[key] for key in sorted(found))


def _all_series(value: Any, read: Callable[[Mapping[str, Any]], S | None], folder: str) -> tuple[Series[S], ...]:
    found = []
    for row in _rows(value, MOST_SERIES):
        steps = tuple(one for step in _rows(row.get("steps"), MOST_STEPS) if (one := read(step)) is not None)
        if steps:
            found.append(Series(_words(row.get("run")), _words(row.get("tag")), steps, folder))
    return tuple(found)


def _image(row: Mapping[str, Any]) -> ImageStep | None:
    file = row.get("file")
    if not isinstance(file, str) or not is_image_file(file):
        return None
    sides = _whole(row.get("width")), _whole(row.get("height"))
    return ImageStep(_whole(row.get("step")), _number(row.get("time")), file, *sides) if all(sides) else None


def _histogram(row: Mapping[str, Any]) -> HistogramStep | None:
    counts = row.get("counts")
    if not isinstance(counts, list) or not 1 <= len(counts) <= MOST_BUCKETS:
        return None
    left, right = _number(row.get("left")), _number(row.get("right"))
    heights = tuple(max(0.0, _number(one)) for one in counts)
    step = _whole(row.get("step")), _number(row.get("time"))
    return HistogramStep(*step, left, right, heights) if left < right and any(heights) else None


def _text(row: Mapping[str, Any]) -> TextStep | None:
    text = row.get("text")
    if not isinstance(text, str):
        return None
    return TextStep(_whole(row.get("step")), _number(row.get("time")), text[:LONGEST_TEXT])


def _parameters(row: Mapping[str, Any]) -> Parameters | None:
    entries = list(_table(row.get("values")).items())[:MOST_PARAMETERS]
    values = {name[:LONGEST_NAME]: _value(one) for name, one in entries if isinstance(one, str | float | int)}
    return Parameters(_words(row.get("run")), _number(row.get("time")), values) if values else None


def _value(value: str | float) -> str | float | bool:
    if isinstance(value, str):
        return value[:LONGEST_NAME]
    return value if isinstance(value, bool) else _number(value)


def _rows(value: Any, most: int) -> list[Mapping[str, Any]]:
    return [one for one in value[:most] if isinstance(one, dict)] if isinstance(value, list) else []


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _words(value: Any) -> str:
    return value[:LONGEST_NAME] if isinstance(value, str) else ""


def _whole(value: Any) -> int:
    return value if type(value) is int and abs(value) <= _LARGEST else 0


def _number(value: Any) -> float:
    """0 for what is no number, or too large for a picture."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) < 1e300 and math.isfinite(value) else 0.0

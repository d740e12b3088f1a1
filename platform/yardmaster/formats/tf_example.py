"""tf.train.Example messages, decoded from their protocol-buffer bytes without TensorFlow or protobuf.

Only reading, and only the three messages Example, Features and Feature. The bytes are untrusted input: the work and
memory they can cost are bounded. Not here: the files they come in (`tfrecord`), the wire format (`protowire` of the
runner).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from yardmaster_runner import protowire

_KINDS = {1: "bytes", 2: "float", 3: "int64"}
_ENDS_A_NUMBER = bytes(range(128))
_PIECE = 64 << 10
MAX_FIELDS = 100_000
"""Protocol-buffer fields that are read of one record."""
LONGEST_NAME = 1 << 10
KEPT_BYTES = 48 << 10
"""How much of a value of bytes is kept."""


class NotAnExample(ValueError):
    """The bytes are no tf.train.Example."""


@dataclass(frozen=True)
class Feature:
    """One feature: `dtype` is `bytes`, `float`, `int64`, or empty for a feature without a list.

    `values` are the first of `count` values; of bytes at most `KEPT_BYTES`, and `sizes` says how many each has.
    """

    dtype: str
    values: tuple[bytes | float | int, ...]
    count: int
    sizes: tuple[int, ...] = ()


def parse_example(data: bytes, *, only: str | None = None, most: int = 1_000) -> dict[str, Feature]:
    """The features by name, or `only` this one, each with its first `most` values. Raises `NotAnExample`."""
    features: dict[str, Feature] = {}
    budget = _Budget(MAX_FIELDS)
    try:
        for field, value in _fields(memoryview(data), budget):
            if field == 1:
                for entry_field, entry in _fields(_message(value), budget):
                    if entry_field == 1:
                        name, content = _entry(_message(entry), budget)
                        if only in (None, name):
                            features[name] = _feature(content, most, budget)
    except (protowire.WireError, struct.error, UnicodeDecodeError) as error:
        raise NotAnExample(f"the bytes are no tf.train.Example: {error}") from error
    if data and not features and only is None:
        raise NotAnExample("the bytes hold no feature")
    return features


class _Budget:
    """How many more fields may be read."""

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise NotAnExample(f"the record has more than {MAX_FIELDS} fields")


def _entry(data: memoryview, budget: _Budget) -> tuple[str, memoryview]:
    name, content = "", memoryview(b"")
    for field, value in _fields(data, budget):
        if field == 1:
            name = _name(_message(value))
        elif field == 2:
            content = _message(value)
    return name, content


def _name(value: memoryview) -> str:
    if len(value) > LONGEST_NAME:
        raise NotAnExample(f"a feature's name has {len(value)} bytes, more than {LONGEST_NAME}")
    return bytes(value).decode()


def _feature(data: memoryview, most: int, budget: _Budget) -> Feature:
    feature = Feature("", (), 0)
    for kind, content in _fields(data, budget):
        if kind in _KINDS:
            values: list[bytes | float | int] = []
            sizes: list[int] = []
            count = 0
            for field, value in _fields(_message(content), budget):
                if field == 1 and kind == 1:
                    if count < most:
                        sizes.append(len(_message(value)))
                        values.append(bytes(_message(value)[:KEPT_BYTES]))
                    count += 1
                elif field == 1:
                    count += _take(kind, value, values, most)
            feature = Feature(_KINDS[kind], tuple(values), count, tuple(sizes))
    return feature


def _take(kind: int, value: memoryview | int, values: list[bytes | float | int], most: int) -> int:
    """Add what a list's field holds to `values`, as far as there is space; how many it held. Numbers may be packed."""
    left = most - len(values)
    if isinstance(value, int):
        if left > 0:
            values.append(protowire.as_signed(value))
        return 1
    if kind == 2:
        count = len(value) // 4
        values.extend(struct.unpack_from(f"<{min(left, count)}f", value))
        return count
    at = 0
    while at < len(value) and left > 0:
        number, at = protowire.varint(value, at)
        values.append(protowire.as_signed(number))
        left -= 1
    return sum(_numbers_in(value[start : start + _PIECE]) for start in range(0, len(value), _PIECE))


def _numbers_in(packed: memoryview) -> int:
    return len(packed) - len(bytes(packed).translate(None, _ENDS_A_NUMBER))


def _fields(data: memoryview, budget: _Budget) -> Iterator[tuple[int, memoryview | int]]:
    """(number, value) of a message's fields: an int for varints, else a view of the bytes."""
    for number, _, value in protowire.fields(data):
        budget.spend()
        yield number, value


def _message(value: memoryview | int) -> memoryview:
    if isinstance(value, int):
        raise NotAnExample("a number stands where a message should")
    return value

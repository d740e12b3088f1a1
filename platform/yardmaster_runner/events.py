"""Scalars out of the event files that scripts write for TensorBoard, while they grow. TensorFlow is not needed.

An event file is a sequence of TFRecords (length, its checksum, an `Event` message, its checksum). Of an event only the
step, the time and scalar values are taken: `simple_value`, or a tensor of rank 0 as `tf.summary.scalar` writes it. A
record that is cut short is left until the rest is there; a file with a broken record is left alone from there on.
"""

from __future__ import annotations

import math
import os
import struct
from dataclasses import dataclass
from typing import Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from yardmaster_runner.exits import note
from yardmaster_runner.protowire import BYTES, WireError, as_bytes, as_double, as_float, as_signed, fields

HEADER = struct.Struct("<QI")
FOOTER_BYTES = 4
MOST_PER_LOOK = 8 << 20
LARGEST_RECORD = 1 << 20
"""Greater records (graphs, images) are stepped over: no scalar is that large."""
LARGEST_CHECKED = 512
"""Longer records are taken without their checksum, which is slow to compute in Python; a length is always checked."""

Others = Callable[[bytes, str, int, float], None]
"""Gets a Summary.Value, its run, step and time."""
Elsewhere = Callable[[bool], Iterable[Tuple[str, str]]]


def no_files(is_last: bool) -> Iterable[Tuple[str, str]]:
    return ()


def no_others(message: bytes, run: str, step: int, time: float) -> None:
    """Values that are no scalars are passed over."""


@dataclass(frozen=True)
class Scalar:
    """One point of one curve. `run` is the sub-directory of the log directory, `.` for itself; `value` is None for what
    is no finite number, for which JSON has no word; `not_finite` then says what it is: `nan`, `inf` or `-inf`."""

    run: str
    tag: str
    step: int
    time: float
    value: Optional[float]
    not_finite: str = ""

    def as_json(self) -> Dict[str, object]:
        said = {name: value for name, value in vars(self).items() if name != "not_finite"}
        return {**said, "not_finite": self.not_finite} if self.not_finite else said


@dataclass(frozen=True)
class Found:
    """What a look brought: new scalars, and the largest step of any event so far."""

    scalars: List[Scalar]
    step: Optional[int]


class EventFiles:
    """All event files below a directory, and those that `elsewhere` names: the place of each and its run, given whether
    no process writes any more. Each call of `look` gives what was written since the last; `others` gets the values
    that are no scalars."""

    def __init__(
        self,
        directory: str,
        elsewhere: Elsewhere = no_files,
        others: Others = no_others,
    ) -> None:
        self._directory = directory
        self._elsewhere = elsewhere
        self._others = others
        self._tails: Dict[str, EventFile] = {}
        self._step: Optional[int] = None

    def look(self, *, is_last: bool = False) -> Found:
        """At most some megabytes at a time, so that a look stays short; call again for the rest. `is_last`: no process
        writes any more."""
        scalars: List[Scalar] = []
        left = MOST_PER_LOOK
        for path, run in [*self._paths(), *self._elsewhere(is_last)]:
            tail = self._tails.setdefault(path, EventFile(path, run, self._others))
            left -= tail.read_on(left, scalars)
            if tail.step is not None:
                self._step = max(tail.step, self._step or 0)
            if left <= 0:
                break
        return Found(scalars, self._step)

    def _paths(self) -> List[Tuple[str, str]]:
        found: List[Tuple[str, str]] = []
        for folder, _, names in os.walk(self._directory):
            run = os.path.relpath(folder, self._directory)
            found.extend((os.path.join(folder, name), run) for name in names if "tfevents" in name)
        return sorted(found)


class EventFile:
    """One file and how far it was read."""

    def __init__(self, path: str, run: str, others: Others) -> None:
        self.step: Optional[int] = None
        self._others = others
        self._path = path
        self._run = run
        self._offset = 0
        self._is_broken = False

    def read_on(self, most: int, scalars: List[Scalar]) -> int:
        """Append the scalars of the next whole records; how many bytes were read."""
        try:
            size = os.stat(self._path).st_size
            if size < self._offset:
                self._offset, self._is_broken = 0, False  # another file took its name
            if self._is_broken or size == self._offset:
                return 0
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                data = file.read(max(most, HEADER.size))
        except OSError:
            return 0  # removed, or not ours to read: perhaps at the next look
        try:
            for record in self._records(data, size):
                self._take(record, scalars)
        except WireError as error:
            self._is_broken = True
            note("%s is not read on from byte %d: %s" % (self._path, self._offset, error))
        return len(data)

    def _records(self, data: bytes, size: int) -> Iterator[bytes]:
        """Whole records, moving the offset past each. One too large for this look is stepped over in the file."""
        at = 0
        while len(data) - at >= HEADER.size:
            length, checksum = HEADER.unpack_from(data, at)
            if masked_crc32c(data[at : at + 8]) != checksum:
                raise WireError("a record's length does not match its checksum")
            whole = HEADER.size + length + FOOTER_BYTES
            if self._offset + whole > size:
                return
            start = at + HEADER.size
            record = data[start : start + length]
            self._offset += whole
            at += whole
            if length > LARGEST_RECORD:
                continue
            if at > len(data):
                self._offset -= whole
                return
            if length <= LARGEST_CHECKED:
                (checksum,) = struct.unpack_from("<I", data, at - FOOTER_BYTES)
                if masked_crc32c(record) != checksum:
                    self._offset -= whole
                    raise WireError("a record does not match its checksum")
            yield record

    def _take(self, record: bytes, scalars: List[Scalar]) -> None:
        step, time, summaries = 0, 0.0, []
        for number, kind, value in fields(record):
            if number == 1:
                time = max(0.0, as_double(value))
                time = time if math.isfinite(time) else 0.0
            elif number == 2:
                step = as_signed(value)
            elif number == 5 and kind == BYTES:
                summaries.append(as_bytes(value))
        self.step = max(step, self.step or 0)
        for summary in summaries:
            for number, kind, value in fields(summary):
                if number == 1 and kind == BYTES:
                    point = _scalar(as_bytes(value), self._run, step, time)
                    if point is not None:
                        scalars.append(point)
                    else:
                        self._others(as_bytes(value), self._run, step, time)


def _scalar(message: bytes, run: str, step: int, time: float) -> Optional[Scalar]:
    """The point that a Summary.Value holds, or None: it is not a scalar."""
    tag, number_found, plugin = "", None, ""
    for number, kind, value in fields(message):
        if number == 1:
            tag = as_bytes(value).decode("utf-8", "replace")
        elif number == 2:
            number_found = as_float(value)
        elif number == 8 and kind == BYTES:
            number_found = _tensor(as_bytes(value))
        elif number == 9 and kind == BYTES:
            plugin = _plugin(as_bytes(value))
    if number_found is None or not tag or plugin not in ("", "scalars"):
        return None
    if math.isfinite(number_found):
        return Scalar(run, tag, step, time, number_found)
    return Scalar(
        run, tag, step, time, None, "nan" if math.isnan(number_found) else "inf" if number_found > 0 else "-inf"
    )


def _plugin(metadata: bytes) -> str:
    for number, _, value in fields(metadata):
        if number == 1:
            for inner, _, name in fields(as_bytes(value)):
                if inner == 1:
                    return as_bytes(name).decode("utf-8", "replace")
    return ""


def _tensor(message: bytes) -> Optional[float]:
    """The one number of a rank-0 tensor of type float (1) or double (2); None for any other."""
    kind_of_number, values = 0, b""
    for number, kind, value in fields(message):
        if number == 1:
            kind_of_number = as_signed(value)
        elif number == 2 and as_bytes(value):
            return None  # it has dimensions
        elif number in (4, 5, 6) and kind != 0:
            values = as_bytes(value)  # tensor_content, float_val or double_val, packed or not: the same bytes
    if kind_of_number == 1 and len(values) == 4:
        return as_float(values)
    if kind_of_number == 2 and len(values) == 8:
        return as_double(values)
    return None


def _crc_table() -> List[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE = _crc_table()


def masked_crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli), rotated and offset as TFRecords have it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF

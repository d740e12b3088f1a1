"""TFRecord files are counted and read without TensorFlow, and damage is found with its place."""

from __future__ import annotations

import contextlib
import io
import random
import struct
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.env import task_python
from yardmaster.formats.tf_example import KEPT_BYTES, Feature, NotAnExample, parse_example
from yardmaster.formats.tfrecord import (
    Damaged,
    RecordCounter,
    crc32c,
    looks_like_tfrecord,
    masked_crc,
    read_records,
)


def record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc(length)) + data + struct.pack("<I", masked_crc(data))


def counted(data: bytes, piece: int = 1 << 20, budget: int = 1 << 20) -> tuple[int, Damaged | None]:
    counter = RecordCounter(budget)
    for start in range(0, len(data), piece):
        counter.feed(data[start : start + piece])
    damage = counter.finish()
    return counter.count, damage


def test_the_checksum_is_crc32c():
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"") == 0
    assert crc32c(b"\0" * 32) == 0x8A9136AA
    assert crc32c(bytes(range(32))) == 0x46DD794E


@given(st.lists(st.binary(max_size=60), max_size=20), st.integers(1, 50))
def test_records_are_counted_however_the_file_is_cut_into_pieces(records, piece):
    data = b"".join(map(record, records))
    assert counted(data, piece) == (len(records), None)
    assert [one.data for one in read_records(io.BytesIO(data))] == records


def test_empty_records_take_of_what_may_be_checked():
    bent = record(b"")[:-1] + b"?"
    assert counted(record(b"") * 3 + bent, budget=64)[1] is not None
    assert counted(record(b"") * 4 + bent, budget=64)[1] is None


def test_a_record_knows_where_it_lies():
    found = list(read_records(io.BytesIO(record(b"abc") + record(b"de"))))
    assert [(one.index, one.offset) for one in found] == [(0, 0), (1, 19)]


@given(st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=8), st.data())
def test_any_changed_byte_is_found(records, data):
    whole = bytearray(b"".join(map(record, records)))
    position = data.draw(st.integers(0, len(whole) - 1))
    whole[position] ^= data.draw(st.integers(1, 255))
    with pytest.raises(Damaged):
        list(read_records(io.BytesIO(bytes(whole))))
    assert counted(bytes(whole))[1] is not None


@given(st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=8), st.data())
def test_a_truncated_file_is_found_with_its_last_record(records, data):
    whole = b"".join(map(record, records))
    length = data.draw(st.integers(1, len(whole) - 1))
    starts = [0]
    for one in records:
        starts.append(starts[-1] + len(record(one)))
    count, damage = counted(whole[:length], piece=7)
    if length in starts:
        assert (count, damage) == (starts.index(length), None)
    else:
        broken = max(index for index, start in enumerate(starts) if start < length)
        assert damage is not None
        assert (count, damage.record, damage.offset) == (broken, broken, starts[broken])


def test_damage_is_told_with_record_and_byte():
    whole = bytearray(record(b"one") + record(b"two") + record(b"three"))
    whole[19 + 12] ^= 1
    damage = counted(bytes(whole))[1]
    assert str(damage) == "record 1 at byte 19: the checksum of its data is wrong"


def test_data_beyond_the_budget_are_not_checked():
    whole = bytearray(record(b"one") + record(b"two"))
    whole[19 + 12] ^= 1
    assert counted(bytes(whole), budget=3) == (2, None)


def test_a_length_of_petabytes_costs_no_memory():
    length = struct.pack("<Q", 1 << 50)
    data = length + struct.pack("<I", masked_crc(length)) + b"x"
    assert counted(data)[0] == 0
    with pytest.raises(Damaged, match="not shown"):
        list(read_records(io.BytesIO(data)))


@pytest.mark.parametrize("start", [b"", b"x" * 12, b"\0" * 12, b"PK\3\4........", record(b"")[:11]])
def test_other_files_do_not_look_like_tfrecord(start):
    assert not looks_like_tfrecord(start)


def test_a_tfrecord_file_is_known_by_its_first_bytes():
    assert looks_like_tfrecord(record(b"x" * 1000)[:12])


# --- tf.train.Example


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def _message(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def example(**features: list) -> bytes:
    entries = b""
    for name, values in features.items():
        if values and isinstance(values[0], bytes):
            feature = _message(1, b"".join(_message(1, value) for value in values))
        elif values and isinstance(values[0], float):
            feature = _message(2, _message(1, struct.pack(f"<{len(values)}f", *values)))
        else:
            feature = _message(3, _message(1, b"".join(map(_varint, values))))
        entries += _message(1, _message(1, name.encode()) + _message(2, feature))
    return _message(1, entries)


def test_an_example_is_decoded():
    found = parse_example(example(image=[b"\x89PNG"], label=[-7, 3, 1 << 40], weight=[0.5, -2.0]))
    assert found == {
        "image": Feature("bytes", (b"\x89PNG",), 1, (4,)),
        "label": Feature("int64", (-7, 3, 1 << 40), 3),
        "weight": Feature("float", (0.5, -2.0), 2),
    }
    assert parse_example(example(a=[1], b=[2]), only="b") == {"b": Feature("int64", (2,), 1)}


def test_numbers_that_are_not_packed_are_decoded_too():
    floats = _message(2, _varint(1 << 3 | 5) + struct.pack("<f", 1.5))
    ints = _message(3, _varint(1 << 3) + _varint(5) + _varint(1 << 3) + _varint(-1))
    data = _message(
        1, _message(1, _message(1, b"f") + _message(2, floats)) + _message(1, _message(1, b"i") + _message(2, ints))
    )
    assert parse_example(data) == {"f": Feature("float", (1.5,), 1), "i": Feature("int64", (5, -1), 2)}


@pytest.mark.parametrize("data", [b"hello world", b"\x0a\xff\x01", b"\x0b", b"\x80" * 20, b"\x00\x00"])
def test_other_bytes_are_no_example(data):
    with pytest.raises(NotAnExample):
        parse_example(data)


def test_millions_of_values_are_counted_and_only_the_first_are_kept():
    data = example(pixels=[1.0] * 300_000, tokens=[5] * 300_000, long=[1 << 40] * 10)
    found = parse_example(data, most=3)
    assert found["pixels"] == Feature("float", (1.0,) * 3, 300_000)
    assert found["tokens"] == Feature("int64", (5,) * 3, 300_000)
    assert found["long"].count == 10


def test_of_long_bytes_the_beginning_is_kept_and_their_size():
    found = parse_example(example(image=[b"x" * 1_000_000, b"y"]), most=1)["image"]
    assert (found.values, found.count, found.sizes) == ((b"x" * KEPT_BYTES,), 2, (1_000_000,))


def test_a_feature_of_an_endless_name_is_refused():
    assert parse_example(example(**{"a" * 1024: [1]}))
    with pytest.raises(NotAnExample, match="name has 1025 bytes"):
        parse_example(example(**{"a" * 1025: [1]}))


def test_a_record_of_very_many_fields_is_refused_in_bounded_time():
    with pytest.raises(NotAnExample, match="fields"):
        parse_example(example(names=[b""] * 200_000 + [b"x"]))
    with pytest.raises(NotAnExample, match="fields"):
        parse_example(b"\x0a\x00" * 1_000_000)


@given(st.binary(max_size=200))
def test_any_bytes_are_decoded_or_refused(data):
    with contextlib.suppress(NotAnExample):
        parse_example(data)
    broken = bytearray(example(a=[1, 2], b=[b"xyz"], c=[1.0]))
    for value in data[:20]:
        broken[random.Random(value).randrange(len(broken))] = value
    with contextlib.suppress(NotAnExample):
        parse_example(bytes(broken))


WRITE = """
import sys
import tensorflow as tf
Feature, Features = tf.train.Feature, tf.train.Features
messages = [
    tf.train.Example(features=Features(feature={
        "label": Feature(int64_list=tf.train.Int64List(value=[number, -number])),
        "pixels": Feature(float_list=tf.train.FloatList(value=[number / 2] * number)),
        "raw": Feature(bytes_list=tf.train.BytesList(value=[bytes([number]) * number])),
    })).SerializeToString()
    for number in range(50)
]
with tf.io.TFRecordWriter(sys.argv[1]) as writer:
    for message in messages:
        writer.write(message)
        print(message.hex())
"""


@pytest.mark.slow
@pytest.mark.tensorflow
def test_what_tensorflow_writes_is_read_the_same(tmp_path):
    path = tmp_path / "x.tfrecord"
    done = subprocess.run([task_python(), "-c", WRITE, path], check=True, capture_output=True, text=True)
    messages = [bytes.fromhex(line) for line in done.stdout.split()]
    assert counted(path.read_bytes()) == (50, None)
    with path.open("rb") as file:
        found = [one.data for one in read_records(file)]
    assert found == messages
    assert parse_example(found[7])["label"] == Feature("int64", (7, -7), 2)
    assert parse_example(found[7])["pixels"].values == (3.5,) * 7

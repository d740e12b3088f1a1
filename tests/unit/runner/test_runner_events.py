"""Scalars out of event files: as a tiny writer makes them, and (slowly) as TensorFlow and TensorBoard do."""

import struct
import subprocess
import textwrap

import pytest

from portal.env import task_python
from tests.unit.runner.event_writer import (
    DOUBLE,
    FLOAT,
    NO_SHAPE,
    event,
    field,
    framed,
    scalar,
    tensor_scalar,
    varint,
)
from yardmaster_runner.events import EventFiles, Scalar, masked_crc32c

NAME = "events.out.tfevents.1700000000.host"


@pytest.fixture
def log_dir(tmp_path):
    return tmp_path


def add(folder, *records: bytes, name: str = NAME) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / name, "ab") as file:
        file.write(b"".join(framed(record) for record in records))


def values(files: EventFiles) -> list:
    return [(one.run, one.tag, one.step, one.value) for one in files.look().scalars]


def test_the_checksum_is_the_known_one():
    assert masked_crc32c(b"123456789") == (((0xE3069283 >> 15) | (0xE3069283 << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def test_simple_values_are_read_with_step_and_time(log_dir):
    add(log_dir, event(step=3, time=99.5, summary=[scalar("loss", 0.5), scalar("accuracy", 0.25)]))
    found = EventFiles(str(log_dir)).look()
    assert found.scalars == [Scalar(".", "loss", 3, 99.5, 0.5), Scalar(".", "accuracy", 3, 99.5, 0.25)]
    assert found.step == 3


@pytest.mark.parametrize(
    "tensor",
    [
        FLOAT + NO_SHAPE + field(4, struct.pack("<f", 0.5)),
        FLOAT + NO_SHAPE + field(5, struct.pack("<f", 0.5)),
        FLOAT + NO_SHAPE + b"\x2d" + struct.pack("<f", 0.5),
        DOUBLE + NO_SHAPE + field(4, struct.pack("<d", 0.5)),
        DOUBLE + NO_SHAPE + field(6, struct.pack("<d", 0.5)),
        FLOAT + field(4, struct.pack("<f", 0.5)),
    ],
)
def test_a_tensor_of_one_number_is_read_in_every_spelling(log_dir, tensor):
    add(log_dir, event(step=1, summary=[tensor_scalar("loss", tensor)]))
    assert values(EventFiles(str(log_dir))) == [(".", "loss", 1, 0.5)]


@pytest.mark.parametrize(
    "value",
    [
        tensor_scalar("text", b"\x08\x07" + NO_SHAPE + field(8, b"words"), "text"),
        tensor_scalar("vector", FLOAT + field(2, field(2, b"\x08\x02")) + field(4, b"\0" * 8)),
        tensor_scalar("histogram", FLOAT + NO_SHAPE + field(4, b"\0" * 4), "histograms"),
        field(1, b"image") + field(4, b"\x08\x01"),
        scalar("", 1.0),
    ],
)
def test_what_is_no_scalar_is_left_out(log_dir, value):
    add(log_dir, event(step=1, summary=[value, scalar("kept", 1.0)]))
    assert values(EventFiles(str(log_dir))) == [(".", "kept", 1, 1.0)]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_a_loss_that_is_no_number_any_more_is_told_as_none(log_dir, number):
    add(log_dir, event(step=1, time=float("nan"), summary=[scalar("loss", number)]))
    assert EventFiles(str(log_dir)).look().scalars == [Scalar(".", "loss", 1, 0.0, None, str(number))]


def test_growing_files_new_files_and_runs_are_followed(log_dir):
    files = EventFiles(str(log_dir))
    assert values(files) == []
    add(log_dir / "train", event(step=1, summary=[scalar("loss", 4.0)]))
    assert values(files) == [("train", "loss", 1, 4.0)]
    assert values(files) == []
    add(log_dir / "train", event(step=2, summary=[scalar("loss", 2.0)]))
    add(log_dir / "train", event(step=3, summary=[scalar("loss", 1.0)]), name=NAME + ".2")
    add(log_dir / "eval" / "deep", event(step=2, summary=[scalar("loss", 8.0)]))
    assert sorted(values(files)) == [
        ("eval/deep", "loss", 2, 8.0),
        ("train", "loss", 2, 2.0),
        ("train", "loss", 3, 1.0),
    ]


def test_a_record_cut_short_is_read_when_the_rest_is_there(log_dir):
    record = framed(event(step=7, summary=[scalar("loss", 0.5)]))
    files = EventFiles(str(log_dir))
    for cut in range(len(record)):
        (log_dir / NAME).write_bytes(record[:cut])
        assert values(files) == []
    (log_dir / NAME).write_bytes(record)
    assert values(files) == [(".", "loss", 7, 0.5)]


@pytest.mark.parametrize("place", [0, 9, 14, -1])
def test_a_broken_record_ends_its_file_but_no_other(log_dir, place, capfd):
    broken = bytearray(framed(event(step=2, summary=[scalar("loss", 2.0)])))
    broken[place] ^= 0x40
    add(log_dir, event(step=1, summary=[scalar("loss", 1.0)]), name="a.tfevents.1")
    with open(log_dir / "a.tfevents.1", "ab") as file:
        file.write(broken)
    add(log_dir, event(step=3, summary=[scalar("loss", 3.0)]), name="a.tfevents.1")
    add(log_dir, event(step=4, summary=[scalar("loss", 4.0)]), name="b.tfevents.1")
    files = EventFiles(str(log_dir))
    assert values(files) == [(".", "loss", 1, 1.0), (".", "loss", 4, 4.0)]
    assert values(files) == []
    assert capfd.readouterr().err.count("is not read on") == 1


@pytest.mark.parametrize("message", [b"\xff" * 20, varint(5 << 3 | 2) + varint(100) + b"x", b"\x0f", b"\x28\x05"])
def test_a_whole_record_that_is_no_event_harms_nothing(log_dir, message):
    add(log_dir, message)
    assert values(EventFiles(str(log_dir))) == []


def test_a_large_record_is_stepped_over(log_dir):
    add(log_dir, b"g" * (3 << 20), event(step=1, summary=[scalar("loss", 1.0)]))
    assert values(EventFiles(str(log_dir))) == [(".", "loss", 1, 1.0)]


def test_a_look_is_bounded_and_the_next_goes_on(log_dir):
    content = framed(event(step=1, summary=[scalar("x" * 400_000, 1.0)]))
    (log_dir / NAME).write_bytes(content * 30)
    files = EventFiles(str(log_dir))
    looks = [len(values(files)) for _ in range(4)]
    assert sum(looks) == 30
    assert looks[0] < 30


def test_a_file_that_begins_anew_is_read_from_its_start(log_dir):
    files = EventFiles(str(log_dir))
    add(log_dir, event(step=1, summary=[scalar("a", 1.0)]), event(step=2, summary=[scalar("a", 2.0)]))
    assert len(values(files)) == 2
    (log_dir / NAME).write_bytes(framed(event(step=9, summary=[scalar("a", 9.0)])))
    assert values(files) == [(".", "a", 9, 9.0)]


def test_the_step_is_the_largest_seen(log_dir):
    add(log_dir, event(step=50), event(step=20), event(step=-1))
    assert EventFiles(str(log_dir)).look().step == 50


WRITE = """
    import sys, warnings
    warnings.simplefilter("ignore")
    import numpy as np
    import tensorflow as tf
    writer = tf.summary.create_file_writer(sys.argv[1] + "/v2")
    with writer.as_default():
        for step in range(100):
            tf.summary.scalar("loss", 1.0 / (step + 1), step=step)
            tf.summary.histogram("weights", np.arange(10.0), step=step)
            tf.summary.text("words", "many", step=step)
    writer.close()
    with tf.Graph().as_default():
        writer = tf.compat.v1.summary.FileWriter(sys.argv[1] + "/v1", tf.compat.v1.get_default_graph())
        for step in range(100):
            value = tf.compat.v1.Summary.Value(tag="loss", simple_value=step / 2)
            writer.add_summary(tf.compat.v1.Summary(value=[value]), step)
        writer.close()
"""


@pytest.mark.slow
def test_files_that_tensorflow_wrote_are_read_as_tensorboard_reads_them(log_dir):
    subprocess.run(
        [task_python(), "-c", textwrap.dedent(WRITE), str(log_dir)], check=True, capture_output=True, timeout=110
    )
    found = EventFiles(str(log_dir)).look()
    ours = {(one.run, one.tag, one.step): one.value for one in found.scalars}
    expected = {("v2", "loss", step): struct.unpack("f", struct.pack("f", 1 / (step + 1)))[0] for step in range(100)}
    expected.update({("v1", "loss", step): step / 2 for step in range(100)})
    assert ours == expected
    assert found.step == 99

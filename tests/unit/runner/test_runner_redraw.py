"""A line that is drawn again and again is kept as a terminal leaves it, and costs a bounded amount of memory."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster_runner.intake import Intake
from yardmaster_runner.redraw import LONGEST_SHOWN, Redraws, shown
from yardmaster_runner.spool import Spool

KERAS = (
    b"Epoch 1/2\n\r\x1b[1m1/2\x1b[0m \x1b[32m"
    + "━━".encode()
    + b"\x1b[0m\x1b[37m"
    + "━━".encode()
    + b"\x1b[0m \x1b[1m0s"
    b"\x1b[0m 238ms/step - loss: 1.9705" + b"\b" * 40 + b"\r\x1b[1m2/2\x1b[0m \x1b[32m" + "━━━━".encode() + b"\x1b[0m "
    b"\x1b[1m0s\x1b[0m 12ms/step - loss: 1.9576 \n"
)


def drawn(*chunks: bytes, limit: int = 1_000) -> bytes:
    redraws = Redraws(limit)
    return b"".join(redraws.feed(chunk) for chunk in chunks) + redraws.finish()


@pytest.mark.parametrize(
    ("written", "left"),
    [
        (b"10%\r20%\r30%\n", b"30%\n"),
        (b"\r 10%\r100% done\r\n", b"100% done\n"),
        (b"abc\rX\n", b"Xbc\n"),
        (b"abc\r\x1b[KX\n", b"X\n"),
        (b"abcdef\b\b\bX\n", b"abcXef\n"),
        (b"abc\b\b\b\b\b\bX\n", b"Xbc\n"),
        (b"abc\r\x1b[2Kd\n", b"d\n"),
        (b"wide bar\r        \r\n", b"\n"),
        (b"dos\r\nunix\n", b"dos\nunix\n"),
        ("ää\rö\n".encode(), "öä\n".encode()),
        (b"\xff\xfe\r\xfd\n", b"\xfd\xfe\n"),
        (b"\x1b[31mred\x1b[0m\rX\n", b"X\x1b[31med\x1b[0m\n"),
        (b"no end\rNO", b"NO end"),
        (b"grep\x1b[m\x1b[K stays\n", b"grep\x1b[m\x1b[K stays\n"),
        (b"\x00\x07binary\n", b"\x00\x07binary\n"),
    ],
)
def test_a_line_is_left_as_a_terminal_leaves_it(written: bytes, left: bytes) -> None:
    assert drawn(written) == left


def test_a_bar_of_keras_is_kept_in_its_last_state() -> None:
    assert drawn(KERAS).decode() == (
        "Epoch 1/2\n\x1b[1m2/2\x1b[0m \x1b[32m━━━━\x1b[0m \x1b[1m0s\x1b[0m 12ms/step - loss: 1.9576\n"
    )


PIECES = st.sampled_from([b"a", b"bc", "ä".encode(), b"\r", b"\b", b"\x1b[K", b"\x1b[1m", b"\x1b[0m", b"\n", b" "])


@given(st.lists(PIECES, max_size=16), st.data())
def test_it_is_the_same_however_the_output_is_cut_into_chunks(pieces: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    chunks = [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert drawn(*chunks) == drawn(whole)


@given(st.binary(max_size=300))
def test_any_bytes_are_drawn_without_harm(data: bytes) -> None:
    redraws = Redraws(64)
    assert redraws.feed(data).count(b"\n") == data.count(b"\n")
    shown(redraws.open)
    redraws.finish()


def test_lines_that_are_not_redrawn_pass_unchanged() -> None:
    data = bytes(range(14, 256)) + b"\n" + bytes(set(range(256)) - {8, 13}) + b"\n"
    assert drawn(data) == data


def test_a_million_redraws_and_a_line_without_end_take_little_memory() -> None:
    redraws = Redraws(128 << 10)
    for chunk in (b"x\r" * (1 << 19), b"%d\r" * (1 << 18), b"\r" + b"y" * 5_000, b"z" * 9_000 + b"\r"):
        redraws.feed(chunk)
        assert len(redraws.open) < 20_000
    passed = sum(len(redraws.feed(b"w" * (1 << 20))) for _ in range(10))
    assert passed >= 10 << 20
    assert len(redraws.open) < 128 << 10


def test_what_is_shown_of_an_open_line_is_its_latest_state_and_bounded() -> None:
    redraws = Redraws(128 << 10)
    redraws.feed(b"done\n" + b"\r".join(b"step %d" % step for step in range(100)))
    assert shown(redraws.open) == "step 99"
    redraws.feed("\r\x1b[Kaä".encode()[:-1])
    assert shown(redraws.open) == "a"
    redraws.feed(b"\r" + b"v" * 100_000)
    assert len(shown(redraws.open)) == LONGEST_SHOWN


def test_the_spool_gets_the_last_state_and_the_open_line_has_the_next_number(tmp_path) -> None:
    reader, writer = os.pipe()
    spool = Spool(str(tmp_path), 1 << 20)
    intake = Intake(reader, spool, 1_000, lambda: False)
    os.write(writer, b"first\n1/2\r2/2\nopen\rline")
    os.close(writer)
    assert intake._read_some()
    number, text = intake.open_line
    assert (number, shown(text)) == (2, "line")
    intake.run()
    piece = spool.next_piece(1 << 20)
    assert piece.data == b"first\n2/2\nline\n"
    assert intake.open_line == (3, b"")

"""Work on bytes that hold many lines, against the slow and obvious way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.logs.lines import BLOCK_BYTES, TIME_STEP, blocks_of, has_longer_line, line_start, thin_out

TEXTS = st.lists(st.binary(max_size=40).map(lambda raw: raw.replace(b"\n", b" ")), max_size=60)


def joined(texts: list[bytes]) -> bytes:
    return b"".join(text + b"\n" for text in texts)


@given(TEXTS, st.integers(0, 60), st.integers(0, 60))
def test_a_line_is_found_where_counting_finds_it(texts: list[bytes], skipped: int, line: int) -> None:
    data = joined(texts)
    skipped = min(skipped, len(texts))
    line = min(line, len(texts) - skipped)
    start = len(joined(texts[:skipped]))
    assert line_start(data, line, start) == len(joined(texts[: skipped + line]))


def test_a_line_is_found_far_inside_a_megabyte() -> None:
    texts = [b"x" * (number % 97) for number in range(30_000)]
    data = joined(texts)
    for line in (1, 4_095, 12_345, 29_999, 30_000):
        assert line_start(data, line) == len(joined(texts[:line]))


@given(TEXTS)
def test_a_line_that_does_not_exist_is_an_error(texts: list[bytes]) -> None:
    with pytest.raises(ValueError, match="fewer"):
        line_start(joined(texts), len(texts) + 1)


@given(TEXTS, st.integers(1, 45))
def test_long_lines_are_noticed(texts: list[bytes], limit: int) -> None:
    assert has_longer_line(joined(texts), limit) == any(len(text) > limit for text in texts)


@given(TEXTS.filter(bool), st.lists(st.tuples(st.integers(0, 70), st.integers(0, 100)), max_size=8), st.integers(0, 60))
def test_blocks_hold_every_line_once_with_its_time(
    texts: list[bytes], marks: list[tuple[int, int]], skipped: int
) -> None:
    times = sorted({offset: time * TIME_STEP for offset, time in marks}.items())
    skipped = min(skipped, len(texts) - 1)
    data = joined(texts)
    start = line_start(data, skipped)
    blocks = list(blocks_of(data, start, thin_out(times, skipped, default=7)))
    assert b"".join(data[block.start : block.end] for block in blocks) == data[start:]
    found = [block.time for block in blocks for _ in range(block.lines)]
    default = times[0][1] if times else 7
    expected = [
        max(((offset, time) for offset, time in times if offset <= line), default=(0, default))[1]
        for line in range(skipped, len(texts))
    ]
    assert found == expected


def test_blocks_are_bounded_unless_one_line_is_longer() -> None:
    data = b"a\n" * BLOCK_BYTES + b"b" * (3 * BLOCK_BYTES) + b"\n" + b"c\n" * 10
    blocks = list(blocks_of(data, 0, [(0, 1)]))
    assert all(block.end - block.start <= BLOCK_BYTES or block.lines == 1 for block in blocks)
    assert sum(block.lines for block in blocks) == BLOCK_BYTES + 11


def test_times_closer_than_a_step_are_one() -> None:
    assert thin_out([(0, 100), (5, 100 + TIME_STEP - 1), (9, 100 + TIME_STEP)], 0, default=0) == [
        (0, 100),
        (9, 100 + TIME_STEP),
    ]

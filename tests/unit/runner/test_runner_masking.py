"""A task's token does not get into its log, however the script writes it; nothing else is changed or held up."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster_runner.masking import MASK, TokenMask

TOKEN = b"ymt.0190a1b2c3d4e5f60718293a4b5c6d7e.1." + b"9f" * 32
OTHER = b"ymt.0190a1b2c3d4e5f60718293a4b5c6d7e.1." + b"7a" * 32


def masked(pieces: list[bytes], *tokens: bytes) -> bytes:
    mask = TokenMask(lambda: [token.decode() for token in tokens or (TOKEN,)])
    return b"".join(mask.feed(piece) for piece in pieces) + mask.finish()


def cut(data: bytes, places: list[int]) -> list[bytes]:
    at = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[a:b] for a, b in itertools.pairwise(at)]


PIECES = st.lists(st.sampled_from([TOKEN, OTHER, TOKEN[:-1], TOKEN[:5], b"ymt", b".", b"\n", b"loss 0.1 ", b"\xff"]))


@given(PIECES, st.lists(st.integers(0, 2000), max_size=12))
def test_a_token_is_masked_however_the_output_is_cut(words: list[bytes], places: list[int]) -> None:
    data = b"".join(words)
    assert masked(cut(data, places), TOKEN, OTHER) == data.replace(TOKEN, MASK).replace(OTHER, MASK)


@pytest.mark.parametrize(
    "around", [b"Bearer %s\n", b"http://portal/?token=%s&x=1\n", b"{'Authorization': '%s'}", b"%s%s"]
)
def test_it_is_masked_wherever_it_stands(around: bytes) -> None:
    text = around.replace(b"%s", TOKEN)
    assert TOKEN not in masked([text[:40], text[40:]])
    assert masked([text]) == around.replace(b"%s", MASK)


@given(PIECES)
def test_no_whole_line_is_held_back(words: list[bytes]) -> None:
    mask = TokenMask(lambda: [TOKEN.decode()])
    data = b"".join(words) + b"\n"
    assert mask.feed(data) == data.replace(TOKEN, MASK)


def test_without_a_token_or_with_a_word_for_one_nothing_is_changed() -> None:
    assert TokenMask(tuple).feed(b"as it is") == b"as it is"
    assert masked([b"abc"], b"") == b"abc"
    assert masked([b"abc"], b"b") == b"abc"


def test_a_hundred_megabytes_cost_little_beside_being_read() -> None:
    """Also of lines that look like tokens all along."""
    for line in (b"step 1 loss 0.25 and so on\n", TOKEN[:-1] + b"\n", b"y" * 100):
        chunk = (line * ((1 << 20) // len(line) + 1))[: 1 << 20]
        mask, begun = TokenMask(lambda: [TOKEN.decode()]), time.process_time()
        for _ in range(100):
            mask.feed(chunk)
        assert time.process_time() - begun < 2.0

from hypothesis import given
from hypothesis import strategies as st

from yardmaster_runner.lines import CUT, LineCutter


def cut(limit: int, *chunks: bytes) -> bytes:
    cutter = LineCutter(limit)
    return b"".join(cutter.feed(chunk) for chunk in chunks) + cutter.finish()


def test_whole_lines_pass_as_they_are():
    assert cut(100, b"a\nb\n", b"c\n") == b"a\nb\nc\n"


def test_a_partial_line_waits_for_its_rest():
    cutter = LineCutter(100)
    assert cutter.feed(b"a\nb") == b"a\n"
    assert cutter.feed(b"c\n") == b"bc\n"


def test_the_last_line_gets_its_newline_at_the_end():
    assert cut(100, b"a\nb") == b"a\nb\n"
    assert cut(100, b"a\n") == b"a\n"
    assert cut(100) == b""


def test_a_line_too_long_is_cut_and_marked():
    lines = cut(64, b"x" * 100 + b"\n").split(b"\n")
    assert lines[0] == b"x" * (63 - len(CUT)) + CUT
    assert b"".join(line.replace(CUT, b"") for line in lines) == b"x" * 100


def test_a_line_of_exactly_the_limit_is_not_cut():
    assert cut(64, b"x" * 63 + b"\n") == b"x" * 63 + b"\n"


def test_an_endless_line_is_cut_as_it_comes_and_takes_no_memory():
    cutter = LineCutter(1000)
    for _ in range(500):
        cutter.feed(b"y" * 1000)
        assert len(cutter.finish()) <= 1000


def test_a_progress_bar_is_cut_after_one_of_its_updates_and_not_marked():
    bar = b"".join(b"\r%3d%% [....]" % i for i in range(100)) + b"\n"
    whole = cut(64, bar)
    assert CUT not in whole
    assert whole.replace(b"\r\n", b"\r").replace(b"\n", b"") == bar.replace(b"\n", b"")
    assert all(line.count(b"%") >= 1 for line in whole.split(b"\n")[:-1])


def test_a_carriage_return_within_a_line_stays():
    assert cut(100, b"10%\r20%\r", b"30%\nx\r\n") == b"10%\r20%\r30%\nx\r\n"


def test_a_cut_does_not_fall_within_a_utf8_character():
    lines = cut(64, "ä€😀".encode() * 40).split(b"\n")
    for line in lines:
        line.replace(CUT, b"").decode()


def test_binary_passes_unchanged():
    data = bytes(range(256)) * 3
    assert cut(10_000, data + b"\n") == data + b"\n"


WITHOUT_MARKS = st.binary(max_size=300).map(lambda chunk: chunk.replace(b"[", b"("))


@given(st.lists(WITHOUT_MARKS), st.integers(64, 200))
def test_whatever_comes_every_line_is_whole_and_short_and_no_byte_is_lost(chunks, limit):
    cutter = LineCutter(limit)
    pieces = [cutter.feed(chunk) for chunk in chunks] + [cutter.finish()]
    for piece in pieces:
        assert not piece or piece.endswith(b"\n")
        assert all(len(line) < limit for line in piece.split(b"\n"))
    sent = b"".join(chunks)
    assert b"".join(pieces).replace(CUT, b"").replace(b"\n", b"") == sent.replace(b"\n", b"")


@given(st.lists(st.sampled_from([b"a", b"bb\n", b"\n", b"ccc\nd"])))
def test_short_lines_come_out_exactly_as_they_went_in(chunks):
    sent = b"".join(chunks)
    assert cut(1000, *chunks) == sent + (b"" if sent.endswith(b"\n") or not sent else b"\n")

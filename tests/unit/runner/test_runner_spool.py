import errno
import os
import resource
import shutil

import pytest

from yardmaster_runner.segments import BATCH_MARKS, Batch, Gap
from yardmaster_runner.spool import Spool
from yardmaster_runner.spool_folder import SpoolInUse

MIB = 1 << 20


@pytest.fixture
def spool(tmp_path):
    one = Spool(str(tmp_path / "spool"), 64 * MIB)
    yield one
    one.close()


def drain(spool, most=MIB):
    """Ship everything at once; the pieces."""
    pieces = []
    while (piece := spool.next_piece(most)) is not None:
        pieces.append(piece)
        spool.shipped_to(piece.end)
    return pieces


def text(pieces):
    return b"".join(piece.data for piece in pieces if isinstance(piece, Batch))


def test_what_goes_in_comes_out_in_order_and_numbered(spool):
    spool.append(b"a\nb\n", 1000)
    spool.append(b"c\n", 2000)
    (batch,) = drain(spool)
    assert batch == Batch(0, 3, b"a\nb\nc\n", ((0, 1000), (2, 2000)), 6)
    assert spool.waiting_lines == 0


def test_a_batch_stays_the_same_until_it_is_shipped(spool):
    spool.append(b"a\n", 1)
    assert spool.next_piece(MIB) == spool.next_piece(MIB)
    spool.shipped_to(1)
    assert spool.next_piece(MIB) is None


def test_a_batch_ends_at_a_line_and_has_at_most_so_many_bytes(spool):
    spool.append(b"".join(b"line %d\n" % i for i in range(1000)), 1)
    pieces = drain(spool, 100)
    assert all(len(piece.data) <= 100 and piece.data.endswith(b"\n") for piece in pieces)
    assert text(pieces).count(b"\n") == 1000
    assert [piece.first for piece in pieces[1:]] == [piece.end for piece in pieces[:-1]]


def test_a_batch_has_no_more_times_than_a_header_can_carry(spool):
    for i in range(1000):
        spool.append(b"x\n", i * 1000)
    pieces = drain(spool)
    assert max(len(piece.times) for piece in pieces) == BATCH_MARKS
    times = {piece.first + offset: ms for piece in pieces for offset, ms in piece.times}
    assert times == {i: i * 1000 for i in range(1000)}


def test_shipping_part_of_a_batch_goes_on_within_it(spool):
    spool.append(b"a\nbb\nccc\n", 5)
    spool.next_piece(MIB)
    spool.shipped_to(2)
    assert spool.next_piece(MIB).data == b"ccc\n"


def test_a_portal_that_lost_lines_gets_them_again_where_they_are_still_here(spool):
    spool.append(b"a\nb\nc\n", 5)
    spool.next_piece(MIB)
    spool.shipped_to(3)
    spool.shipped_to(1)
    assert text(drain(spool)) == b"b\nc\n"


def test_a_portal_that_lost_lines_gets_a_gap_where_they_are_gone(tmp_path):
    spool = Spool(str(tmp_path), MIB)
    for i in range(40):
        spool.append(b"%07d\n" % i * 1024, i)
    drain(spool)
    spool.shipped_to(5)
    gap, *rest = drain(spool)
    assert (gap.first, gap.size) == (5, 0)
    assert gap.end + sum(piece.lines for piece in rest) == 40 * 1024
    spool.close()


def test_past_the_bound_the_oldest_become_a_gap_with_exact_counts(tmp_path):
    spool = Spool(str(tmp_path), 512 << 10)
    lines = [b"%d %s" % (i, b"x" * (i % 90)) for i in range(40_000)]
    for at in range(0, len(lines), 500):
        spool.append(b"".join(line + b"\n" for line in lines[at : at + 500]), at)
    gap, *rest = drain(spool)
    assert isinstance(gap, Gap)
    assert gap.first == 0
    assert gap.size == sum(len(line) + 1 for line in lines[: gap.lines])
    assert text(rest) == b"".join(line + b"\n" for line in lines[gap.end :])
    assert len(text(rest)) > 300_000
    spool.close()


def test_what_was_under_way_when_it_was_dropped_is_counted_exactly_either_way(tmp_path):
    spool = Spool(str(tmp_path), 256 << 10)
    spool.append(b"first\n" * 1000, 0)
    under_way = spool.next_piece(600)
    spool.append(b"y" * 99 + b"\n", 0)
    for _ in range(10):
        spool.append(b"z" * 999 + b"\n" + b"z" * 99_999 + b"\n", 0)
    head = spool.next_piece(MIB)
    assert (head.first, head.lines, head.size) == (0, under_way.lines, len(under_way.data))
    spool.shipped_to(under_way.end)
    following = spool.next_piece(MIB)
    assert following.first == under_way.end
    assert isinstance(following, Gap)
    assert following.size > 5000
    spool.close()


def test_what_a_dead_process_left_is_found_and_numbered_on(tmp_path):
    spool = Spool(str(tmp_path / "a"), MIB)
    spool.append(b"a\nb\nc\n", 7000)
    spool.next_piece(MIB)
    spool.shipped_to(1)
    spool.base = 100
    spool.save()
    shutil.copytree(tmp_path / "a", tmp_path / "b")  # what a SIGKILL leaves
    heir = Spool(str(tmp_path / "b"), MIB)
    assert (heir.base, heir.line, heir.end, heir.recovered_end) == (100, 1, 3, 3)
    heir.append(b"d\n", 9000)
    first, second = drain(heir)
    assert (first.data, first.times) == (b"b\nc\n", ((0, 7000),))
    assert (second.first, second.data) == (3, b"d\n")
    heir.close()
    spool.close()


def test_a_line_cut_by_death_is_not_taken_for_a_line(tmp_path):
    spool = Spool(str(tmp_path / "a"), MIB)
    spool.append(b"a\nb\n", 7000)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    spool.close()
    with open(tmp_path / "b" / ("0" * 16 + ".log"), "ab") as file:
        file.write(b"half")
    heir = Spool(str(tmp_path / "b"), MIB)
    assert text(drain(heir)) == b"a\nb\n"
    heir.close()


def test_lost_marks_cost_only_the_exact_time(tmp_path):
    spool = Spool(str(tmp_path / "a"), MIB)
    spool.append(b"a\nb\n", 7000)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    spool.close()
    (tmp_path / "b" / ("0" * 16 + ".marks")).write_bytes(b"\x01\x02")
    heir = Spool(str(tmp_path / "b"), MIB)
    assert text(drain(heir)) == b"a\nb\n"
    heir.close()


def test_gaps_outlive_the_process(tmp_path):
    spool = Spool(str(tmp_path / "a"), 256 << 10)
    for _ in range(20):
        spool.append(b"z" * 99_999 + b"\n", 0)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    heir = Spool(str(tmp_path / "b"), 256 << 10)
    assert heir.next_piece(MIB) == spool.next_piece(MIB)
    assert heir.end == 20
    spool.close()
    heir.close()


def test_closing_leaves_nothing_when_all_is_shipped(tmp_path):
    spool = Spool(str(tmp_path), MIB)
    spool.append(b"a\n", 0)
    drain(spool)
    spool.close()
    assert not list(tmp_path.glob("*.log"))


def test_one_process_ships_from_a_spool(tmp_path):
    spool = Spool(str(tmp_path), MIB)
    with pytest.raises(SpoolInUse):
        Spool(str(tmp_path), MIB, lock_wait=0.1)
    spool.close()
    Spool(str(tmp_path), MIB, lock_wait=0.1).close()


@pytest.fixture
def no_large_files():
    """Files cannot grow past 100 kB: to the writer, the same as a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("no_large_files")
def test_a_write_that_fails_halfway_is_undone_and_held_in_memory(tmp_path):
    spool = Spool(str(tmp_path), 64 * MIB)
    lines = [b"%06d %s\n" % (i, b"x" * 992) for i in range(1000)]
    for at in range(0, 1000, 7):
        spool.append(b"".join(lines[at : at + 7]), at)
    assert text(drain(spool)) == b"".join(lines)
    spool.close()


class FullDisk(Spool):
    """A spool whose files cannot be written at all."""

    def _writable(self):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_costs_no_line_within_the_memory_bound(tmp_path):
    spool = FullDisk(str(tmp_path), 64 * MIB)
    for i in range(100):
        spool.append(b"%d\n" % i, i)
    assert text(drain(spool)) == b"".join(b"%d\n" % i for i in range(100))
    spool.close()


def test_a_disk_that_stays_full_makes_a_gap_past_the_memory_bound(tmp_path):
    spool = FullDisk(str(tmp_path), 64 * MIB)
    line = b"x" * 9999 + b"\n"
    for i in range(1000):
        spool.append(line, i)
    gap, *rest = drain(spool)
    assert isinstance(gap, Gap)
    assert gap.size == gap.lines * 10_000
    assert gap.lines + text(rest).count(b"\n") == 1000
    assert 3 * MIB < len(text(rest)) <= 5 * MIB
    spool.close()


def test_a_disk_that_was_full_is_used_again(tmp_path, monkeypatch):
    spool = FullDisk(str(tmp_path), 64 * MIB)
    spool.append(b"in memory\n", 1)
    monkeypatch.setattr(FullDisk, "_writable", Spool._writable)
    spool.append(b"x" * (256 << 10) + b"\n", 2)
    spool.append(b"on disk\n", 3)
    assert list(tmp_path.glob("*.log"))
    assert text(drain(spool)).startswith(b"in memory\nxx")
    spool.close()


def test_what_memory_held_goes_to_the_disk_at_the_end_if_it_can(tmp_path):
    spool = FullDisk(str(tmp_path), 64 * MIB)
    spool.append(b"a\nb\n", 5000)
    spool.close()
    heir = Spool(str(tmp_path), MIB)
    (batch,) = drain(heir)
    assert (batch.data, batch.times) == (b"a\nb\n", ((0, 5000),))
    heir.close()


def test_a_folder_that_cannot_be_made_is_no_reason_to_fail(tmp_path):
    (tmp_path / "file").write_text("in the way")
    spool = Spool(str(tmp_path / "file" / "spool"), MIB)
    spool.append(b"a\n", 1)
    assert text(drain(spool)) == b"a\n"
    spool.close()

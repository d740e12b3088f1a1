"""The store against its contract: numbered lines, written by offset, read from anywhere."""

from __future__ import annotations

import errno
import os
import threading
import uuid
from pathlib import Path

import pytest

from tests.unit.logs.conftest import JOB, numbered, stream
from yardmaster.errors import Unavailable
from yardmaster.job.spec import Role
from yardmaster.logs.keys import JobGone, LinesRejected, PastTheEnd, WrittenByAnother
from yardmaster.logs.reading import Gap
from yardmaster.logs.store import LogStore


def texts(store: LogStore, first: int = 0, limit: int = 10_000) -> list[bytes]:
    return [line.text for line in store.read(stream(), first, limit).lines]


def test_lines_come_back_with_their_numbers_and_times(store: LogStore) -> None:
    assert store.append(stream(), 0, b"a\nb\nc\n", [(0, 1000), (2, 2000)]).next_line == 3
    page = store.read(stream(), 0, 10)
    assert [tuple(line) for line in page.lines] == [(0, 1000, b"a"), (1, 1000, b"b"), (2, 2000, b"c")]
    assert page.next_line == 3


def test_a_repeated_write_changes_nothing(store: LogStore) -> None:
    store.append(stream(), 0, b"a\nb\n")
    assert store.append(stream(), 0, b"a\nb\n").next_line == 2
    assert store.append(stream(), 1, b"b\n").next_line == 2
    assert texts(store) == [b"a", b"b"]


def test_an_overlapping_write_adds_only_what_is_new(store: LogStore) -> None:
    store.append(stream(), 0, b"a\nb\n")
    assert store.append(stream(), 1, b"b\nc\nd\n", [(0, 10), (1, 30)]).next_line == 4
    assert texts(store) == [b"a", b"b", b"c", b"d"]
    assert store.read(stream(), 2, 1).lines[0].time == 30


def test_only_a_writer_s_own_lines_count_as_a_repeat(store: LogStore) -> None:
    assert store.append(stream(), 0, b"a\nb\n", writer=1).next_line == 2
    assert store.mark_gap(stream(), 2, 3, 30, 0, writer=2).next_line == 5
    assert store.append(stream(), 0, b"a\n", writer=0).next_line == 5, "nobody says who it is"
    for write in (
        lambda: store.append(stream(), 2, b"c\n", writer=1),
        lambda: store.append(stream(), 1, b"b\nc\n", writer=1),
        lambda: store.mark_gap(stream(), 1, 4, 1, 0, writer=2),
    ):
        with pytest.raises(WrittenByAnother) as refused:
            write()
        assert refused.value.next_line == 5
    assert store.mark_gap(stream(), 2, 3, 30, 0, writer=2).next_line == 5
    assert [store.place(stream(), writer) for writer in (0, 1, 2, 3)] == [(5, None), (5, 2), (5, 5), (5, None)]
    store.mark_end(stream(), 5)
    assert (
        store.append(stream(), 5, b"c\n", writer=1).next_line
        == store.append(stream(), 5, b"c\n", writer=1).next_line
        == 6
    )
    assert [store.place(stream(), writer) for writer in (1, 2)] == [(6, 6), (6, 5)]


def test_a_writer_s_last_line_is_found_behind_thousands_of_others(store: LogStore) -> None:
    store.append(stream(), 0, b"a\n", writer=1)
    for number in range(1, 2500):
        store.append(stream(), number, b"b\n", writer=2)
    assert store.place(stream(), 1) == (2500, 1)
    assert store.place(stream(), 2) == (2500, 2500)


def test_a_write_past_the_end_says_where_the_end_is_and_changes_nothing(store: LogStore) -> None:
    store.append(stream(), 0, b"a\n")
    with pytest.raises(PastTheEnd) as caught:
        store.append(stream(), 2, b"c\n")
    assert caught.value.next_line == 1
    assert texts(store) == [b"a"]


@pytest.mark.parametrize(
    ("data", "lines", "times"),
    [
        (b"no newline", None, []),
        (b"a\nb\n", 3, []),
        (b"a\n", 1, [(1, 5), (0, 6)]),
        (b"a\n", 1, [(0, -1)]),
    ],
)
def test_what_is_not_what_it_says_is_rejected(
    store: LogStore, data: bytes, lines: int | None, times: list[tuple[int, int]]
) -> None:
    with pytest.raises(LinesRejected):
        store.append(stream(), 0, data, times, lines=lines)
    assert store.next_line(stream()) == 0


def test_binary_and_empty_lines_stay_as_they_are(store: LogStore) -> None:
    data = b"\x00\xff\xfe\r\n\n\xe2\x82\n"
    store.append(stream(), 0, data)
    assert b"".join(store.raw(stream())) == data
    assert texts(store) == [b"\x00\xff\xfe\r", b"", b"\xe2\x82"]


def test_reading_starts_anywhere_and_from_the_end(store: LogStore) -> None:
    for first in range(0, 1000, 100):
        store.append(stream(), first, numbered(first, 100), [(0, first)])
    assert texts(store, 555, 3) == [b"line 555", b"line 556", b"line 557"]
    assert texts(store, -2) == [b"line 998", b"line 999"]
    assert texts(store, -5000, 1) == [b"line 0"]
    assert texts(store, 1000) == []
    assert store.read(stream(), 2000, 10).next_line == 2000


def test_a_page_is_bounded_in_bytes_but_never_empty(store: LogStore) -> None:
    store.append(stream(), 0, (b"x" * 999 + b"\n") * 5000)
    page = store.read(stream(), 0, 10_000, max_bytes=1)
    assert 0 < len(page.lines) < 5000
    assert page.next_line == len(page.lines)


def test_gaps_count_as_written_and_are_named(store: LogStore) -> None:
    store.append(stream(), 0, b"a\n", [(0, 5)])
    assert store.mark_gap(stream(), 1, 10, 700, 6).next_line == 11
    assert store.mark_gap(stream(), 1, 10, 700, 6).next_line == 11
    assert store.mark_gap(stream(), 5, 10, 300, 7).next_line == 15
    store.append(stream(), 15, b"b\n", [(0, 8)])
    page = store.read(stream(), 0, 10)
    assert [line.number for line in page.lines] == [0, 15]
    assert page.gaps == (Gap(1, 14, 1000, 6),)
    assert store.read(stream(), 15, 10).gaps == ()
    assert b"--- 14 lines (1000 bytes) were lost here ---" in b"".join(store.raw(stream()))


def test_a_gap_past_the_end_is_refused(store: LogStore) -> None:
    with pytest.raises(PastTheEnd):
        store.mark_gap(stream(), 3, 1, 0, 0)


def test_a_stream_ends_and_goes_on_after_a_restart(store: LogStore) -> None:
    store.append(stream(), 0, b"a\n")
    assert store.mark_end(stream(), 1) == 1
    assert store.mark_end(stream(), 1) == 1
    assert store.head(stream()).ended
    assert store.read(stream(), 0, 10).ended
    store.append(stream(), 1, b"b\n")
    assert not store.head(stream()).ended
    store.mark_end(stream(), 1)  # late, of the life before
    assert not store.head(stream()).ended


def test_an_end_before_all_lines_are_there_is_refused(store: LogStore) -> None:
    with pytest.raises(PastTheEnd):
        store.mark_end(stream(), 1)


def test_a_task_without_a_line_can_end(store: LogStore) -> None:
    store.mark_end(stream(), 0)
    assert [(info.lines, info.ended) for info in store.streams(JOB)] == [(0, True)]


def test_streams_are_listed_in_order_per_attempt(store: LogStore) -> None:
    for key in (stream(Role.PS), stream(index=10), stream(index=2), stream(attempt=2), stream(Role.CHIEF)):
        store.append(key, 0, b"a\n")
    assert [info.key.name for info in store.streams(JOB, 1)] == ["chief-0", "worker-2", "worker-10", "ps-0"]
    assert [info.key.attempt for info in store.streams(JOB)] == [1, 1, 1, 1, 2]
    assert store.streams(uuid.uuid4()) == []


def test_a_deleted_job_is_gone_and_can_be_deleted_again(store: LogStore, tmp_path: Path) -> None:
    store.append(stream(), 0, b"a\n")
    store.delete_job(JOB)
    store.delete_job(JOB)
    assert store.next_line(stream()) == 0
    assert [path.name for path in (tmp_path / "logs").iterdir()] == [".deleted"]


def test_a_half_deleted_job_is_deleted_whole_the_next_time(
    store: LogStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.append(stream(), 0, b"a\n")
    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", _no_right)
        with pytest.raises(Unavailable):
            store.delete_job(JOB)
    assert store.streams(JOB) == []
    store.delete_job(JOB)
    assert [path.name for path in (tmp_path / "logs").iterdir()] == [".deleted"]


def _no_right(path: Path) -> None:
    raise OSError(errno.EACCES, "Permission denied")


def test_writers_at_once_neither_lose_nor_double_a_line(store: LogStore, tmp_path: Path) -> None:
    """Four clients send the same log in pieces of different sizes, each with its own store."""

    def send(size: int) -> None:
        mine = LogStore(tmp_path / "logs")
        at = 0
        while at < 3000:
            count = min(size, 3000 - at)
            at = max(at + count, mine.append(stream(), at, numbered(at, count)).next_line)

    threads = [threading.Thread(target=send, args=(size,)) for size in (1, 7, 50, 333)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert b"".join(store.raw(stream())) == numbered(0, 3000)


class FullDisk:
    """`os.pwrite` on a disk with bytes_left for so many bytes: then a short write, then none."""

    def __init__(self, bytes_left: int) -> None:
        self.bytes_left = bytes_left
        self._pwrite = os.pwrite

    def __call__(self, descriptor: int, data: bytes, offset: int) -> int:
        if self.bytes_left <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        piece = bytes(data)[: self.bytes_left]
        self.bytes_left -= len(piece)
        return self._pwrite(descriptor, piece, offset)


@pytest.mark.parametrize("bytes_left", [0, 1, 40, 60, 61, 100, 123])
def test_a_full_disk_loses_no_acknowledged_line_and_keeps_no_half_of_one(
    store: LogStore, monkeypatch: pytest.MonkeyPatch, bytes_left: int
) -> None:
    store.append(stream(), 0, b"kept\n")
    with monkeypatch.context() as patch:
        patch.setattr("os.pwrite", FullDisk(bytes_left))
        with pytest.raises(Unavailable) as caught:
            store.append(stream(), 1, b"x" * 59 + b"\n")
    assert "disk space" in caught.value.remedy
    assert texts(store) == [b"kept"]
    store.append(stream(), 1, b"again\n")
    assert texts(store) == [b"kept", b"again"]


def test_an_index_that_rotted_is_reported_and_not_read_over(store: LogStore) -> None:
    for number in range(4):
        store.append(stream(), number, b"line\n")
    index = store.folder(stream()) / "index"
    raw = bytearray(index.read_bytes())
    raw[64 + 3] ^= 0xFF
    index.write_bytes(raw)
    with pytest.raises(Unavailable, match="damaged at record 1"):
        store.read(stream(), 0, 10)


def test_a_deleted_job_takes_no_more_lines_and_nothing_is_left_of_them(store: LogStore, tmp_path: Path) -> None:
    store.append(stream(), 0, b"one\n", [(0, 1)])
    store.delete_job(JOB)
    for write in (
        lambda: store.append(stream(), 0, b"late\n", [(0, 1)]),
        lambda: store.mark_gap(stream(), 0, 1, 1, 1),
        lambda: store.mark_end(stream(), 0),
    ):
        with pytest.raises(JobGone):
            write()
    assert store.keys(JOB) == []
    assert [path.parent.name for path in tmp_path.rglob("*") if path.is_file()] == [".deleted"]


def test_a_line_that_was_being_written_while_its_job_was_deleted_goes_with_it(store: LogStore, tmp_path: Path) -> None:
    store.append(stream(), 0, b"one\n", [(0, 1)])
    with store._writer(stream()) as writer:
        store.delete_job(JOB)
        writer.add_end()
    assert [path.parent.name for path in tmp_path.rglob("*") if path.is_file()] == [".deleted"]


def test_the_note_of_a_deleted_job_goes_later_and_takes_what_is_left_along(store: LogStore, tmp_path: Path) -> None:
    store.delete_job(JOB)
    left = store.folder(stream())
    left.mkdir(parents=True)
    store.forget_deleted(3600)
    assert left.exists()
    store.forget_deleted(-1)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert not left.exists()

"""An attempt's log is counted and bounded, whatever is written, and by whichever process."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.logs.conftest import JOB, numbered, stream
from yardmaster.job.spec import Role
from yardmaster.logs.merge import Cursor, read_merged
from yardmaster.logs.records import RECORD_BYTES
from yardmaster.logs.search import NOTHING_COUNTED, Position, Query, count_levels, finder_for, scan
from yardmaster.logs.store import LogStore, gap_text
from yardmaster.logs.volume import Cause, NeedsGrant, Refusal, Volume

LIMIT = 1 << 20
FULL = Refusal(Cause.LOG_LIMIT, LIMIT)


@pytest.fixture
def counted(tmp_path) -> LogStore:
    store = LogStore(tmp_path / "logs", LIMIT)
    store.grant(JOB, 1, LIMIT)
    return store


def on_disk(store: LogStore) -> int:
    return sum(file.stat().st_size for file in store.root.rglob("*") if file.name in ("lines", "index"))


def test_nothing_is_made_for_an_attempt_that_nobody_was_charged_for(tmp_path):
    store = LogStore(tmp_path / "logs", LIMIT)
    for write in (
        lambda: store.append(stream(), 0, b"a\n"),
        lambda: store.mark_gap(stream(), 0, 1, 1, 0),
        lambda: store.mark_end(stream(), 0),
    ):
        with pytest.raises(NeedsGrant):
            write()
    assert not (tmp_path / "logs").exists()


def test_what_is_counted_is_what_is_on_the_disk_also_by_another_process(counted):
    counted.append(stream(), 0, numbered(0, 500), [(n, n * 20) for n in range(500)])
    LogStore(counted.root, LIMIT).append(stream(Role.PS), 0, b"b\n")
    counted.mark_gap(stream(Role.PS), 1, 5, 50, 0)
    counted.mark_end(stream(Role.PS), 6)
    assert counted.volume(JOB, 1).used == on_disk(counted) > 500 * RECORD_BYTES
    assert counted.settle(JOB, 1) == on_disk(counted)


def test_a_count_that_is_lost_is_taken_again_from_the_streams(counted):
    counted.append(stream(), 0, b"a\n" * 5000)
    for file in counted.root.rglob("1.volume"):
        file.write_bytes(b"torn")
    counted.grant(JOB, 1, LIMIT)
    assert counted.volume(JOB, 1).used == on_disk(counted)


def test_lines_past_the_limit_are_one_gap_however_many_come(counted):
    line = b"x" * 99 + b"\n"
    for number in range(200):
        written = counted.append(stream(), number * 1000, line * 1000, writer=number % 3 + 1)
        assert written.next_line == (number + 1) * 1000
    assert written.refusal == FULL
    (gap,) = counted.streams(JOB)[0].gaps
    assert (gap.first_line, gap.lines, gap.dropped_bytes) == (10_000, 190_000, 19_000_000)
    assert gap.why == FULL
    assert on_disk(counted) <= LIMIT
    assert b"190000 lines (19000000 bytes) dropped: log limit of 1 MiB per attempt" in gap_text(gap)
    assert counted.read(stream(), 9_999, 10).gaps == (gap,)


def test_gaps_that_follow_each_other_are_one_record_whoever_marks_them(counted):
    for number in range(1000):
        assert counted.mark_gap(stream(), number, 1, 1 << 52, 0, writer=number % 3 + 1).next_line == number + 1
    assert on_disk(counted) == counted.volume(JOB, 1).used == RECORD_BYTES
    (gap,) = counted.read(stream(), 0, 10).gaps
    assert (gap.first_line, gap.lines) == (0, 1000)


def test_marks_need_a_grant_and_close_the_log_as_lines_do(tmp_path):
    """A task that marks gaps and ends in turn, and never writes a line."""
    limit = 100 * RECORD_BYTES
    store = LogStore(tmp_path / "logs", limit)
    store.grant(JOB, 1, RECORD_BYTES)
    store.mark_gap(stream(), 0, 1, 1, 0)
    with pytest.raises(NeedsGrant):
        store.mark_end(stream(), 1)
    store.grant(JOB, 1, 2 * RECORD_BYTES)
    store.mark_end(stream(), 1)
    with pytest.raises(NeedsGrant):
        store.mark_gap(stream(), 1, 1, 1, 0)
    store.grant(JOB, 1, limit)
    for number in range(1, 500):
        written = store.mark_gap(stream(), number, 1, 1, 0)
        store.mark_end(stream(), number + 1, 10 * RECORD_BYTES)
    assert written.refusal == Refusal(Cause.LOG_LIMIT, limit)
    assert store.volume(JOB, 1).used == on_disk(store) <= limit + 22 * RECORD_BYTES
    assert store.next_line(stream()) == 500


def test_a_namespace_that_is_full_takes_no_more_marks_than_a_log_at_its_limit(counted):
    counted.refuse(JOB, 1, Refusal(Cause.NAMESPACE_LIMIT, 1 << 40), 3600)
    for number in range(500):
        counted.mark_gap(stream(), number, 1, 1, 0)
        counted.mark_end(stream(), number + 1, 10 * RECORD_BYTES)
    assert on_disk(counted) <= 22 * RECORD_BYTES


def test_a_page_ends_after_so_many_records_and_is_read_on(store, monkeypatch):
    for number in range(0, 300, 2):
        store.mark_gap(stream(), number, 1, 1, 0)
        store.mark_end(stream(), number + 1)
        store.append(stream(), number + 1, b"line\n")
    whole = store.read(stream(), 0, 1000)
    for module in ("store", "merge"):
        monkeypatch.setattr(f"yardmaster.logs.{module}.PAGE_RECORDS", 7)
    lines, place, cursor, merged = [], 0, Cursor(1), []
    while place < 300:
        page = store.read(stream(), place, 1000)
        assert place < page.next_line
        assert page.next_line - place <= 7
        lines += page.lines
        place = page.next_line
    assert tuple(lines) == whole.lines
    while len(merged) < 150:
        page = read_merged(store, JOB, cursor, 1000)
        assert page.cursor != cursor
        assert len(page.lines) + len(page.gaps) <= 7
        merged += [line for _, line in page.lines]
        cursor = page.cursor
    assert tuple(merged) == whole.lines


def test_searching_and_counting_stop_in_time_among_gaps(store):
    for number in range(100):
        store.mark_gap(stream(), number, 1, 1, 0)
        store.mark_end(stream(), number + 1)
    page = scan(store, [stream()], finder_for(Query("line")), Position(0, 0), 10, deadline=0.0)
    assert page.next == Position(0, 1)
    assert count_levels(store, stream(), NOTHING_COUNTED, deadline=0.0).lines == 1


def test_lines_may_be_left_to_a_task_that_counts_them_itself_and_sends_the_last(counted):
    assert counted.append(stream(), 0, b"a" * LIMIT + b"\n", leave=True).next_line == 0
    assert counted.mark_gap(stream(), 0, 7, 70, 0).refusal == FULL
    assert counted.append(stream(), 7, b"why\n", tail_reserve=200) == counted.append(stream(), 7, b"why\n")
    for number in range(8, 20):
        counted.append(stream(), number, b"more\n", tail_reserve=200)
    assert [line.text for line in counted.read(stream(), 0, 100).lines] == [b"why", b"more"]
    assert [gap.why for gap in counted.streams(JOB)[0].gaps] == [FULL, FULL]


def test_a_raised_limit_opens_the_log_again(counted):
    counted.append(stream(), 0, b"a" * LIMIT + b"\n")
    raised = LogStore(counted.root, 4 * LIMIT)
    with pytest.raises(NeedsGrant):
        raised.append(stream(), 1, b"b" * LIMIT + b"\n")
    raised.grant(JOB, 1, 2 * LIMIT)
    assert raised.append(stream(), 1, b"b" * LIMIT + b"\n").refusal is None


def test_a_refused_grant_closes_the_log_for_a_while(counted):
    full = Refusal(Cause.STORAGE_QUOTA, 5 << 20)
    counted.refuse(JOB, 1, full, 3600)
    assert counted.append(stream(), 0, b"a\n").refusal == full
    counted.refuse(JOB, 1, full, 0)
    assert counted.append(stream(), 1, b"b\n").refusal is None


@given(st.sampled_from(Cause), st.integers(0, 1 << 60))
def test_a_gap_remembers_its_cause_and_about_its_bound(cause, bound):
    found = Refusal.unpack(Refusal(cause, bound).pack())
    assert found.cause is cause
    assert found.bound == min(-(-bound // (1 << 20)), (1 << 28) - 1) << 20


@given(st.lists(st.tuples(st.integers(1, 400), st.booleans()), max_size=60), st.integers(0, 2000), st.integers(0, 500))
def test_no_more_is_taken_than_the_limit_and_the_reserve(writes, limit, reserve):
    volume, now = Volume(granted=10**9), 0
    for size, is_tail in writes:
        volume, refusal = volume.with_lines(size, limit, now, reserve if is_tail else 0)
        assert volume.used <= limit + reserve
        assert volume.tails <= reserve
        assert refusal is None or refusal.cause == Cause.LOG_LIMIT

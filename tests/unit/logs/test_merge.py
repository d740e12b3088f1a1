"""Many streams in time order, page by page."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.logs.conftest import JOB, numbered, stream
from yardmaster.job.spec import Role
from yardmaster.logs.keys import LinesRejected, StreamKey
from yardmaster.logs.merge import Cursor, position_merged, raw_merged, read_merged, skip_merged, tail_merged
from yardmaster.logs.reading import Gap
from yardmaster.logs.store import LogStore

BEGIN = Cursor(1)
CHUNKS = st.lists(st.tuples(st.sampled_from([0, 1, 2]), st.integers(1, 30), st.integers(0, 50)), max_size=20)


def fill(store: LogStore, chunks: list[tuple[int, int, int]], ends: dict[int, int]) -> None:
    for index, count, time in chunks:
        key = stream(index=index)
        first = ends.get(index, 0)
        ends[index] = store.append(key, first, numbered(first, count), [(0, time * 100)]).next_line


def names(store: LogStore, cursor: Cursor, limit: int) -> tuple[list[tuple[str, int]], Cursor]:
    page = read_merged(store, JOB, cursor, limit)
    return [(key.name, line.number) for key, line in page.lines], page.cursor


def test_lines_of_all_tasks_come_by_time(store: LogStore) -> None:
    store.append(stream(index=0), 0, b"a\nd\n", [(0, 1000), (1, 4000)])
    store.append(stream(index=1), 0, b"b\nc\n", [(0, 2000), (1, 3000)])
    page = read_merged(store, JOB, BEGIN, 10)
    assert [line.text for _, line in page.lines] == [b"a", b"b", b"c", b"d"]
    assert not page.ended


@settings(max_examples=60, deadline=None)
@given(CHUNKS, CHUNKS, st.integers(1, 40))
def test_pages_repeat_and_skip_nothing_while_streams_grow(
    before: list[tuple[int, int, int]], later: list[tuple[int, int, int]], limit: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, ends = LogStore(Path(folder)), {}
        fill(store, before, ends)
        seen, cursor = names(store, BEGIN, limit)
        fill(store, later, ends)
        while True:
            more, cursor = names(store, Cursor.decode(cursor.encode()), limit)
            if not more:
                break
            seen += more
        assert len(seen) == len(set(seen)) == sum(ends.values())
        for index in ends:  # each task's own lines stay in order
            mine = [number for name, number in seen if name == f"worker-{index}"]
            assert mine == sorted(mine)


@settings(max_examples=40, deadline=None)
@given(CHUNKS, st.integers(1, 100))
def test_the_pages_are_the_same_whatever_their_size(chunks: list[tuple[int, int, int]], limit: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = LogStore(Path(folder))
        fill(store, chunks, {})
        whole, _ = names(store, BEGIN, 10_000)
        parts, cursor = names(store, BEGIN, limit)
        while more := names(store, cursor, limit):
            if not more[0]:
                break
            parts += more[0]
            cursor = more[1]
        assert parts == whole


def test_the_tail_is_the_newest_lines_of_all_tasks(store: LogStore) -> None:
    for number in range(50):
        store.append(stream(index=number % 2), number // 2, b"n\n", [(0, number * 100)])
    page = read_merged(store, JOB, tail_merged(store, JOB, 1, 4), 100)
    assert sorted(line.time for _, line in page.lines) == [4600, 4700, 4800, 4900]


def test_gaps_come_in_their_place(store: LogStore) -> None:
    store.append(stream(), 0, b"a\n", [(0, 0)])
    store.mark_gap(stream(), 1, 5, 100, 10)
    store.append(stream(), 6, b"b\n", [(0, 20)])
    page = read_merged(store, JOB, BEGIN, 10)
    assert [(line.number, line.text) for _, line in page.lines] == [(0, b"a"), (6, b"b")]
    assert page.gaps == ((stream(), Gap(1, 5, 100, 10)),)


def test_a_job_with_more_tasks_than_files_may_be_open_is_merged(store: LogStore) -> None:
    for index in range(150):
        for number in range(3):
            store.append(stream(Role.WORKER, index), number, b"x\n", [(0, number * 1000 + index)])
    page = read_merged(store, JOB, BEGIN, 10_000)
    times = [line.time for _, line in page.lines]
    assert len(times) == 450
    assert times == sorted(times)


def test_it_has_ended_when_every_task_has_and_all_was_read(store: LogStore) -> None:
    for index in (0, 1):
        store.append(stream(index=index), 0, b"a\nb\n")
        store.mark_end(stream(index=index), 2)
    page = read_merged(store, JOB, BEGIN, 3)
    assert not page.ended
    assert read_merged(store, JOB, page.cursor, 3).ended


def test_an_attempt_without_streams_has_not_ended(store: LogStore) -> None:
    assert not read_merged(store, JOB, BEGIN, 10).ended


def test_the_download_names_the_task_on_every_line(store: LogStore) -> None:
    store.append(stream(index=0), 0, b"a\n\n", [(0, 1)])
    store.append(StreamKey(JOB, 1, Role.PS, 0), 0, b"b\n", [(0, 500)])
    store.mark_gap(stream(index=0), 2, 3, 30, 900)
    assert b"".join(raw_merged(store, JOB, 1)) == (
        b"[worker-0] a\n[worker-0] \n[ps-0] b\n[worker-0] --- 3 lines (30 bytes) were lost here ---\n"
    )


@pytest.mark.parametrize("text", ["", "x", "AAAA", "W10", "WzEsIDJd", "WzEseyJhIjotMX1d", "WzEseyJhIjoxLjV9XQ", "é"])
def test_a_cursor_that_was_not_given_out_is_refused(text: str) -> None:
    with pytest.raises(LinesRejected):
        Cursor.decode(text)


@settings(max_examples=60, deadline=None)
@given(CHUNKS, st.integers(1, 40), st.data())
def test_pages_read_backwards_meet_and_repeat_nothing(
    chunks: list[tuple[int, int, int]], count: int, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, ends = LogStore(Path(folder)), {}
        fill(store, chunks, ends)
        until = {f"worker-{index}": data.draw(st.integers(0, end)) for index, end in ends.items()}
        seen: list[tuple[str, int]] = []
        place = until
        while any(place.values()):
            start = tail_merged(store, JOB, 1, count, place)
            page = read_merged(store, JOB, start, 10_000, until=place)
            assert {name: line for name, line in page.cursor.lines.items() if line} == {
                k: v for k, v in place.items() if v
            }
            seen = [(key.name, line.number) for key, line in page.lines] + seen
            place = dict(start.lines)
        assert len(seen) == len(set(seen)) == sum(until.values())


@settings(max_examples=60, deadline=None)
@given(CHUNKS, st.data())
def test_any_place_is_found_as_reading_from_the_beginning_finds_it(
    chunks: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, ends = LogStore(Path(folder)), {}
        fill(store, chunks, ends)
        everything, _ = names(store, BEGIN, 10_000)
        skipped = data.draw(st.integers(0, len(everything) + 3))
        rest, _ = names(store, skip_merged(store, JOB, 1, skipped), 10_000)
        assert rest == everything[skipped:]
        for at, (name, line) in enumerate(everything[:5]):
            index = int(name.partition("-")[2])
            found, _ = names(store, position_merged(store, stream(index=index), line), 10_000)
            assert found == everything[at:]


def test_a_gap_is_cut_where_reading_ends(store: LogStore) -> None:
    store.append(stream(), 0, b"a\n", [(0, 1)])
    store.mark_gap(stream(), 1, 10, 100, 2)
    page = read_merged(store, JOB, BEGIN, 10, until={"worker-0": 4})
    assert [(gap.first_line, gap.lines) for _, gap in page.gaps] == [(1, 3)]
    assert page.cursor.lines == {"worker-0": 4}

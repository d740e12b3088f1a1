"""Searching the log where it lies."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.logs.conftest import numbered, stream
from yardmaster.logs import search as searching
from yardmaster.logs.keys import LinesRejected
from yardmaster.logs.levels import Level, level_of
from yardmaster.logs.search import Position, Query, finder_for, search
from yardmaster.logs.store import LogStore

BEGIN = Position(0, 0)


def found(store: LogStore, query: Query, *, start: Position = BEGIN, limit: int = 100, streams: int = 1) -> list[int]:
    keys = [stream(index=index) for index in range(streams)]
    return [line.number for _, line in search(store, keys, query, start, limit, 5.0).matches]


def test_clearml_web_34_the_filter_searches_the_whole_log_and_not_what_a_browser_loaded(store: LogStore) -> None:
    lines = 200_000
    store.append(stream(), 0, numbered(0, lines).replace(b"line 7\n", b"needle\n"), [(0, 1)])
    store.append(stream(), lines, b"the last needle\n", [(0, 5000)])
    page = search(store, [stream()], Query("needle"), BEGIN, 10, 5.0)
    assert [(line.number, line.time, line.text) for _, line in page.matches] == [
        (7, 1, b"needle"),
        (lines, 5000, b"the last needle"),
    ]
    assert page.next is None


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (Query("loss"), [0, 1, 3]),
        (Query("LOSS", case=True), [1]),
        (Query("größe"), [2, 3]),
        (Query("größe", case=True), [3]),
        (Query("a.b"), [4]),
        (Query("a.b", regex=True), [4, 5]),
        (Query(r"^loss \d+$", regex=True), [0]),
        (Query(r"LOSS$", regex=True, case=True), [1]),
        (Query(r"\s+$", regex=True), [6]),
        (Query(r"größe", regex=True), [2, 3]),
        (Query("absent"), []),
    ],
)
def test_text_and_expressions_find_their_lines(store: LogStore, query: Query, expected: list[int]) -> None:
    lines = ["loss 12", "the LOSS", "GRÖSSE GRÖßE", "größe, loss", "a.b", "axb", "end ", "\ufffd"]
    store.append(stream(), 0, "".join(line + "\n" for line in lines).encode() + b"\xff\n")
    assert found(store, query) == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text("abAB \xe9", max_size=6), min_size=1, max_size=20), st.text("abAB\xe9", min_size=1, max_size=2))
def test_plain_text_finds_what_line_by_line_finds(lines: list[str], text: str) -> None:
    data = "".join(line + "\n" for line in lines).encode()
    for case in (False, True):
        fold = str if case else str.lower
        expected = [number for number, line in enumerate(lines) if fold(text) in fold(line)]
        assert list(finder_for(Query(text, case=case))(data)) == expected


def test_a_page_says_where_the_search_goes_on(store: LogStore) -> None:
    for index in (0, 1):
        store.append(stream(index=index), 0, numbered(0, 30))
    keys, at, seen = [stream(index=0), stream(index=1)], BEGIN, []
    while at is not None:
        page = search(store, keys, Query("5"), at, 2, 5.0)
        seen += [(key.index, line.number) for key, line in page.matches]
        at = page.next
    assert seen == [(index, number) for index in (0, 1) for number in (5, 15, 25)]


def test_a_search_without_time_says_where_it_stopped(store: LogStore) -> None:
    store.append(stream(), 0, numbered(0, 10))
    page = search(store, [stream()], Query("line"), Position(0, 4), 100, seconds=-1.0)
    assert page.matches == ()
    assert page.next == Position(0, 4)


def test_levels_are_found_with_those_above(store: LogStore) -> None:
    store.append(stream(), 0, b"INFO a\nWARNING b\nplain ERRORS\nERROR c\nDEBUG d\nINFO e\n")
    assert found(store, Query(level=Level.ERROR)) == [3]
    assert found(store, Query(level=Level.WARNING)) == [1, 3]
    assert found(store, Query(level=Level.INFO)) == [0, 1, 3, 5]
    assert found(store, Query("e", level=Level.INFO)) == [3, 5]
    assert found(store, Query("[ce]$", regex=True, level=Level.INFO)) == [3, 5]


def test_gaps_and_absent_streams_are_passed_over(store: LogStore) -> None:
    store.append(stream(index=1), 0, b"needle\n")
    store.mark_gap(stream(index=1), 1, 5, 0, 0)
    store.append(stream(index=1), 6, b"needle\n")
    assert found(store, Query("needle"), streams=3) == [0, 6]
    assert found(store, Query("n.edle", regex=True), streams=3) == [0, 6]


def test_an_expression_that_would_run_for_ever_is_stopped_and_explained(store: LogStore) -> None:
    store.append(stream(), 0, b"a" * 60 + b"!\n")
    begun = time.monotonic()
    with pytest.raises(LinesRejected) as caught:
        search(store, [stream()], Query("(a+)+$", regex=True), BEGIN, 10, 4.0)  # a Python must start in it
    assert time.monotonic() - begun < 22
    assert "nested" in caught.value.remedy


def test_what_was_found_before_a_stuck_line_is_kept(store: LogStore) -> None:
    store.append(stream(), 0, b"aa\n" * 3)
    store.append(stream(), 3, b"a" * 60 + b"!\n", [(0, 100)])
    page = search(store, [stream()], Query("(a+)+$", regex=True), BEGIN, 1, 5.0)
    assert [line.number for _, line in page.matches] == [0]
    assert page.next == Position(0, 1)


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "[z-a]", "(?P<x>a)(?P<x>b)"])
def test_a_wrong_expression_is_explained(store: LogStore, pattern: str) -> None:
    with pytest.raises(LinesRejected, match="regular expression is invalid"):
        found(store, Query(pattern, regex=True))


@pytest.mark.parametrize("text", ["", "a\nb", "x" * (searching.QUERY_LIMIT + 1)])
def test_a_query_must_be_something_to_look_for(text: str) -> None:
    with pytest.raises(LinesRejected):
        Query(text)


@pytest.mark.parametrize(("line", "level"), json.loads(Path(__file__).with_name("level_cases.json").read_text()))
def test_a_line_s_lead_tells_its_level(line: str, level: str | None) -> None:
    """The browser's rules are tested with the same lines (frontend/tests/levels.test.ts)."""
    assert level_of(line.encode()) == (None if level is None else Level[level.upper()])


def test_a_text_is_found_as_people_see_it_across_colours(store: LogStore) -> None:
    store.append(stream(), 0, b"\x1b[32mstep\x1b[0m 41\n\x1b[32mstep\x1b[0m \x1b[1m42\x1b[0m\nstep 43\n", [(0, 1)])
    assert found(store, Query("step 42")) == [1]
    assert found(store, Query("^step 4[23]$", regex=True)) == [1, 2]
    page = search(store, [stream()], Query("step 42"), BEGIN, 10, 5.0)
    assert page.matches[0][1].text.startswith(b"\x1b[32m"), "the line itself is as it was written"


@settings(max_examples=200)
@given(st.text("EWIF ERORWARNING:[]0123456789-.Trace\t", max_size=40).map(str.encode))
def test_every_line_of_a_level_is_a_candidate(line: bytes) -> None:
    from yardmaster.logs.levels import candidates

    level = level_of(line)
    if level is not None:
        assert candidates(level).search(line + b"\n")


def test_a_search_of_a_job_without_logs_is_empty(store: LogStore) -> None:
    assert search(store, [], Query("x"), BEGIN, 10, 1.0).next is None
    assert search(store, [], Query("x", regex=True), BEGIN, 10, 1.0).next is None

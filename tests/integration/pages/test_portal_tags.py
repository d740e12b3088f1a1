"""Times, sizes, states and pages in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.template import Context, Template
from django.test import RequestFactory

from apps.api.paging import Cursor, Page, page_of
from apps.api.templatetags.portal_tags import amount, duration, quota_bar, relative, size
from apps.errors import Invalid
from yardmaster.ids import new_id

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def shown(template: str, /, **context: object) -> str:
    return Template("{% load portal_tags %}" + template).render(Context(context))


@pytest.mark.parametrize(
    ("ago", "words"),
    [(0, "just now"), (42, "42 s ago"), (60, "1 min ago"), (7_199, "1 h ago"), (86_400, "1 day ago"),
     (200_000, "2 days ago"), (-90, "in 1 min"), (-3, "just now")],
)  # fmt: skip
def test_times_are_relative(ago, words):
    assert relative(NOW - timedelta(seconds=ago), NOW) == words


def test_a_time_is_relative_to_read_and_absolute_to_point_at():
    with time_machine.travel(NOW, tick=False):
        text = shown("{% when at %}", at=NOW - timedelta(minutes=5))
    assert 'datetime="2026-11-21T11:55:00.000Z"' in text
    assert 'title="Sat 21 Nov 2026, 11:55:00 UTC"' in text
    assert ">5 min ago</time>" in text
    assert shown('{% when at "never" %}', at=None) == "never"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59.6, "1 min 0 s"), (185, "3 min 5 s"), (7_800, "2 h 10 min"), (172_800, "2 days"),
     (timedelta(days=4, hours=3), "4 days 3 h"), (-5, "0 s"), (None, "")],
)  # fmt: skip
def test_stretches_of_time_are_words(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (64 << 30, "64 GiB"), (5 << 60, "5120 PiB")]
)
def test_bytes_are_words(count, words):
    assert size(count) == words


def test_amounts_have_no_needless_zeros():
    assert amount(4.500) == "4.5"
    assert amount(16.0) == "16"
    assert amount(12_000) == "12,000"
    assert amount(None) == "no limit"


def test_a_state_is_a_word_beside_a_shape():
    text = shown("{% phase_badge phase %}", phase="FAILED")
    assert "Failed" in text
    assert "icons" in text
    assert "&lt;b&gt;" in shown("{% phase_badge phase %}", phase="<b>")


def test_what_is_copied_is_text():
    assert "<script>" not in shown("{% copyable text %}", text="</code><script>x</script>")


@pytest.mark.parametrize(("used", "reserved", "hard"), [(0, 0, 0), (5, 0, 0), (150, 20, 100), (10, 10, 100)])
def test_a_bar_never_leaves_its_frame(used, reserved, hard):
    widths = [float(part.split('"')[0]) for part in quota_bar(used, reserved, hard).split('width="')[1:]]
    assert all(0 <= width <= 100 for width in widths)


class Listed:
    """Rows by id, newest first, as a list of more than one query gives them."""

    def __init__(self, count: int) -> None:
        self.rows = [Row() for _ in range(count)]

    def page(self, cursor: Cursor | None, limit: int) -> list[Row]:
        if cursor is None:
            return self.rows[::-1][:limit]
        if cursor.newer:
            return [row for row in self.rows if row.pk > cursor.at][:limit]
        return [row for row in self.rows[::-1] if row.pk < cursor.at][:limit]


class Row:
    def __init__(self) -> None:
        self.pk = new_id()


def test_one_walks_through_all_pages_and_back():
    listed = Listed(7)
    newest = listed.rows[::-1]
    first = page_of(listed, "", 3)
    second = page_of(listed, first.older_cursor, 3)
    third = page_of(listed, second.older_cursor, 3)
    assert [*first.rows, *second.rows, *third.rows] == newest
    assert (first.newer_cursor, third.older_cursor) == (None, None)
    assert page_of(listed, third.newer_cursor, 3).rows == second.rows
    assert page_of(listed, second.newer_cursor, 3).rows == first.rows
    assert page_of(listed, second.newer_cursor, 3).newer_cursor is None


def test_a_cursor_that_is_none_is_a_problem_to_show():
    with pytest.raises(Invalid):
        page_of(Listed(1), "nonsense", 3)


def test_pages_keep_the_filters_of_the_address():
    request = RequestFactory().get("/jobs/", {"search": "a&b", "cursor": "old"})
    page = Page(rows=[], newer_cursor=None, older_cursor="next")
    text = shown("{% pager page %}", request=request, page=page)
    assert 'href="?search=a%26b&amp;cursor=next"' in text
    assert "Newer" not in text

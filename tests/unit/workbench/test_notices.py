"""What pages of a session say before it stops, and how the script for it comes into them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from apps.hosting.state import Situation, State
from apps.workbench.last_minutes import notice_of
from yardmaster_runner.workbench.notice_tag import transform_for, with_notices

NOW = datetime(2026, 11, 26, tzinfo=UTC)
PAGE = "http://127.0.0.1:8080/sessions/1/"


def soon(seconds: float, *, anyway: bool = False) -> Situation:
    return Situation(State.READY, stops_at=NOW + timedelta(seconds=seconds), stops_soon=True, stops_anyway=anyway)


def test_nothing_is_said_until_it_stops_soon():
    assert notice_of(Situation(State.READY, stops_at=NOW + timedelta(hours=1)), NOW, True, PAGE) is None


@pytest.mark.parametrize(
    ("seconds", "begins"),
    [
        (3599, "This session stops in 59m if"),
        (119, "This session stops in 1m 50s if it is not used."),
        (3, "This session stops now if"),
        (-5, "This session stops now"),
    ],
)
def test_it_says_how_much_time_is_left_and_how_to_have_more(seconds: float, begins: str):
    told = notice_of(soon(seconds), NOW, True, PAGE)
    assert told is not None
    assert told.message.startswith(begins)
    assert told.message.endswith("Kernels and terminals then end; saved files are kept.")
    assert told[1:] == (PAGE, "Extend")


def test_the_end_of_the_longest_life_cannot_be_put_off():
    told = notice_of(soon(60, anyway=True), NOW, False, PAGE)
    assert told is not None
    assert "even if it is in use" in told.message
    assert told.link_text == "Restart"


def test_the_script_comes_at_the_end_of_a_page_and_into_nothing_else():
    assert with_notices(b"<html><body>x</body></html>", "/w/1/").endswith(
        b'x<script src="/w/1/.yardmaster/notice.js"></script></body></html>'
    )
    assert with_notices(b"no page", "/w/1/") == b"no page"


class Request:
    def __init__(self, path: str) -> None:
        self.path = path


@pytest.mark.parametrize(
    ("path", "kind", "finishing", "is_changed"),
    [
        ("/w/1/lab/tree/x.ipynb", "text/html; charset=UTF-8", True, True),
        ("/w/1/lab", "text/html", False, False),
        ("/w/1/lab/api/settings", "application/json", True, False),
        ("/w/1/files/own.html", "text/html", True, False),
    ],
)
def test_jupyterlabs_own_pages_are_changed_with_their_length(path: str, kind: str, finishing: bool, is_changed: bool):
    page = b"<body></body>"
    headers = {"Content-Type": kind, "Content-Length": str(len(page))}
    _, headers, sent = transform_for("/w/1/")(Request(path)).transform_first_chunk(200, headers, page, finishing)
    assert (sent != page) == is_changed
    assert headers["Content-Length"] == str(len(sent))

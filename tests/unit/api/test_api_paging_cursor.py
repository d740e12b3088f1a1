"""Cursors: opaque outside, exact inside."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.api.paging import Cursor


@given(st.uuids(), st.booleans())
def test_a_cursor_survives_its_text_form(at, newer):
    assert Cursor.decode(Cursor(at, newer).encode()) == Cursor(at, newer)


@given(st.text(max_size=60))
def test_no_text_makes_a_cursor_that_encode_did_not_make(text):
    try:
        cursor = Cursor.decode(text)
    except ValueError:
        return
    assert Cursor.decode(cursor.encode()) == cursor


@pytest.mark.parametrize("text", ["", "x", "é" * 23, "A" * 23, "o" * 10_000, "bw==", "../../etc/passwd"])
def test_what_is_no_cursor_is_refused(text):
    with pytest.raises(ValueError, match="not a cursor"):
        Cursor.decode(text)

"""How the values of a record are shown: text as text, everything else as bytes."""

from __future__ import annotations

import pytest

from apps.datasets.record_preview import _value


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (b"a moving film .\n", "a moving film . "),
        (b"two\r\nlines\tand more", "two lines and more"),
        ("größer".encode(), "größer"),
        (b"", ""),
        (b"\x00\x01", "2 bytes: 00 01"),
        (b"\xff\xd8\xff", "3 bytes: ff d8 ff"),
        (b"a\x1b[31m", "6 bytes: 61 1b 5b 33 31 6d"),
        ("ö".encode()[:1], "1 bytes: c3"),
    ],
)
def test_text_is_shown_as_text_and_other_bytes_as_bytes(value: bytes, shown: str) -> None:
    assert _value(value, len(value)) == shown


def test_a_long_text_is_cut_between_characters() -> None:
    value = ("x" * 199 + "ö" * 50).encode()
    assert _value(value, len(value)) == "x" * 199 + "…"

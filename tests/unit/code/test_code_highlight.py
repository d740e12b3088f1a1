"""Colouring source text: whole, escaped, line by line, and in bounded time."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.code.highlight import CLASSES, LONGEST, highlight

STYLES = Path(__file__).resolve().parents[3] / "frontend" / "src" / "code.css"


def text_of(lines: list[str]) -> list[str]:
    return [unescape(re.sub(r"<[^>]*>", "", line)) for line in lines]


def test_python_is_coloured():
    (line,) = highlight("train.py", "def f(): return 'a'\n")
    assert '<span class="k">def</span>' in line
    assert '<span class="f">f</span>' in line
    assert '<span class="s">' in line


def test_a_text_over_several_lines_is_marked_on_each_of_them():
    lines = highlight("train.py", 'x = """one\ntwo\nthree"""\ny = 1\n')
    assert text_of(lines) == ['x = """one', "two", 'three"""', "y = 1"]
    assert all(line.count("<span") == line.count("</span>") for line in lines)
    assert '<span class="s">two</span>' in lines[1]


def test_markup_in_source_text_stays_text():
    for path in ("a.py", "a.html", "a.unknown", "a.yaml"):
        for line in highlight(path, "x = '<script>alert(1)</script>' & \"b\"\n"):
            assert "<script" not in line


def test_what_has_no_grammar_is_shown_plain():
    assert highlight("data.unknown", "a < b\n\n") == ["a &lt; b", ""]


def test_a_very_long_text_or_line_is_shown_plain():
    assert "<span" not in "".join(highlight("a.py", "x = 1\n" * (LONGEST // 6 + 1)))
    assert "<span" not in "".join(highlight("a.py", "x = '" + "a" * 10_000 + "'\n"))


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), max_size=300))
def test_no_character_is_lost_whatever_the_text(text):
    wanted = text.split("\n")
    if wanted[-1] == "":
        wanted.pop()
    for path in ("a.py", "a.md", "a.json", "a.sh", "a.none"):
        assert text_of(highlight(path, text)) == wanted


@pytest.mark.parametrize("name", sorted({name for _, name in CLASSES}))
def test_every_class_has_its_colour_in_the_style_sheet(name):
    assert f".lines .{name} " in STYLES.read_text()

"""Colouring source text: whole, escaped, line by line, and in bounded time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from html import unescape
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.code.highlight import _LEXER, LONGEST, _Known, coloured, highlight
from apps.code.lexing import CLASSES, grammar_of, runs_of
from yardmaster.sandbox.function import NoResult

STYLES = Path(__file__).resolve().parents[3] / "frontend" / "src" / "code.css"


@pytest.fixture(scope="module", autouse=True)
def patient() -> Iterator[None]:
    """What is read here is not hard to read, however long a process takes to start."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_LEXER, "call", partial(_LEXER.call, wait=30.0))
        yield


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
    for path in ("a.py", "a.md", "a.json", "a.sh"):
        lines = list(coloured(text, runs_of(grammar_of(path), text)))  # without the process: it would take minutes
        assert text_of(lines)[: len(wanted)] == wanted
    assert text_of(highlight("a.none", text)) == wanted


@pytest.mark.parametrize("runs", [[], [(0, 3)], [(0, 5), (99, 2)], [(-1, 10), (0, -3)]])
def test_stretches_that_are_not_those_of_the_text_change_nothing(runs):
    assert text_of(list(coloured("a <\nb>", runs))) == ["a <", "b>"]


@pytest.mark.parametrize(
    ("path", "grammar"), [("Dockerfile", "docker"), ("a.PY", "python"), ("x.smithy", ""), ("", "")]
)
def test_only_a_few_grammars_are_used(path, grammar):
    assert grammar_of(path) == grammar


def test_every_grammar_is_there_and_takes_a_text():
    for path in ("a.py", "a.yaml", "a.json", "a.toml", "a.ini", "a.md", "a.sh", "a.js", "a.ts", "a.css", "Makefile"):
        assert text_of(highlight(path, "a = 1\n")) == ["a = 1"]
        assert sum(length for _, length in runs_of(grammar_of(path), "a = 1\n")) == 6


def test_a_text_that_is_too_hard_is_plain_and_is_tried_once(monkeypatch):
    class Stuck:
        calls = 0

        def call(self, *arguments):
            Stuck.calls += 1
            raise NoResult("stuck")

    monkeypatch.setattr("apps.code.highlight._LEXER", Stuck())
    for _ in range(3):
        assert highlight("hard.py", "x = 'hard'\n") == ["x = &#x27;hard&#x27;"]
    assert Stuck.calls == 1


def test_a_text_for_which_the_machine_was_too_busy_is_read_again(monkeypatch):
    troubles = [NoResult("late", is_late=True), NoResult("busy", is_busy=True)]

    def call(grammar, text):
        if troubles:
            raise troubles.pop()
        return runs_of(grammar, text)

    monkeypatch.setattr("apps.code.highlight._LEXER", SimpleNamespace(call=call))
    found = [highlight("late.py", "late = 1\n")[0] for _ in range(3)]
    assert found[:2] == ["late = 1", "late = 1"]
    assert "<span" in found[2]


def test_texts_are_remembered_within_a_bound(monkeypatch):
    monkeypatch.setattr("apps.code.highlight._REMEMBERED", 50)
    known = _Known()
    monkeypatch.setattr("apps.code.highlight._LEXER", SimpleNamespace(call=lambda _, text: [(-1, 1)] * len(text)))
    for number in range(30):
        known.runs_of("python", f"text {number:04}")
    assert len(known._runs) == 5


@pytest.mark.parametrize("name", sorted({name for _, name in CLASSES}))
def test_every_class_has_its_colour_in_the_style_sheet(name):
    assert f".lines .{name} " in STYLES.read_text()

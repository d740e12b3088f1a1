"""What differs between two texts."""

from __future__ import annotations

import time

from hypothesis import given, settings
from hypothesis import strategies as st

from apps.code.compare import CONTEXT, MOST_LINES, compare_texts

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "x y"]), max_size=30)


def text(*lines: object) -> str:
    return "".join(f"{line}\n" for line in lines)


def test_a_changed_line_is_removed_and_added_with_its_numbers_on_both_sides():
    diff = compare_texts(text(*range(10)), text(*range(5), "new", *range(6, 10)))
    changed = [(line.sign, line.old, line.new, line.text) for line in diff.hunks[0].lines if line.sign]
    assert changed == [("−", 6, None, "5"), ("+", None, 6, "new")]
    assert (diff.added, diff.removed) == (1, 1)


def test_a_hunk_has_a_few_equal_lines_around_its_changes():
    (hunk,) = compare_texts(text(*range(100)), text(*range(50), "new", *range(50, 100))).hunks
    assert [line.text for line in hunk.lines] == ["47", "48", "49", "new", "50", "51", "52"]
    assert hunk.title == "Before: lines 48–53 · after: lines 48–54"


def test_changes_far_apart_are_hunks_of_their_own_and_near_ones_one():
    before = list(range(60))
    far = compare_texts(text(*before), text("new", *before, "new"))
    near = compare_texts(text(*before), text("new", *before[: 2 * CONTEXT], "new", *before[2 * CONTEXT :]))
    assert (len(far.hunks), len(near.hunks)) == (2, 1)


def test_a_new_file_is_all_added():
    diff = compare_texts("", text("a", "b"))
    assert [(line.kind, line.new) for line in diff.hunks[0].lines] == [("added", 1), ("added", 2)]
    assert diff.hunks[0].title == "Before: nothing · after: lines 1–2"


def test_equal_texts_have_no_hunk():
    assert compare_texts(text("a"), text("a")).hunks == []


def test_texts_of_very_many_lines_are_not_compared():
    assert compare_texts(text(*range(MOST_LINES + 1)), "").too_large


def test_a_long_difference_is_cut():
    diff = compare_texts("", text(*range(100)))
    assert diff.first(10).length == 10
    assert diff.first(10).cut
    assert not diff.first(100).cut
    assert diff.first(10).added == 100


def test_hostile_texts_are_compared_in_bounded_time():
    began = time.monotonic()
    compare_texts(text(*(n % 101 for n in range(MOST_LINES))), text(*(n * 7 % 103 for n in range(MOST_LINES))))
    assert time.monotonic() - began < 20


@settings(max_examples=200, deadline=None)
@given(LINES, LINES)
def test_the_hunks_lead_from_one_text_to_the_other(before, after):
    diff = compare_texts("\n".join(before), "\n".join(after))
    old, new = "\n".join(before).split("\n"), "\n".join(after).split("\n")
    for line in (line for hunk in diff.hunks for line in hunk.lines):
        assert line.old is None or old[line.old - 1] == line.text
        assert line.new is None or new[line.new - 1] == line.text
    removed = {line.old for hunk in diff.hunks for line in hunk.lines if line.kind == "removed"}
    added = {line.new for hunk in diff.hunks for line in hunk.lines if line.kind == "added"}
    kept_old = [line for number, line in enumerate(old, 1) if number not in removed]
    kept_new = [line for number, line in enumerate(new, 1) if number not in added]
    assert [line for line in kept_old if line] == [line for line in kept_new if line]

"""From exit status, note and memory to the vocabulary of failures."""

from __future__ import annotations

import pytest

from yardmaster.engines.supervision.endings import Ending, ending_of, exit_code_of
from yardmaster.lifecycle.failures import REASONS


@pytest.mark.parametrize(("status", "code"), [(0, 0), (3 << 8, 3), (9, 137), (11, 139), (15, 143)])
def test_a_signal_is_128_and_its_number(status: int, code: int):
    assert exit_code_of(status) == code


@pytest.mark.parametrize(
    ("seen", "note", "expected"),
    [
        (0, None, Ending(0)),
        (1, None, Ending(1, "ScriptFailed")),
        (137, None, Ending(137, "Killed")),
        (None, None, Ending(None, "Lost")),
        (90, {"exit_code": 90, "reason": "CorruptInput", "message": "a"}, Ending(90, "CorruptInput", "a")),
        (None, {"exit_code": 0, "reason": "", "message": "m"}, Ending(0, "", "m")),
        (None, {"exit_code": 2}, Ending(2, "ScriptFailed")),
        # The note of an earlier word does not speak of this end.
        (137, {"exit_code": 0}, Ending(137, "Killed")),
        # What is no word, no number, no text.
        (1, {"exit_code": 1, "reason": "NoSuchWord", "message": 5}, Ending(1, "ScriptFailed")),
        (1, {"exit_code": True, "reason": "CorruptInput"}, Ending(1, "ScriptFailed")),
        (0, {"exit_code": 0, "reason": "OutOfMemory"}, Ending(0)),
        (1, {"exit_code": 1, "reason": ["a"]}, Ending(1, "ScriptFailed")),
        # What no process ends with, and no column holds.
        (None, {"exit_code": 1 << 70, "reason": "CorruptInput"}, Ending(None, "Lost")),
        (None, {"exit_code": -5}, Ending(None, "Lost")),
    ],
)
def test_the_note_counts_where_it_speaks_of_this_end(seen, note, expected: Ending):
    assert ending_of(seen, note, None, None) == expected
    assert expected.reason in {*REASONS, ""}


def test_whoever_passed_its_memory_is_out_of_memory_whatever_the_note_says():
    ending = ending_of(137, {"exit_code": 137, "reason": "Killed"}, 1 << 30, 3 << 29)
    assert ending == Ending(137, "OutOfMemory", "It used 1.5 GiB. Its limit is 1 GiB.")


def test_a_message_without_end_is_cut():
    assert len(ending_of(1, {"exit_code": 1, "message": "x" * 100_000}, None, None).message) == 2000

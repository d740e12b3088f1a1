"""Who follows the journal hears of every change, over rotations, and of nothing before."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from yardmaster.engines.supervision.journal import Journal
from yardmaster.ids import JobKey, new_id


def keys(count: int) -> list[JobKey]:
    return [JobKey(new_id(), new_id(), attempt) for attempt in range(1, count + 1)]


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "changes")


def test_what_was_noted_before_is_not_heard(journal: Journal):
    old, new = keys(2)
    journal.note(old)
    heard = journal.follow(0.001)
    journal.note(new)
    assert next(heard) == new


def test_a_journal_that_begins_later_is_heard_from_its_first_line(journal: Journal):
    heard = journal.follow(0.001)
    (key,) = keys(1)
    journal.note(key)
    assert next(heard) == key


def test_the_same_key_is_heard_once_per_look(journal: Journal):
    first, second = keys(2)
    heard = journal.follow(0.001)
    for key in (first, first, second, first):
        journal.note(key)
    assert list(islice(heard, 2)) == [first, second]


def test_nothing_is_missed_when_the_journal_is_rotated(tmp_path: Path):
    journal = Journal(tmp_path / "changes", limit=300)
    heard, all_keys = journal.follow(0.001), keys(40)
    for key in all_keys:
        journal.note(key)
        assert next(heard) == key
    assert journal.path.with_name("changes.old").exists()


def test_a_torn_line_is_passed_over(journal: Journal):
    heard = journal.follow(0.001)
    (key,) = keys(1)
    journal.note(key)
    with open(journal.path, "ab") as file:
        file.write(b"half a li\n")
    journal.note(key)
    assert next(heard) == key

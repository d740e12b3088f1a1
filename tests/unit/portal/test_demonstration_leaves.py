"""Whose it is, what a demonstration that was killed left on a cluster."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from portal.demo import leaving
from portal.demo.leaving import NOTE, leaving_nothing, noted
from portal.demo.portal import PortalFailed


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path


def written(path: Path, text: str, at: float) -> Path:
    path.write_text(text)
    os.utime(path, (at, at))
    return path


class TestTheNote:
    def test_of_one_that_was_killed_counts(self, home: Path):
        note = written(home / "note", '["a"]', 200.0)
        assert noted(note, written(home / "lock", "", 100.0)) == ["a"]

    def test_where_another_portal_has_lived_there_since_all_is_that_one_s(self, home: Path):
        note = written(home / "note", '["a"]', 100.0)
        assert noted(note, written(home / "lock", "", 200.0)) is None

    @pytest.mark.parametrize("text", ["", "{", "7"])
    def test_one_that_says_nothing_is_none(self, home: Path, text: str):
        lock = written(home / "lock", "", 100.0)
        assert noted(home / "absent", lock) is None
        assert noted(written(home / "note", text, 200.0), lock) is None


class TestLeaving:
    @pytest.fixture
    def there(self, monkeypatch) -> set[str]:
        """What is on the cluster, without one."""
        there = {"old"}

        def places(*arguments: str) -> list[str]:
            if "--remove" in arguments:
                keep = next(one for one in arguments if one.startswith("--keep=")).removeprefix("--keep=").split(",")
                there.intersection_update(keep)
            return sorted(there)

        monkeypatch.setattr(leaving, "_engine_namespaces", places)
        return there

    @pytest.mark.parametrize("end", [None, KeyboardInterrupt, PortalFailed])
    def test_what_was_made_goes_and_what_was_there_stays_however_it_ends(self, home: Path, there: set[str], end):
        said: list[str] = []
        try:
            with leaving_nothing("kubernetes", home, said.append) as is_up:
                is_up()
                there.add("new")
                if end is not None:
                    raise end
        except (KeyboardInterrupt, PortalFailed):
            pass
        assert there == {"old"}
        assert not (home / "run" / NOTE).exists()
        assert said[-1] == "Nothing is left of it there."

    def test_what_one_left_that_was_killed_goes_with_the_next(self, home: Path, there: set[str]):
        written(home / "run" / "up.lock", "", 100.0)
        written(home / "run" / NOTE, '["old"]', 200.0)
        there.add("left by the killed one")
        with leaving_nothing("kubernetes", home, lambda line: None):
            there.add("new")
        assert there == {"old"}

    def test_where_it_could_not_be_removed_the_note_stays(self, home: Path, monkeypatch):
        def places(*arguments: str) -> list[str]:
            if "--remove" in arguments:
                raise PortalFailed
            return []

        monkeypatch.setattr(leaving, "_engine_namespaces", places)
        said: list[str] = []
        with leaving_nothing("kubernetes", home, said.append):
            pass
        assert (home / "run" / NOTE).exists()
        assert "next demonstration" in said[-1]

    def test_on_this_machine_there_is_nothing_to_leave(self, home: Path):
        with leaving_nothing("local", home, lambda line: pytest.fail(line)):
            pass
        assert list((home / "run").iterdir()) == []

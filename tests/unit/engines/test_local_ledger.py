"""Who holds which port or GPU: never two, and never somebody who is gone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from yardmaster.engines.supervision.ledger import Ledger

ALL = ["1", "2", "3", "4"]


def any_will_do(_: str) -> bool:
    return True


@pytest.fixture
def runs() -> set[str]:
    return {"a", "b"}


@pytest.fixture
def ledger(tmp_path: Path, runs: set[str]) -> Ledger:
    return Ledger(tmp_path / "ports", runs.__contains__)


def test_what_one_holds_no_other_gets(ledger: Ledger):
    first = ledger.claim("a", ALL, 2, any_will_do)
    second = ledger.claim("b", ALL, 2, any_will_do)
    assert sorted(first + second) == ALL
    assert ledger.held_by("a") == set(first)


def test_too_few_are_none(ledger: Ledger):
    ledger.claim("a", ALL, 3, any_will_do)
    assert ledger.claim("b", ALL, 2, any_will_do) == []
    assert ledger.held_by("b") == set()
    assert len(ledger.claim("b", ALL, 1, any_will_do)) == 1


def test_what_cannot_be_used_is_passed_over(ledger: Ledger):
    assert ledger.claim("a", ALL, 2, lambda name: int(name) % 2 == 0) == ["2", "4"]


def test_freed_is_free_and_only_by_its_holder(ledger: Ledger):
    ledger.claim("a", ALL, 4, any_will_do)
    ledger.free("b", ALL)
    assert ledger.held_by("a") == set(ALL)
    ledger.free("a", ["2"])
    assert ledger.claim("b", ALL, 1, any_will_do) == ["2"]
    ledger.free("a")
    ledger.free("a")
    assert ledger.held_by("a") == set()


def test_a_failure_while_claiming_gives_back_what_was_taken(ledger: Ledger):
    def breaks_at_three(name: str) -> bool:
        if name == "3":
            raise OSError(28, "No space left on device")
        return True

    with pytest.raises(OSError, match="No space"):
        ledger.claim("a", ALL, 4, breaks_at_three)
    assert ledger.held_by("a") == set()


def test_a_claim_of_a_run_that_was_never_made_lasts_as_long_as_its_maker(ledger: Ledger):
    ledger.claim("not yet a run", ALL, 1, any_will_do)
    assert ledger.claim("b", ["1"], 1, any_will_do) == [], "this process, its maker, lives"
    os.symlink("dead-run#1,1,another-boot", ledger.folder / "9")
    assert ledger.claim("b", ["9"], 1, any_will_do) == ["9"]


def test_a_claim_lasts_while_its_run_is_there_whoever_made_it(ledger: Ledger, runs: set[str]):
    ledger.claim("b", ["8"], 1, any_will_do)
    os.symlink("a#1,1,another-boot", ledger.folder / "9")
    assert ledger.claim("b", ["9"], 1, any_will_do) == []
    runs.remove("a")
    assert ledger.claim("b", ["9"], 1, any_will_do) == ["9"]

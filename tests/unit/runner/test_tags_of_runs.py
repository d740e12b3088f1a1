"""How many tags a TensorBoard keeps: bounded for a run and in all, counted of the runs that are there."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from yardmaster_runner.workbench import event_reading


class Run:
    """As much of TensorBoard's accumulator as is needed."""

    path = "a run"

    def __init__(self) -> None:
        self.tags: list[str] = []


def event(*tags: str) -> SimpleNamespace:
    return SimpleNamespace(summary=SimpleNamespace(value=[SimpleNamespace(tag=tag) for tag in tags]))


def process(run: Run, one: SimpleNamespace) -> None:
    run.tags.extend(value.tag for value in one.summary.value)


def test_tags_of_runs_that_are_gone_do_not_count(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(event_reading, "MOST_TAGS", 5)
    monkeypatch.setattr(event_reading, "MOST_TAGS_OF_RUN", 4)
    bounded = event_reading.with_few_tags(process)
    first, second = Run(), Run()
    bounded(first, event(*"abcdef"))
    assert first.tags == [*"abcd"]
    bounded(second, event(*"abc"))
    assert second.tags == ["a"]
    del first
    bounded(second, event(*"abc"))
    assert second.tags == [*"aabc"]
    again = Run()
    bounded(again, event(*"abcd"))
    assert again.tags == ["a", "b"], "five in all"

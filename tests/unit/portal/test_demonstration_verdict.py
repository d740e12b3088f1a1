"""When the demonstration has succeeded: its exit status is nothing else."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from portal.demo.reviews import LEAST_ACCURACY, SENTENCES, Reviews
from yardmaster_client import LogLine

RIGHT = [(meant or "neg", 0.9) for _, meant in SENTENCES]


def told(model: str, baseline: str, *, most: int = 0, answers: list[tuple[str, float]] | None = None) -> Reviews:
    """The second story after these accuracies were printed by its jobs."""
    story = Reviews(None, 1, 2, most)  # type: ignore[arg-type]
    for text in (
        f"test accuracy {model}",
        "test: 874 texts, 95 % interval ±0.0276",
        f"baseline test accuracy {baseline}",
    ):
        story._watch(LogLine("worker", 0, 1, datetime(2026, 1, 1, tzinfo=UTC), text))
    story.answers = RIGHT if answers is None else answers
    story.job = SimpleNamespace(phase="SUCCEEDED")  # type: ignore[assignment]
    return story


@pytest.mark.parametrize(
    ("model", "baseline", "succeeds"),
    [("0.7700", "0.7900", True), ("0.7600", "0.7900", False), ("0.6900", "0.6000", False), ("0.8000", "0.6000", True)],
)
def test_a_model_must_be_as_good_as_the_linear_one_within_the_interval(model, baseline, succeeds) -> None:
    assert told(model, baseline).succeeded is succeeds


def test_a_model_of_few_texts_must_be_as_good_as_the_linear_one_alone() -> None:
    assert float("0.6000") < LEAST_ACCURACY
    assert told("0.6000", "0.6100", most=150).succeeded
    assert not told("0.5000", "0.6100", most=150).succeeded


def test_a_clear_sentence_that_is_not_understood_fails_it() -> None:
    wrong = [("pos", 0.9) for _ in SENTENCES]
    assert not told("0.7900", "0.7900", answers=wrong).succeeded
    assert not told("0.7900", "0.7900", answers=[]).succeeded
    assert told("0.7900", "0.7900", most=150, answers=wrong).succeeded


def test_what_no_job_printed_is_no_success() -> None:
    story = Reviews(None, 1, 2)  # type: ignore[arg-type]
    assert not story.succeeded
    assert story.rows("http://portal") == []

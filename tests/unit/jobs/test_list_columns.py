"""Which columns, orders and conditions a list of jobs knows, and what is kept of metrics."""

from __future__ import annotations

import math

import pytest

from yardmaster.job.list_columns import (
    Column,
    NotAColumn,
    column_of,
    columns_of_texts,
    condition_of,
    ordering_of,
)
from yardmaster.job.metrics import Kept, metric_name, points_by_name, steps_per_second, with_points


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("duration", Column("duration")),
        ("metric:loss", Column("metric", "loss")),
        ("max:validation/epoch_accuracy", Column("max", "validation/epoch_accuracy")),
        ("metric:a:b", Column("metric", "a:b")),
        ("parameter:lr", Column("parameter", "lr")),
        ("parameter:model.depth-2", Column("parameter", "model.depth-2")),
    ],
)
def test_a_column_is_read_and_written_the_same(text, column):
    assert column_of(text) == column
    assert column.key == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "metric",
        "metric:",
        "spec",
        "metric:" + "x" * 101,
        "metric:a\nb",
        "average:loss",
        "parameter:99999999999",
        "parameter:-1",
        "parameter:a b",
    ],
)
def test_what_is_no_column_is_refused_with_those_that_there_are(text):
    with pytest.raises(NotAColumn) as refused:
        column_of(text)
    assert "metric:NAME" in refused.value.problem.remedy


def test_columns_are_each_once_and_not_too_many():
    assert [one.key for one in columns_of_texts(["tags", "metric:loss", "tags"])] == ["tags", "metric:loss"]
    with pytest.raises(NotAColumn, match="12"):
        columns_of_texts(f"metric:m{number}" for number in range(13))


@pytest.mark.parametrize(
    ("text", "key", "descending", "newest"),
    [
        ("", "-created", True, True),
        ("created", "created", False, False),
        ("-max:accuracy", "-max:accuracy", True, False),
    ],
)
def test_an_order_is_read(text, key, descending, newest):
    order = ordering_of(text)
    assert (order.key, order.descending, order.is_newest) == (key, descending, newest)


@pytest.mark.parametrize(
    ("text", "column", "sign", "value"),
    [
        ("loss < 0.3", "metric:loss", "<", 0.3),
        ("loss<=1e-3", "metric:loss", "<=", 0.001),
        ("max:val/accuracy >= .9", "max:val/accuracy", ">=", 0.9),
        ("a:b = -1", "metric:a:b", "=", -1.0),
        ("my loss>2", "metric:my loss", ">", 2.0),
    ],
)
def test_a_condition_is_read(text, column, sign, value):
    found = condition_of(text)
    assert (found.column.key, found.sign, found.value) == (column, sign, value)
    assert condition_of(found.words) == found


@pytest.mark.parametrize(
    "text", ["", "loss", "loss < x", "< 3", "loss < 1e999", "parameter:lr < 1", "loss ! 3", "x" * 300 + "<1"]
)
def test_what_is_no_condition_is_refused(text):
    with pytest.raises(NotAColumn):
        condition_of(text)


def point(step: int, value: float | None, tag: str = "loss", run: str = ".") -> dict:
    return {"run": run, "tag": tag, "step": step, "time": 1.0, "value": value}


def test_of_points_the_latest_step_the_lowest_and_the_highest_are_kept():
    kept = with_points(Kept(), [point(2, 0.5), point(1, 0.9), point(3, 0.7)])
    assert kept == Kept(step=3, latest=0.7, lowest=0.5, highest=0.9)
    assert with_points(kept, [point(3, 0.7)]) == kept, "a report may come twice"


def test_a_value_that_is_not_finite_is_the_latest_and_no_extreme():
    kept = with_points(Kept(), [point(1, 0.5), point(2, None) | {"not_finite": "inf"}])
    assert kept == Kept(step=2, latest=None, not_finite="inf", lowest=0.5, highest=0.5)
    assert with_points(kept, [point(3, 0.4)]) == Kept(step=3, latest=0.4, lowest=0.4, highest=0.5)


def test_a_run_that_continues_keeps_the_extremes_and_its_own_latest():
    kept = with_points(Kept(), [point(9, 0.1)]).of_next_attempt()
    assert with_points(kept, [point(5, 0.3)]) == Kept(step=5, latest=0.3, lowest=0.1, highest=0.3)


def test_names_have_the_run_in_front_and_long_ones_are_left_out():
    assert metric_name(".", "loss") == metric_name("", "loss") == "loss"
    assert metric_name("validation", "loss") == "validation/loss"
    assert list(points_by_name([point(1, 1.0, tag="x" * 101), point(1, 1.0)])) == ["loss"]


def test_the_speed_is_smoothed_and_a_restart_does_not_make_it_negative():
    assert steps_per_second(None, 0, 100, 10.0) == 10
    slower = steps_per_second(10.0, 100, 100, 60.0)
    assert math.isclose(slower, 10 / math.e)
    assert steps_per_second(10.0, 100, 40, 1.0) == 10, "it restarted from a checkpoint"
    assert steps_per_second(None, None, 40, 1.0) is None
    assert steps_per_second(5.0, 1, 2, None) == 5

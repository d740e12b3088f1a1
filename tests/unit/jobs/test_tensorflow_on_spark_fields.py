"""The fields of the launch form for TensorFlowOnSpark are arguments of its script."""

from __future__ import annotations

import pytest

from apps.jobs.launch.forms import LaunchForm, as_data, new_values, with_strategy
from apps.jobs.launch.tensorflow_on_spark import from_arguments
from yardmaster.job.spec import Strategy

FIELDS = {"spark_ps": "1", "spark_synchronous": "yes", "spark_tensorboard": "yes"}
SAID = ["--num_ps=1", "--synchronous", "--tensorboard"]


def form_of(strategy="spark", executors="3", **fields):
    values = new_values(strategy) | {"name": "one", "code": "c", "entry_point": "a.py"} | fields
    if "executor" in values["roles"]:
        values["roles"]["executor"]["replicas"] = executors
    return LaunchForm(as_data(values))


def test_they_follow_the_arguments_that_were_typed():
    assert form_of(arguments="--epochs 3", **FIELDS).spec["arguments"] == ["--epochs", "3", *SAID]


def test_empty_fields_say_nothing():
    assert "arguments" not in form_of().spec


def test_another_strategy_keeps_them_and_does_not_mean_them():
    form = form_of("batch", **FIELDS)
    assert "arguments" not in form.spec
    assert LaunchForm(as_data(with_strategy(form.values(), "spark"))).spec["arguments"] == SAID


@pytest.mark.parametrize(
    ("given", "left", "ps"),
    [
        (["--epochs=3", "--num_ps=2", "--tensorboard"], ["--epochs=3"], "2"),
        (["--num_ps=2", "--epochs=3"], ["--num_ps=2", "--epochs=3"], ""),
        (["--num_ps=02"], ["--num_ps=02"], ""),
        (["--num_ps=1", "--num_ps=2"], ["--num_ps=1"], "2"),
        (["--num_ps", "2"], ["--num_ps", "2"], ""),
    ],
)
def test_what_a_job_says_at_the_end_is_in_the_fields(given, left, ps):
    found, fields = from_arguments(Strategy.SPARK, given)
    assert (found, fields["spark_ps"]) == (left, ps)


def test_other_strategies_have_arguments_alone():
    assert from_arguments(Strategy.SINGLE, SAID)[0] == SAID


@pytest.mark.parametrize(("executors", "ps"), [("1", "0"), ("3", "2"), ("x", "7")])
def test_one_executor_at_least_is_a_worker(executors, ps):
    assert "spark_ps" not in form_of(executors=executors, spark_ps=ps).errors


@pytest.mark.parametrize(
    ("executors", "ps", "words"),
    [("1", "1", "Enter 0"), ("3", "3", "0 to 2"), ("3", "-1", "0 to 2"), ("3", "two", "digits")],
)
def test_too_many_servers_are_refused_at_their_field(executors, ps, words):
    assert words in " ".join(form_of(executors=executors, spark_ps=ps).errors["spark_ps"])


def test_a_number_without_bounds_is_refused():
    assert form_of(spark_ps="9" * 5000).errors["spark_ps"]

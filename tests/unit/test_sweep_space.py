"""What a sweep may try, and which values its trials get."""

from __future__ import annotations

import pytest

from yardmaster.sweeps.assigning import assigned, faults
from yardmaster.sweeps.plan import Plan, plan_from_json, plan_to_json
from yardmaster.sweeps.space import Choice, Range, SpaceRejected, space_from_json, space_to_json, words_of
from yardmaster.sweeps.trials import grid, random


def plan(**said: object) -> Plan:
    return plan_from_json({"parameters": {"lr": "0.1, 0.01"}} | said, most_trials=1_000, most_parallel=50)


def codes(said: object, **more: object) -> list[str]:
    with pytest.raises(SpaceRejected) as rejected:
        plan_from_json({"parameters": said} | more, most_trials=1_000, most_parallel=50)
    return [one.code for one in rejected.value.problems]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("0.1, 0.01", [0.1, 0.01]),
        ("1..4", [1, 2, 3, 4]),
        ("16..64 step 16", [16, 32, 48, 64]),
        ("0.0..0.4 step 0.2", [0.0, 0.2, 0.4]),
        ("-2..2 step 2", [-2, 0, 2]),
        ("adam, sgd", ["adam", "sgd"]),
        ("true, false", [True, False]),
        ("5", [5]),
        ("1e-3, 1e-3, 2", [0.001, 2]),
    ],
)
def test_a_text_says_values_or_a_range(text, values):
    space = space_from_json({"x": text})
    assert [one["x"] for one in grid(space, 1_000)] == values
    assert space_from_json(space_to_json(space)) == space
    assert space_from_json({"x": words_of(space[0])}) == space


def test_a_log_range_is_a_number_and_has_no_grid():
    space = space_from_json({"lr": "0.0001..0.1 log"})
    assert space == (Range("lr", 0.0001, 0.1, False, space[0].scale),)
    with pytest.raises(SpaceRejected, match="step"):
        grid(space, 1_000)


def test_a_grid_has_every_combination_in_order():
    trials = grid(space_from_json({"a": [1, 2], "b": ["x", "y"]}), 4)
    assert [tuple(one.values()) for one in trials] == [(1, "x"), (1, "y"), (2, "x"), (2, "y")]


def test_a_grid_is_bounded_before_it_is_made():
    wide = space_from_json({f"p{number}": list(range(100)) for number in range(20)})
    with pytest.raises(SpaceRejected, match="combinations"):
        grid(wide, 1_000)
    with pytest.raises(SpaceRejected, match="values"):
        grid(space_from_json({"x": "0.0..1.0 step 0.0000001"}), 1_000)


def test_the_same_seed_gives_these_trials_on_every_python():
    space = space_from_json({"lr": "0.0001..0.1 log", "units": "16..256 step 16", "act": "relu, tanh"})
    first = random(space, 3, 7)
    assert first == random(space, 3, 7) != random(space, 3, 8)
    assert first == KNOWN


KNOWN = [
    {"lr": 0.00093647954, "units": 48, "act": "tanh"},
    {"lr": 0.00016493349, "units": 144, "act": "relu"},
    {"lr": 0.00014927833, "units": 144, "act": "relu"},
]


def test_random_trials_differ_and_end_where_the_space_does():
    assert len(random(space_from_json({"x": [1, 2, 3]}), 50, 0)) == 3
    many = random(space_from_json({"x": "1..1000"}), 200, 1)
    assert len({one["x"] for one in many}) == 200


def test_random_values_lie_within_the_range_and_on_its_steps():
    space = space_from_json({"lr": "0.001..1.0 log", "n": "3..30 step 9", "k": {"type": "integer", "low": 1,
                             "high": 64, "scale": "log"}})  # fmt: skip
    trials = random(space, 300, 3)
    assert all(0.001 <= one["lr"] <= 1 for one in trials)
    assert {one["n"] for one in trials} == {3, 12, 21, 30}
    assert all(isinstance(one["k"], int) and 1 <= one["k"] <= 64 for one in trials)
    below = sum(one["lr"] < 0.03 for one in trials)
    assert 100 < below < 200  # half of them: a log scale


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({}, "required"),
        ("lr", "required"),
        ({f"p{number}": [1] for number in range(21)}, "too_many"),
        ({"a b": [1]}, "bad_name"),
        ({"x" * 65: [1]}, "bad_name"),
        ({"x": []}, "required"),
        ({"x": list(range(101))}, "too_many"),
        ({"x": ["a\nb"]}, "bad_value"),
        ({"x": ["a" * 201]}, "bad_value"),
        ({"x": [float("nan")]}, "bad_value"),
        ({"x": [None]}, "bad_value"),
        ({"x": 3}, "wrong_type"),
        ({"x": "a" * 2_001}, "too_long"),
        ({"x": {"low": 2, "high": 1}}, "bad_range"),
        ({"x": {"low": 0, "high": 1, "scale": "log"}}, "bad_range"),
        ({"x": {"low": 0, "high": 1, "step": 2}}, "bad_range"),
        ({"x": {"low": 0, "high": 1, "step": 0}}, "bad_range"),
        ({"x": {"low": 0, "high": float("inf")}}, "bad_range"),
        ({"x": {"type": "integer", "low": 0.5, "high": 2}}, "bad_range"),
        ({"x": {"type": "word", "low": 1, "high": 2}}, "bad_range"),
        ({"x": {"low": 1, "high": 2, "extra": 1}}, "unknown_key"),
    ],
)
def test_what_is_no_space_is_refused_with_its_reason(said, code):
    assert codes(said) == [code]


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"method": "bayes"}, "unknown_word"),
        ({"method": "random", "trials": 1_001}, "out_of_range"),
        ({"method": "random", "trials": True}, "out_of_range"),
        ({"parallel": 0}, "out_of_range"),
        ({"parallel": 51}, "out_of_range"),
        ({"seed": -1}, "out_of_range"),
        ({"metric": {"tag": ""}}, "bad_value"),
        ({"metric": {"tag": "loss", "target": "low"}}, "bad_value"),
        ({"metric": "loss"}, "wrong_type"),
        ({"early_stop": {"rule": "median"}}, "required"),
        ({"early_stop": {"rule": "halving", "factor": 1}, "metric": {"tag": "loss"}}, "out_of_range"),
        ({"colour": "red"}, "unknown_key"),
    ],
)
def test_what_is_no_plan_is_refused_with_its_reason(more, code):
    assert code in codes({"lr": [1]}, **more)


def test_a_plan_is_read_as_it_was_written():
    said = plan(
        method="random", trials=5, seed=3, parallel=4, metric={"tag": "loss", "target": 0.1, "run": "validation"},
        early_stop={"rule": "halving", "min_steps": 10, "factor": 2},
    )  # fmt: skip
    assert plan_from_json(plan_to_json(said), most_trials=5, most_parallel=4) == said
    assert len(said.values(1_000)) == 2  # the space has no more


def test_values_go_where_they_are_named_and_are_one_argument_each():
    base = {
        "name": "digits", "arguments": ["--rate={{lr}}", "--epochs=3"], "environment": {"OPT": "{{ opt }}"},
        "roles": {"worker": {}},
    }  # fmt: skip
    spec = assigned(base, {"lr": 0.1, "opt": "a b; rm -rf /", "epochs": 5, "wide": True}, "digits-001")
    assert spec["arguments"] == ["--rate=0.1", "--epochs=5", "--wide=true"]
    assert spec["environment"] == {"OPT": "a b; rm -rf /"}
    assert spec["name"] == "digits-001"
    assert base["arguments"] == ["--rate={{lr}}", "--epochs=3"]


def test_a_value_is_not_read_for_placeholders_again():
    assert assigned({"arguments": ["{{a}}"]}, {"a": "{{b}}", "b": 1}, "n")["arguments"] == ["{{b}}", "--b=1"]


def test_a_notebook_gets_parameters_with_their_types():
    base = {"entry_point": "train.ipynb", "parameters": {"rate": "{{lr}}", "title": "of {{lr}}"}}
    spec = assigned(base, {"lr": 0.1, "units": 8}, "n")
    assert spec["parameters"] == {"rate": 0.1, "title": "of 0.1", "units": 8}
    assert "arguments" not in spec


def test_a_shell_command_gets_values_in_variables_alone():
    assert [one.code for one in faults({"command": "train {{lr}}"}, ["lr"])] == ["not_in_command"]
    assert [one.code for one in faults({"command": "train"}, ["lr"])] == ["not_in_command"]
    assert faults({"command": "train $LR", "environment": {"LR": "{{lr}}"}}, ["lr"]) == []


def test_a_placeholder_without_a_parameter_is_refused():
    assert [one.value for one in faults({"arguments": ["--rate={{rate}}"]}, ["lr"])] == ["rate"]


@pytest.mark.parametrize("base", [{"arguments": 3}, {"environment": [1]}, {"arguments": [None, {}]}, {"parameters": 1}])
def test_a_base_of_any_shape_is_left_to_the_rules_of_specifications(base):
    assert faults(base, ["lr"]) == []
    assigned(base, {"lr": 1}, "n")


def test_choices_keep_one_of_each_value():
    assert space_from_json({"x": [1, 1, 2]}) == (Choice("x", (1, 2)),)


def test_no_text_takes_long_to_be_read():
    """Where digits can be split in several ways, and steps follow without end, this takes years."""
    text = "1..2" + " step 1111" * 18 + " x"
    assert space_from_json({"x": text}) == (Choice("x", (text,)),)


def test_what_is_longer_than_a_range_is_none():
    assert codes({"x": "1..2" + " " * 200 + "step 1"}) == ["bad_value"]


@pytest.mark.parametrize(
    "said",
    [
        {"x": [10**400]},
        {"x": {"low": 0, "high": 10**400}},
        {"x": {"low": -(10**400), "high": 1}},
        {"x": {"low": 0, "high": 1e14, "step": 1e-300}},
        {"x": {"low": 0, "high": 1, "step": 10**400}},
    ],
)
def test_numbers_of_any_size_are_refused_in_words(said):
    assert set(codes(said)) <= {"bad_value", "bad_range"}


def test_a_target_of_any_size_is_refused_in_words():
    assert codes({"x": [1]}, metric={"tag": "loss", "target": 10**400}) == ["bad_value"]
    assert codes({"x": [1]}, metric={"tag": "loss", "target": float("nan")}) == ["bad_value"]
    metric = plan(metric={"tag": "loss", "target": 10**300}).metric
    assert metric is not None
    assert metric.target == 1e300

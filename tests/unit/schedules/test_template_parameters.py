"""Parameters of templates: what may be declared, which values are valid, and where they go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.errors import SpecRejected
from yardmaster.job.template_filling import filled, place_problems
from yardmaster.job.template_parameters import (
    LONGEST_TEXT,
    MOST,
    parameters_from_json,
    parameters_to_json,
    sample_values,
    values_of,
)

LR = {"name": "lr", "kind": "number", "default": 0.1, "minimum": 0, "maximum": 1, "help": "Learning rate"}
EPOCHS = {"name": "epochs", "kind": "integer", "minimum": 1}
OPTIMIZER = {"name": "optimizer", "kind": "choice", "choices": ["adam", "sgd"], "default": "adam"}
NOTE = {"name": "note", "kind": "text", "default": "", "maximum": 20}
DEBUG = {"name": "debug", "kind": "boolean", "default": False}
ALL = parameters_from_json([LR, EPOCHS, OPTIMIZER, NOTE, DEBUG])


def refused(action, *args) -> set[tuple[str, str]]:
    with pytest.raises(SpecRejected) as found:
        action(*args)
    return {(one.field, one.code) for one in found.value.problems}


def test_what_is_not_given_has_its_default():
    assert values_of(ALL, {"epochs": 3}) == {
        "lr": 0.1, "epochs": 3, "optimizer": "adam", "note": "", "debug": False,
    }  # fmt: skip


def test_texts_of_forms_and_command_lines_are_read():
    given_ = {"lr": "1e-3", "epochs": " 7 ", "optimizer": "sgd", "note": "a b", "debug": "yes"}
    assert values_of(ALL, given_) == {"lr": 0.001, "epochs": 7, "optimizer": "sgd", "note": "a b", "debug": True}


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [("lr", "fast", "wrong_type"), ("lr", "nan", "wrong_type"), ("lr", "inf", "wrong_type"),
     ("lr", float("inf"), "wrong_type"), ("lr", 2, "out_of_range"), ("lr", "1e999", "wrong_type"),
     ("epochs", 1.5, "wrong_type"), ("epochs", True, "wrong_type"), ("epochs", 0, "out_of_range"),
     ("epochs", "9" * 19, "wrong_type"), ("optimizer", "rmsprop", "not_a_choice"), ("optimizer", [], "wrong_type"),
     ("note", "x" * 21, "out_of_range"), ("note", "a\0", "wrong_type"), ("note", "\ud800", "wrong_type"),
     ("note", "x" * (LONGEST_TEXT + 1), "wrong_type"), ("debug", "maybe", "wrong_type"), ("debug", 2, "wrong_type")],
)  # fmt: skip
def test_values_that_are_not_valid_are_named(name, value, code):
    assert refused(values_of, ALL, {"epochs": 1} | {name: value}) == {(f"parameters.{name}", code)}


def test_what_is_missing_and_what_is_unknown_are_named():
    assert refused(values_of, ALL, {"rate": 1}) == {
        ("parameters.epochs", "required"), ("parameters.rate", "unknown_parameter"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("declared", "field", "code"),
    [({"name": "1x"}, "name", "bad_name"), ({"name": "a-b"}, "name", "bad_name"),
     ({"name": "a" * 64}, "name", "bad_name"),
     ({"name": "a", "kind": "date"}, "kind", "bad_kind"), ({"name": "a", "shell": 1}, "", "unknown_key"),
     ({"name": "a", "kind": "choice"}, "choices", "required"),
     ({"name": "a", "kind": "choice", "choices": ["x", "x"]}, "choices", "bad_choices"),
     ({"name": "a", "choices": ["x"]}, "choices", "bad_choices"),
     ({"name": "a", "kind": "integer", "minimum": 3, "maximum": 2}, "minimum", "bad_bound"),
     ({"name": "a", "kind": "integer", "minimum": "x"}, "minimum", "bad_bound"),
     ({"name": "a", "kind": "boolean", "maximum": 2}, "maximum", "bad_bound"),
     ({"name": "a", "kind": "text", "maximum": 1001}, "maximum", "bad_bound"),
     ({"name": "a", "kind": "integer", "default": 1, "minimum": 2}, "default", "out_of_range"),
     ({"name": "a", "help": "x" * 201}, "help", "too_long")],
)  # fmt: skip
def test_declarations_that_are_not_valid_are_named(declared, field, code):
    path = f"parameters.0.{field}".rstrip(".")
    assert refused(parameters_from_json, [declared]) == {(path, code)}


def test_names_are_different_and_not_too_many():
    assert refused(parameters_from_json, [{"name": "a"}, {"name": "a"}]) == {("parameters.1.name", "duplicate")}
    many = [{"name": f"a{n}"} for n in range(MOST + 1)]
    assert refused(parameters_from_json, many) == {("parameters", "too_many")}
    assert refused(parameters_from_json, {"a": 1}) == {("parameters", "wrong_type")}


def test_what_is_written_is_read_again():
    assert parameters_from_json(parameters_to_json(ALL)) == ALL


def test_samples_are_valid():
    assert values_of(ALL, sample_values(ALL)) == sample_values(ALL)


def test_a_value_is_exactly_one_argument_whatever_it_holds():
    spec = {
        "arguments": ["--note={{ note }}", "{{note}}", "--lr={{lr}}", "{{other}}"],
        "environment": {"N": "<{{note}}>"},
    }
    found = filled(spec, {"note": "a b; rm -rf / $(x) '\" {{lr}}", "lr": 0.1})
    hostile = "a b; rm -rf / $(x) '\" {{lr}}"
    assert found["arguments"] == [f"--note={hostile}", hostile, "--lr=0.1", "{{other}}"]
    assert found["environment"] == {"N": f"<{hostile}>"}
    assert spec["arguments"][0] == "--note={{ note }}", "the template stays as it is"


def test_a_parameter_of_a_notebook_keeps_its_type():
    found = filled({"parameters": {"lr": "{{lr}}", "title": "at {{lr}}", "n": 3}}, {"lr": 0.1})
    assert found["parameters"] == {"lr": 0.1, "title": "at 0.1", "n": 3}


def test_names_and_keys_are_never_filled_in():
    spec = {"name": "{{lr}}", "command": "python {{lr}}", "environment": {"{{lr}}": "x"}}
    assert filled(spec, {"lr": 1}) == spec


def test_without_parameters_everything_is_taken_as_written():
    assert filled({"arguments": ["{{x}}"]}, {}) == {"arguments": ["{{x}}"]}
    assert not place_problems({"arguments": ["{{x}}"]}, [])


def test_unknown_and_unused_places_are_named():
    found = place_problems({"arguments": ["--a={{a}}", "{{typo}}"]}, ["a", "b"])
    assert [(one.field, one.code) for one in found] == [
        ("arguments.1", "unknown_parameter"), ("parameters.1.name", "unused_parameter"),
    ]  # fmt: skip
    many = place_problems({"arguments": ["{{a}}" * 201]}, ["a"])
    assert [one.code for one in many] == ["too_many"]


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
)
KEYS = st.sampled_from(["name", "kind", "default", "minimum", "maximum", "choices", "help", "x"])


@given(st.lists(st.dictionaries(KEYS, ANY | st.sampled_from(["a", "integer", "choice", "number"]), max_size=7)) | ANY)
def test_whatever_is_declared_is_read_or_refused(data):
    try:
        found = parameters_from_json(data)
    except SpecRejected:
        return
    assert parameters_from_json(parameters_to_json(found)) == found


@given(st.dictionaries(st.sampled_from(["lr", "epochs", "optimizer", "note", "debug"]), ANY))
def test_whatever_is_given_is_read_or_refused(given_):
    try:
        found = values_of(ALL, given_)
    except SpecRejected:
        return
    assert values_of(ALL, found) == found

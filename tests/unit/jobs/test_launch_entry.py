"""What the launch form runs: one choice, of which only what it needs is meant."""

from __future__ import annotations

import pytest

from apps.jobs.launch.forms import LaunchForm, as_data, new_values
from tests.unit.core.generators import CODE
from yardmaster.errors import SpecRejected
from yardmaster.job.spec_json import spec_from_json


def said(values):
    """The specification that the form with these values says, as JSON."""
    return LaunchForm(as_data(values)).spec


def test_only_what_the_choice_needs_is_meant():
    typed = {"entry_point": "train.ipynb", "command": "make", "parameters": "a = 1", "arguments": "--x"}
    values = new_values("single") | typed
    assert {*said(values | {"runs": "command"})} & {*typed} == {"command"}
    assert {*said(values | {"runs": "notebook"})} & {*typed} == {"entry_point", "parameters", "arguments"}
    assert {*said(values | {"runs": "file"})} & {*typed} == {"entry_point", "arguments"}


def test_a_module_may_be_written_without_its_flag():
    values = new_values("single") | {"runs": "module", "entry_point": "package.train"}
    assert said(values)["entry_point"] == "-m package.train"


def test_a_form_of_an_older_page_is_what_its_fields_say():
    data = as_data(new_values("single") | {"entry_point": "train.py"})
    del data["runs"]
    assert LaunchForm(data).spec["entry_point"] == "train.py"


def test_a_command_that_is_missing_is_said_once_and_at_its_field():
    form = LaunchForm(as_data(new_values("single") | {"runs": "command", "name": "a", "code": str(CODE)}))
    assert not form.is_valid()
    with pytest.raises(SpecRejected) as error:
        spec_from_json(form.spec)
    form.add_problems(error.value.problems)
    assert [fault.id for fault in form.faults] == ["f-command"]


@pytest.mark.parametrize(
    ("text", "value"), [("1", 1), ('"1"', "1"), ("0.1", 0.1), ("true", True), ("a b", "a b"), ("", ""), ("=", "=")]
)
def test_parameters_are_texts_numbers_true_and_false(text, value):
    values = new_values("single") | {"runs": "notebook", "parameters": f"name = {text}"}
    assert said(values)["parameters"] == {"name": value}


@pytest.mark.parametrize("text", ["name", "a = 1\na = 2", "a = [1]", "a = null"])
def test_parameters_that_cannot_be_read_are_said_at_their_field(text):
    form = LaunchForm(as_data(new_values("single") | {"runs": "notebook", "parameters": text}))
    form.is_valid()
    assert form.errors["parameters"]

"""The launch form says a specification, and a specification fills the form: nothing is lost on the way."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.jobs.launch_form import (
    counts_of,
    duration_text,
    memory_text,
    new_values,
    problems_by_field,
    read,
    values_of_post,
    values_of_spec,
    with_shape,
    with_strategy,
)
from apps.jobs.launch_shown import FormShown, cluster_words
from apps.jobs.launch_yaml import command_of, job_as_yaml, job_of_yaml
from tests.unit.core.generators import CODE, DATA, make_spec, specs
from yardmaster.errors import Problem, SpecRejected
from yardmaster.quantity import parse_memory
from yardmaster.spec import DatasetInput, Strategy
from yardmaster.spec_json import spec_from_json, spec_to_json

CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Other tests may take the machine's time meanwhile."""
ODD_TEXTS = ["", " ", '"', '"a"', "a\nb", "\r", "\u2028", "\x85", "a=b", "# no comment", "yes", "007"]


class TestRoundTrip:
    @settings(CALM, max_examples=40)
    @given(specs())
    def test_a_specification_survives_the_form(self, spec):
        reading = read(values_of_spec(spec))
        assert reading.problems == ()
        assert spec_from_json(reading.spec) == spec

    @settings(CALM, max_examples=60)
    @given(specs())
    def test_a_specification_survives_a_browser_and_the_job_file(self, spec):
        sent = {name: text.replace("\n", "\r\n") for name, text in values_of_spec(spec).items()}
        text = job_as_yaml(read(values_of_post(sent)).spec, namespace="ada")
        file = job_of_yaml(text)
        assert file.namespace == "ada"
        assert spec_from_json(file.spec) == spec

    @pytest.mark.parametrize("text", ODD_TEXTS)
    def test_odd_arguments_and_variables_stay_what_they_are(self, text):
        spec = make_spec(arguments=(text, "--last"), environment={"ODD": text})
        again = spec_from_json(read(values_of_spec(spec)).spec)
        assert (again.arguments, again.environment["ODD"]) == ((text, "--last"), text)
        assert spec_from_json(job_of_yaml(job_as_yaml(spec_to_json(spec))).spec) == spec

    @settings(CALM)
    @given(st.integers(0, 10**9))
    def test_every_length_of_time_is_read_as_it_is_written(self, seconds):
        assert read({"grace_period": duration_text(seconds)}).spec["grace_period"] == seconds

    @settings(CALM)
    @given(st.integers(64 << 20, 1 << 46))
    def test_every_amount_of_memory_is_read_as_it_is_written(self, amount):
        text = memory_text(amount)
        assert parse_memory(int(text) if text.isdecimal() else text) == amount


class TestReading:
    @pytest.mark.parametrize("strategy", list(Strategy))
    def test_every_preset_lacks_only_what_one_must_choose(self, strategy):
        values = new_values(strategy) | {"name": "digits", "code": str(CODE), "entry_point": "train.py"}
        spec = spec_from_json(read(values).spec)
        assert spec.strategy is strategy
        assert spec.total().cpu <= 2, "a first job shall fit a small machine"

    @pytest.mark.parametrize(
        ("text", "seconds"), [("90", 90), ("90s", 90), ("1h 30m", 5400), ("2d", 172_800), ("1h30m", 5400)]
    )
    def test_lengths_of_time_in_words(self, text, seconds):
        assert read({"max_runtime": text}).spec["max_runtime"] == seconds

    @pytest.mark.parametrize("text", ["soon", "1x", "h", "-5", "1h 30", "1.5h"])
    def test_what_is_no_length_of_time_is_refused_in_the_words_of_the_form(self, text):
        with pytest.raises(SpecRejected) as refused:
            spec_from_json(read(values_of_spec(make_spec()) | {"max_runtime": text}).spec)
        (problem,) = problems_by_field(refused.value.problems, ["max_runtime"])["max_runtime"]
        assert "30m" in problem.remedy or "Choose a number" in problem.remedy

    def test_optional_roles_that_are_not_asked_for_are_left_out(self):
        values = new_values(Strategy.BETWEEN_GRAPH) | {"roles.chief.replicas": "0", "roles.evaluator.replicas": "1"}
        assert set(read(values).spec["roles"]) == {"worker", "ps"}

    def test_roles_that_must_be_there_are_asked_for_even_with_none(self):
        values = new_values(Strategy.BETWEEN_GRAPH) | {"roles.ps.replicas": "0"}
        assert read(values).spec["roles"]["ps"]["replicas"] == 0

    def test_a_variable_without_a_value_and_one_that_is_set_twice_are_named(self):
        problems = read({"environment": "A=1\nB\nA=2"}).problems
        assert [(one.field, one.code) for one in problems] == [
            ("environment", "bad_value"),
            ("environment", "duplicate"),
        ]

    def test_empty_rows_of_inputs_are_passed_over(self):
        values = values_of_post(
            {
                "inputs.0.dataset_version": "",
                "inputs.0.name": "",
                "inputs.3.dataset_version": str(DATA),
                "inputs.3.name": "train",
            }
        )
        assert read(values).spec["inputs"] == [{"dataset_version": str(DATA), "name": "train"}]

    def test_unknown_fields_are_left_out(self):
        assert values_of_post({"roles.admin.replicas": "1", "inputs.x.name": "a", "name": "n"}) == {"name": "n"}

    @given(
        st.dictionaries(
            st.sampled_from(["name", "strategy", "roles.worker.replicas", "environment", "inputs.0.name"]), st.text()
        )
    )
    def test_nothing_that_is_typed_is_too_odd_to_be_read(self, data):
        values = values_of_post(data)
        with pytest.raises(SpecRejected):
            spec_from_json(read(values).spec)
        FormShown(values).roles  # noqa: B018 (that it does not raise is the test)
        cluster_words(values)

    def test_a_percentage_is_not_meant_where_the_chief_decides(self):
        assert read({"success.rule": "chief", "success.percent": "50"}).spec["success"] == {"rule": "chief"}


class TestChanges:
    def test_another_strategy_keeps_what_both_have(self):
        values = new_values(Strategy.BETWEEN_GRAPH) | {"roles.worker.replicas": "5", "roles.worker.cpu": "3"}
        changed = with_strategy(values, "parameter_server")
        assert counts_of(changed) == {"chief": 1, "worker": 5, "ps": 1}
        assert changed["roles.worker.cpu"] == "3"

    def test_one_task_and_back_again(self):
        single = with_strategy(new_values(Strategy.BETWEEN_GRAPH), "single")
        assert counts_of(single) == {"worker": 1}
        sent = {name: text for name, text in single.items() if not name.startswith(("roles.ps", "roles.chief"))}
        assert counts_of(with_strategy(sent, "between_graph")) == {"worker": 2, "ps": 1}

    def test_a_shape_that_fits_is_taken_over(self):
        values = with_shape(new_values(Strategy.BETWEEN_GRAPH), {"worker": 1, "ps": 3, "admin": 7})
        assert counts_of(values) == {"worker": 1, "ps": 3}
        assert "roles.admin.replicas" not in values


class TestProblems:
    @pytest.mark.parametrize(
        ("field", "place"),
        [
            ("roles.worker.cpu", "roles.worker.cpu"),
            ("arguments.3", "arguments"),
            ("environment.FOO", "environment"),
            ("roles.worker.extended.rdma/hca", "roles.worker.extended"),
            ("nonsense.at.all", ""),
            ("", ""),
        ],
    )
    def test_each_stands_at_its_field(self, field, place):
        names = ["roles.worker.cpu", "roles.worker.extended", "arguments", "environment"]
        assert list(problems_by_field([Problem(field, "bad_value", "Wrong.")], names)) == [place]

    def test_a_section_with_a_problem_is_open(self):
        form = FormShown(new_values(Strategy.BETWEEN_GRAPH), [Problem("roles.ps.memory", "out_of_range", "Too much.")])
        assert form.open_sections == {"resources"}
        assert form.top == []

    def test_a_problem_of_no_field_stands_on_top(self):
        form = FormShown(new_values(Strategy.SINGLE), [Problem("roles", "out_of_range", "Too many tasks.")])
        assert [one.message for one in form.top] == ["Too many tasks."]


class TestFile:
    def test_it_is_short_and_names_versions(self):
        spec = make_spec(inputs=(DatasetInput(DATA, "train"),))
        text = job_as_yaml(read(values_of_spec(spec)).spec, names={str(CODE): "digits@3", str(DATA): "mnist@1"})
        assert text.splitlines() == [
            "name: digits",
            "strategy: between_graph",
            "roles:",
            "  worker: {replicas: 2, cpu: 1, memory: 1Gi}",
            "  ps: {replicas: 1, cpu: 1, memory: 1Gi}",
            "code: digits@3",
            "entry_point: train.py",
            "inputs:",
            "  - {dataset: mnist@1, name: train}",
        ]

    def test_the_command_holds_the_whole_file_whatever_is_in_it(self):
        command = command_of("name: a\nJOB\n")
        assert command.endswith("\nname: a\nJOB\nJOB_")

    @pytest.mark.parametrize("text", ["", "- a", "a: [", "a: 1\na: 2", "&a [*a]", "x" * 300_000])
    def test_what_is_no_job_is_refused_with_a_sentence(self, text):
        with pytest.raises(SpecRejected) as refused:
            job_of_yaml(text)
        assert refused.value.problems[0].message

    def test_the_words_of_the_picture_name_who_is_there(self):
        assert cluster_words(values_of_spec(make_spec())).startswith("1 parameter server, 2 workers: the workers train")
        assert uuid.UUID(values_of_spec(make_spec())["code"]) == CODE

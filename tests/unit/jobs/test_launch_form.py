"""The launch form says a specification, and a specification fills the form: nothing is lost on the way."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.jobs.launch.argument_lines import arguments_of, as_argument_line
from apps.jobs.launch.fixes import with_fix
from apps.jobs.launch.forms import (
    LaunchForm,
    as_data,
    new_values,
    with_shape,
    with_strategy,
)
from apps.jobs.launch.job_file import command_of, job_as_yaml, job_of_yaml
from apps.jobs.launch.preview import cluster_words, summaries
from apps.jobs.launch.spec_values import values_of_spec
from tests.unit.core.generators import CODE, DATA, make_spec, specs
from yardmaster.errors import Problem, SpecRejected
from yardmaster.job.spec import DatasetInput, InputMode, InputShare, Strategy
from yardmaster.job.spec_json import spec_from_json, spec_to_json
from yardmaster.quantity import exact_bytes, format_duration, parse_duration, parse_memory

CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Other tests may take the machine's time meanwhile."""
ODD_TEXTS = ["", " ", '"', '"a"', "a\nb", "\r", "\u2028", "\x85", "a=b", "# no comment", "yes", "007"]


def said(values):
    """The specification that the form with these values says, as JSON."""
    return LaunchForm(as_data(values)).spec


def counts_of(values):
    return {form.role: form.count for form in LaunchForm(as_data(values)).roles if form.count}


class TestRoundTrip:
    @settings(CALM, max_examples=40)
    @given(specs().filter(lambda spec: spec.strategy is not Strategy.SERVICE))
    def test_a_specification_survives_the_form(self, spec):
        form = LaunchForm(as_data(values_of_spec(spec)))
        assert form.is_valid(), form.faults
        assert spec_from_json(form.spec) == spec

    @settings(CALM, max_examples=40)
    @given(specs().filter(lambda spec: spec.strategy is not Strategy.SERVICE))
    def test_a_specification_survives_a_browser_and_the_job_file(self, spec):
        shown = LaunchForm(values=values_of_spec(spec)).values()
        sent = {name: text.replace("\n", "\r\n") for name, text in as_data(shown).items()}
        file = job_of_yaml(job_as_yaml(LaunchForm(sent).spec, namespace="ada"))
        assert file.namespace == "ada"
        assert spec_from_json(file.spec) == spec

    @pytest.mark.parametrize("text", ODD_TEXTS)
    def test_odd_arguments_and_variables_stay_what_they_are(self, text):
        spec = make_spec(arguments=(text, "--last"), environment={"ODD": text})
        again = spec_from_json(said(values_of_spec(spec)))
        assert (again.arguments, again.environment["ODD"]) == ((text, "--last"), text)
        assert spec_from_json(job_of_yaml(job_as_yaml(spec_to_json(spec))).spec) == spec

    @settings(CALM)
    @given(st.integers(0, 10**9))
    def test_every_length_of_time_is_read_as_it_is_written(self, seconds):
        assert parse_duration(format_duration(seconds)) == seconds

    @settings(CALM)
    @given(st.integers(64 << 20, 1 << 46))
    def test_every_amount_of_memory_is_read_as_it_is_written(self, amount):
        text = exact_bytes(amount)
        assert parse_memory(text) == amount


class TestReading:
    @pytest.mark.parametrize("strategy", [one for one in Strategy if one is not Strategy.SERVICE])
    def test_every_preset_lacks_only_what_one_must_choose(self, strategy):
        values = new_values(strategy.value) | {"name": "digits", "code": str(CODE), "entry_point": "train.py"}
        spec = spec_from_json(said(values))
        assert spec.strategy is strategy
        assert spec.total().cpu <= 2, "a first job shall fit a small machine"

    @pytest.mark.parametrize(
        ("text", "seconds"), [("90", 90), ("90s", 90), ("1h 30m", 5400), ("2d", 172_800), ("1h30m", 5400)]
    )
    def test_lengths_of_time_in_words(self, text, seconds):
        assert said(new_values("single") | {"max_runtime": text})["max_runtime"] == seconds

    @pytest.mark.parametrize("text", ["soon", "1x", "h", "-5", "1h 30", "1.5h"])
    def test_what_is_no_length_of_time_is_refused_in_the_words_of_the_form(self, text):
        form = LaunchForm(as_data(values_of_spec(make_spec()) | {"max_runtime": text}))
        with pytest.raises(SpecRejected) as refused:
            spec_from_json(form.spec)
        form.add_problems(refused.value.problems)
        assert form.errors == {"max_runtime": ["Expected a duration, such as 90s, 30m, 2h or 1d."]}

    def test_optional_roles_that_are_not_asked_for_are_left_out(self):
        values = new_values("between_graph")
        values["roles"] |= {"chief": {"replicas": "0"}, "evaluator": {"replicas": "1"}}
        assert set(said(values)["roles"]) == {"worker", "ps"}

    def test_roles_that_must_be_there_are_asked_for_even_with_none(self):
        values = with_shape(new_values("between_graph"), {"ps": 0})
        assert said(values)["roles"]["ps"]["replicas"] == 0

    def test_a_variable_without_a_name_and_one_that_is_set_twice_are_named(self):
        rows = [("A", "1"), ("", "2"), ("A", "3"), ("EMPTY", "")]
        values = new_values("single") | {"environment": [{"name": name, "value": value} for name, value in rows]}
        form = LaunchForm(as_data(values))
        assert not form.is_valid()
        assert [sorted(row.errors) for row in form.environment] == [[], ["name"], ["name"], []]
        assert form.spec["environment"] == {"A": "3", "EMPTY": ""}

    def test_empty_rows_of_inputs_are_passed_over(self):
        rows = [{"dataset_version": "", "name": ""}, {"dataset_version": str(DATA), "name": "train"}]
        assert said(new_values("single") | {"inputs": rows})["inputs"] == [rows[1]]

    def test_a_folder_without_a_dataset_is_said_at_the_dataset(self):
        form = LaunchForm(as_data(new_values("single") | {"inputs": [{"dataset_version": "", "name": "train"}]}))
        assert "Dataset 1: Dataset" in [fault.label for fault in form.faults]

    def test_fields_that_are_not_sent_have_their_defaults(self):
        form = LaunchForm({"strategy": "single"})
        assert (form.spec["roles"], "paths" in form.spec) == ({"worker": {}}, False)
        assert form.values()["paths"]["data_flag"] == "auto"

    @pytest.mark.parametrize(("prefix", "most"), [("inputs", 100), ("environment", 500)])
    def test_a_million_rows_are_refused_and_not_read(self, prefix, most):
        data = as_data(new_values("single")) | {f"{prefix}-TOTAL_FORMS": "1000000"}
        form = LaunchForm(data)
        rows = getattr(form, prefix)
        assert len(rows.forms) == most + 1
        assert not rows.is_valid()
        assert rows.non_form_errors() == [f"There are at most {most} rows. Remove some."]

    @CALM
    @given(
        st.dictionaries(
            st.sampled_from(
                [
                    "name",
                    "strategy",
                    "roles-worker-replicas",
                    "environment-0-name",
                    "environment-TOTAL_FORMS",
                    "inputs-0-name",
                    "inputs-TOTAL_FORMS",
                    "roles-worker-extended",
                    "max_runtime",
                    "arguments",
                ]
            ),
            st.text(),
        )
    )
    def test_nothing_that_is_typed_is_too_odd_to_be_read(self, data):
        form = LaunchForm(data)
        with pytest.raises(SpecRejected) as refused:
            spec_from_json(form.spec)
        form.add_problems(refused.value.problems)
        assert not form.is_valid()
        assert cluster_words(form)
        assert summaries(form)

    def test_only_the_sections_that_the_form_has_are_summed_up(self):
        trains, serves = ({"strategy": one, "name": "x"} for one in ("single", "in_graph"))
        assert set(summaries(LaunchForm(trains))) - set(summaries(LaunchForm(serves))) == {"paths", "secrets"}

    def test_the_name_of_the_model_is_kept_when_a_job_is_edited(self):
        form = LaunchForm(
            {"strategy": "single", "name": "x", "code": str(uuid.uuid4()), "entry_point": "a.py", "model": "m"}
        )
        assert form.spec["model"] == {"name": "m"}
        spec = spec_from_json({**form.spec, "roles": {"worker": {"replicas": 1}}})
        assert values_of_spec(spec)["model"] == spec.model_name == "m"
        assert "model" not in LaunchForm({"strategy": "in_graph", "name": "x", "model": "m"}).spec
        form.add_problems([Problem("model.name", "bad_value", "Too long.", "")])
        assert "paths" in form.open_sections

    def test_what_a_job_publishes_is_kept_when_it_is_edited(self):
        said_so = {"name": "x", "code": str(uuid.uuid4()), "entry_point": "a.py", "publishes": "made"}
        form = LaunchForm({**said_so, "strategy": "batch", "publishes_note": "why"})
        assert form.spec["publishes"] == {"dataset": "made", "note": "why"}
        values = values_of_spec(spec_from_json({**form.spec, "roles": {"worker": {"replicas": 2}}}))
        assert (values["publishes"], values["publishes_note"]) == ("made", "why")
        other = LaunchForm({**said_so, "strategy": "multi_worker_mirrored"})
        assert "publishes" not in other.spec  # it stays in the form, should another strategy be chosen
        assert other.values()["publishes"] == "made"
        form.add_problems([Problem("publishes.note", "bad_value", "Too long.", "")])
        assert form.errors["publishes_note"]
        assert "paths" in form.open_sections

    def test_a_percentage_is_not_meant_where_the_chief_decides(self):
        assert said({"success": {"rule": "chief", "percent": "50"}})["success"] == {"rule": "chief"}


class TestChanges:
    def test_another_strategy_keeps_what_both_have(self):
        values = with_shape(new_values("between_graph"), {"worker": 5})
        values["roles"]["worker"]["cpu"] = "3"
        changed = with_strategy(values, "parameter_server")
        assert counts_of(changed) == {"chief": 1, "worker": 5, "ps": 1}
        assert changed["roles"]["worker"]["cpu"] == "3"

    def test_one_task_and_back_again(self):
        single = with_strategy(new_values("between_graph"), "single")
        assert counts_of(single) == {"worker": 1}
        sent = LaunchForm(as_data(single | {"roles": {"worker": single["roles"]["worker"]}})).values()
        assert counts_of(with_strategy(sent, "between_graph")) == {"worker": 2, "ps": 1}

    def test_a_shape_that_fits_is_taken_over(self):
        values = with_shape(new_values("between_graph"), {"worker": 1, "ps": 3, "admin": 7})
        assert counts_of(values) == {"worker": 1, "ps": 3}
        assert "admin" not in values["roles"]


class TestProblems:
    @pytest.mark.parametrize(
        ("field", "at"),
        [
            ("roles.worker.cpu", "f-roles-worker-cpu"),
            ("roles.worker", "f-roles-worker-replicas"),
            ("roles.worker.extended.rdma/hca", "f-roles-worker-extended"),
            ("arguments.3", "f-arguments"),
            ("environment.FOO", "f-environment-1-name"),
            ("environment.OTHER", "f-environment"),
            ("environment", "f-environment"),
            ("inputs.0.name", "f-inputs-0-name"),
            ("inputs.7.name", "f-inputs"),
            ("paths.data_flag", "f-paths-data_flag"),
            ("success.percent", "f-success-percent"),
            ("engine", "f-engine"),
            ("roles", None),
            ("nonsense.at.all", None),
            ("", None),
        ],
    )
    def test_each_stands_at_its_field(self, field, at):
        spec = make_spec(environment={"BAR": "1", "FOO": "2"}, inputs=(DatasetInput(DATA, "train"),))
        form = LaunchForm(as_data(values_of_spec(spec)))
        assert form.is_valid()
        form.add_problems([Problem(field, "bad_value", "Wrong.", "Mend it.")])
        assert [fault.id for fault in form.faults] == ([] if at is None else [at])
        found = form.faults[0].messages if at else form.non_field_errors()
        assert list(found) == ["Wrong. Mend it."]

    def test_a_field_that_cannot_be_read_has_one_error(self):
        values = values_of_spec(make_spec())
        values["roles"]["worker"]["cpu"] = "lots"
        form = LaunchForm(as_data(values))
        assert form.spec["roles"]["worker"]["cpu"] == "lots"
        form.add_problems([Problem("roles.worker.cpu", "wrong_type", "Expected a number.")])
        assert [fault.label for fault in form.faults] == ["Worker: CPU"]
        assert len(form.faults[0].messages) == 1

    def test_a_section_with_a_problem_is_open(self):
        form = LaunchForm(as_data(values_of_spec(make_spec())))
        form.add_problems([Problem("roles.ps.memory", "out_of_range", "Too much.")])
        assert form.open_sections == {"resources"}
        assert form.non_field_errors() == []


class TestFile:
    def test_it_is_short_and_names_versions(self):
        spec = make_spec(inputs=(DatasetInput(DATA, "train"),))
        text = job_as_yaml(said(values_of_spec(spec)), names={str(CODE): "digits@3", str(DATA): "mnist@1"})
        assert text.splitlines() == [
            "name: digits",
            "strategy: between_graph",
            "roles:",
            "  worker: {replicas: 2, cpu: 1, memory: 1.5Gi}",
            "  ps: {replicas: 1, cpu: 1, memory: 1.5Gi}",
            "code: digits@3",
            "entry_point: train.py",
            "inputs:",
            "  - {dataset: mnist@1, name: train}",
        ]

    def test_only_strategies_whose_scripts_read_shards_ask_how_an_input_is_read(self):
        asks = {one: LaunchForm(as_data(new_values(one))).reads_shards for one in ("single", "parameter_server")}
        assert asks == {"single": True, "parameter_server": False}

    def test_it_says_how_an_input_is_read_where_that_is_not_the_ordinary_way(self):
        one = DatasetInput(DATA, "", InputMode.STREAM, InputShare.SHARDS, stands_for="s3://theirs/data")
        form = said(values_of_spec(make_spec(inputs=(one,))))
        text = job_as_yaml(form, names={str(DATA): "mnist@1"})
        how = "mode: stream, share: shards, stands_for: 's3://theirs/data'"
        assert f"  - {{dataset: mnist@1, {how}}}" in text.splitlines()
        assert spec_from_json(form).inputs == (one,)

    def test_the_command_holds_the_whole_file_whatever_is_in_it(self):
        command = command_of("name: a\nJOB\n")
        assert command.endswith("\nname: a\nJOB\nJOB_")

    @pytest.mark.parametrize("text", ["", "- a", "a: [", "a: 1\na: 2", "&a [*a]", "x" * 300_000])
    def test_what_is_no_job_is_refused_with_a_sentence(self, text):
        with pytest.raises(SpecRejected) as refused:
            job_of_yaml(text)
        assert refused.value.problems[0].message

    def test_the_words_of_the_picture_name_who_is_there(self):
        assert cluster_words(LaunchForm(as_data(values_of_spec(make_spec())))).startswith(
            "1 parameter server, 2 workers: the workers train"
        )
        assert uuid.UUID(values_of_spec(make_spec())["code"]) == CODE


class TestArguments:
    @pytest.mark.parametrize(
        ("text", "arguments"),
        [
            ("--epochs 3", ["--epochs", "3"]),
            ("--a 1 --b\r\n\r\n  --c=2 ", ["--a", "1", "--b", "--c=2"]),
            ("--name 'a b' --other=\"c d\"", ["--name", "a b", "--other=c d"]),
            ('"--name a b"', ["--name a b"]),
            ("'--name a b'", ["--name a b"]),
            ('"a" "b"', ["a", "b"]),
            # Without spaces it stands as it is, but for quotes around a whole value.
            ("--pattern=\\d+", ["--pattern=\\d+"]),
            ('--json={"a":1}', ['--json={"a":1}']),
            ("--json='{\"a\":1}'", ['--json={"a":1}']),
            ("--name=O'Brien", ["--name=O'Brien"]),
            # With spaces a backslash is one, too.
            ("--path C:\\data # all", ["--path", "C:\\data", "#", "all"]),
            ("--empty ''", ["--empty", ""]),
            ("", []),
        ],
    )
    def test_a_line_is_split_as_in_a_shell(self, text, arguments):
        assert said(new_values("single") | {"arguments": text}).get("arguments", []) == arguments

    def test_a_quote_without_a_partner_is_said(self):
        form = LaunchForm(as_data(new_values("single") | {"arguments": "--title it's mine"}))
        assert not form.is_valid()
        assert "has no partner" in form.errors["arguments"][0]

    @CALM
    @given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12), max_size=4))
    def test_any_arguments_come_back_from_their_lines(self, arguments):
        assert arguments_of("\n".join(map(as_argument_line, arguments))) == arguments


class TestFixes:
    @pytest.mark.parametrize(
        ("assignment", "field", "found"),
        [
            ("paths.log_flag=--logdir", "paths", lambda one: one["log_flag"] == "--logdir"),
            ("arguments+=--train_dir=$LOG_DIR", "arguments", lambda one: one == "--x\n--train_dir=$LOG_DIR"),
            ("arguments+=a b", "arguments", lambda one: one == '--x\n"a b"'),
            ("arguments+=--x", "arguments", lambda one: one == "--x"),
            ("arguments.0=--y=a b", "arguments", lambda one: one == '"--y=a b"'),
            ("requirements+=pyyaml", "requirements", lambda one: one == "pyyaml"),
            ("strategy=parameter_server", "strategy", lambda one: one == "parameter_server"),
            ("entry_point=other.py", "entry_point", lambda one: one == "other.py"),
            ("environment.A=2", "environment", lambda one: one == [{"name": "A", "value": "2"}]),
        ],
    )
    def test_a_fix_changes_its_field_and_nothing_else(self, assignment, field, found):
        values = new_values("single") | {"arguments": "--x", "environment": [{"name": "A", "value": "1"}]}
        changed = with_fix(values, assignment)
        assert found(changed[field])
        follows = {"strategy": "roles", "entry_point": "runs"}.get(field)
        others = {key: changed[key] for key in values if key not in (field, follows)}
        assert others == {key: values[key] for key in others}

    @pytest.mark.parametrize(
        "assignment", ["", "x", "paths.x=1", "strategy=x", "name=x", "arguments=x", "arguments.1=x", "paths+=x"]
    )
    def test_what_is_no_fix_changes_nothing(self, assignment):
        values = new_values("single")
        assert with_fix(values, assignment) == values

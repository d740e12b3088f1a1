"""Which flags a script's parser knows, which of them get the job's directories, and which are missing."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest

from tests.unit.core.generators import DATA, make_spec
from yardmaster.code.findings import Finding, Fix
from yardmaster.code.flags import parser_of
from yardmaster.code.preflight import examine
from yardmaster.code.script_facts import read_script
from yardmaster.job.spec import DatasetInput, Paths, Strategy, TrainingSpec

SINGLE = Strategy.SINGLE


def argparse_of(*flags: str, parse: str = "parse_args()") -> str:
    """A script with these `add_argument` calls."""
    adds = "\n".join(f"parser.add_argument({one})" for one in flags)
    return f"import argparse\nparser = argparse.ArgumentParser()\n{adds}\nargs = parser.{parse}\n"


def decided(script: str, **fields: Any) -> tuple[str, str, str]:
    paths = examined(script, **fields)[0].paths
    return paths.data_flag, paths.log_flag, paths.model_flag


def examined(script: str, **fields: Any) -> tuple[TrainingSpec, list[Finding]]:
    found = examine(make_spec(fields.pop("strategy", SINGLE), **fields), {"train.py": dedent(script)})
    return found.spec, found.findings


def missing(script: str, **fields: Any) -> list[Finding]:
    return [one for one in examined(script, **fields)[1] if one.code == "required_flag"]


@pytest.mark.parametrize(
    ("flags", "given"),
    [
        (['"--data_dir"', '"--log_dir"'], ("--data_dir", "--log_dir", "")),
        (['"--data-dir"', '"--logdir"', '"--export_dir"'], ("--data-dir", "--logdir", "--export_dir")),
        (['"-d", "--input_dir"', '"--train_dir"'], ("--input_dir", "--train_dir", "")),
        (['"--train_dir"', '"--val_dir"'], ("", "", "")),
        (['"--log_dir"', '"--model_dir"'], ("", "--log_dir", "--model_dir")),
        (['"--model_dir"', '"--export_dir"'], ("", "--model_dir", "--export_dir")),
        (['"--checkpoint_dir"', '"--output_dir"'], ("", "--checkpoint_dir", "--output_dir")),
        # One directory for both.
        (['"--model_dir"'], ("", "--model_dir", "--model_dir")),
        (['"--output_dir"', '"--data_path"'], ("--data_path", "--output_dir", "--output_dir")),
        # A name or a path: the default says which.
        (['"--dataset", default="mnist"'], ("", "", "")),
        (['"--dataset"'], ("", "", "")),
        (['"--dataset", default="./data"'], ("--dataset", "", "")),
        (['"--data_dir", type=int'], ("", "", "")),
        (['"--data_dir", choices=["a", "b"]'], ("", "", "")),
        (['"--logdir", action="store_true"'], ("", "", "")),
        # Of two the user chooses.
        (['"--input_dir"', '"--dataset_dir"'], ("", "", "")),
        (['"--epochs", type=int'], ("", "", "")),
    ],
)
def test_the_flags_that_a_strict_parser_knows_are_passed(flags: list[str], given: tuple[str, str, str]) -> None:
    assert decided(argparse_of(*flags)) == given


ABSL = """
    from absl import app, flags
    flags.DEFINE_string("data_path", None, "")
    flags.DEFINE_string("logdir", "/tmp/x", "")
    flags.DEFINE_integer("steps", 3, "")
    flags.mark_flag_as_required("data_path")
    flags.mark_flags_as_required(["logdir", "steps"])
    app.run(main)
"""
CLICK = """
    import click
    @click.command()
    @click.option("--data-dir", "-d", required=True)
    @click.option("--log-dir/--no-log", is_flag=True)
    @click.argument("model_dir")
    def main(data_dir, log_dir, model_dir): ...
"""
TYPER = """
    import typer
    from typing_extensions import Annotated
    def main(model_dir: str, data_dir: str = "data", steps: int = typer.Option(...), fast: bool = False,
             rate: Annotated[float, typer.Option("--learning-rate")] = 0.1): ...
    typer.run(main)
"""


def test_flags_of_absl_click_and_typer() -> None:
    assert decided(ABSL) == ("--data_path", "--logdir", "")
    assert [one.message.split()[3] for one in missing(ABSL)] == ["--steps,"]
    assert decided(CLICK) == ("--data-dir", "", "")
    assert [one.fixes for one in missing(CLICK)] == [(Fix("Add $MODEL_DIR", "arguments", "$MODEL_DIR", adds=True),)]
    assert decided(TYPER) == ("--data-dir", "", "")
    assert {one.fixes for one in missing(TYPER)} == {
        (), (Fix("Add $MODEL_DIR", "arguments", "$MODEL_DIR", adds=True),)
    }  # fmt: skip
    assert missing(TYPER, arguments=("$MODEL_DIR", "--steps", "3")) == []


def test_the_flags_of_typer_are_those_that_it_makes() -> None:
    parser = parser_of(read_script({"train.py": dedent(TYPER)}, "train.py"))
    assert [one.name for one in parser.flags] == ["model_dir", "--data-dir", "--steps", "--fast", "--learning-rate"]
    assert parser.is_strict


@pytest.mark.parametrize(
    "script",
    [
        "import sys\nprint(sys.argv)\n",
        "import fire\nfire.Fire(train)\n",
        argparse_of('"--x"') + "for name in names:\n    parser.add_argument(name)\n",
        argparse_of('"--x"') + "parts = parser.add_subparsers()\n",
        "from transformers import HfArgumentParser\nparser = HfArgumentParser(Args)\n",
        "import argparse\nparser = argparse.ArgumentParser(parents=[base])\nparser.parse_args()\n",
    ],
)
def test_where_the_flags_cannot_be_found_out_the_usual_ones_are_passed(script: str) -> None:
    assert decided(script) == ("--data_dir", "--log_dir", "")


def test_a_parser_that_passes_over_what_it_does_not_know_gets_the_usual_flags_too() -> None:
    tolerant = argparse_of('"--x"', parse="parse_known_args()")
    assert decided(tolerant) == ("--data_dir", "--log_dir", "")
    assert decided(argparse_of('"--train_dir"', parse="parse_known_args()")) == ("--data_dir", "--train_dir", "")


def test_a_script_without_a_parser_gets_no_flags() -> None:
    assert decided("import os\nprint(os.environ['DATA_DIR'])\n") == ("", "", "")


def test_code_that_cannot_be_read_gets_the_usual_flags() -> None:
    found = examine(make_spec(SINGLE), {"train.py": "x ="})
    assert found.spec.paths.data_flag == "--data_dir"


def test_what_the_specification_says_counts() -> None:
    script = argparse_of('"--data_dir"', '"--logs"', '"--model_dir"')
    assert decided(script, paths=Paths("", "--logs", "")) == ("", "--logs", "")
    assert decided(script, paths=Paths(log_flag="--model_dir")) == ("--data_dir", "--model_dir", "--model_dir")
    assert decided(script, arguments=("--data_dir=/mnt", "--model_dir", "x")) == ("", "", "")
    assert decided("import sys\nsys.argv\n", arguments=("--log_dir=x",)) == ("--data_dir", "", "")


def test_of_two_flags_that_may_mean_the_data_one_is_chosen_with_one_click() -> None:
    script = argparse_of('"--input_dir"', '"--dataset_dir"')
    _, (found,) = examined(script, inputs=(DatasetInput(DATA),))
    assert (found.code, found.line) == ("unclear_flag", 3)
    assert found.fixes == (
        Fix("--input_dir is the data", "paths.data_flag", "--input_dir"),
        Fix("--dataset_dir is the data", "paths.data_flag", "--dataset_dir"),
    )
    assert examined(script, inputs=())[1] == [], "there is no data to be found"
    assert examined(script, inputs=(DatasetInput(DATA),), paths=Paths("--input_dir"))[1] == []
    assert examined(script, inputs=(DatasetInput(DATA),), arguments=("--dataset_dir=$DATA_DIR",))[1] == []


def test_a_required_flag_is_named_with_the_path_that_fills_it() -> None:
    script = argparse_of('"--log_dir"', '"--train_dir", required=True', '"-n", "--steps", required=True, type=int')
    train, steps = missing(script)
    assert train.message == "The script requires --train_dir, which the job does not give."
    assert train.fixes == (Fix("Add --train_dir=$LOG_DIR", "arguments", "--train_dir=$LOG_DIR", adds=True),)
    assert (train.line, steps.fixes) == (4, ())
    assert missing(script, arguments=("--train_dir=$LOG_DIR", "-n", "3")) == []
    assert missing(script, arguments=("--train_dir", "x", "--steps=3")) == []
    assert [one.line for one in missing(script, arguments=("--train=x", "--st", "3"))] == [], "argparse takes prefixes"


def test_required_positional_arguments_are_counted() -> None:
    script = argparse_of('"data_dir"', '"epochs", type=int', '"more", nargs="*"', '"--fast", action="store_true"')
    assert [one.fixes for one in missing(script)] == [
        (Fix("Add $DATA_DIR", "arguments", "$DATA_DIR", adds=True),), ()
    ]  # fmt: skip
    assert [one.message.split()[5] for one in missing(script, arguments=("--fast", "$DATA_DIR"))] == ["epochs,"]
    assert missing(script, arguments=("--fast", "$DATA_DIR", "-3")) == []


@pytest.mark.parametrize(
    "script",
    [
        argparse_of('"--x", required=True', parse="parse_args([])"),
        argparse_of('"--x", required=True') + "parser.add_subparsers()\n",
        argparse_of('"--x", required=True') + "other = argparse.ArgumentParser()\n",
        argparse_of('"--x", required=False', '"y", nargs="?"', '"rest", nargs=argparse.REMAINDER'),
    ],
)
def test_what_may_not_be_required_is_not_called_missing(script: str) -> None:
    assert missing(script) == []


def test_the_classic_flags_are_given_by_the_job() -> None:
    flags = [f'"{one}", required=True' for one in ("--ps_hosts", "--worker_hosts", "--job_name", "--task_index")]
    assert missing(argparse_of(*flags), strategy=Strategy.BETWEEN_GRAPH) == []
    assert len(missing(argparse_of(*flags))) == 4


def test_the_parser_of_a_module_that_is_a_script_itself_is_not_this_ones() -> None:
    files = {
        "train.py": "import tool\n" + argparse_of('"--logdir"'),
        "tool.py": "if __name__ == '__main__':\n    import argparse\n    parser = argparse.ArgumentParser()\n"
        "    parser.add_argument('--x', required=True)\n    parser.parse_args()\n",
    }
    found = examine(make_spec(SINGLE), files)
    assert (found.findings, found.spec.paths.log_flag) == ([], "--logdir")


def test_a_flag_and_its_value_in_one_argument_are_noticed() -> None:
    script = argparse_of('"--epochs", type=int', '"--title"', '"-n"')
    given = ("--epochs 3", "--title=a b", "--title", "-- a b", "-n 3", "-3 4", "a b")
    found = [one for one in examined(script, arguments=given)[1] if one.code == "joined_argument"]
    assert [one.fixes for one in found] == [(Fix("Write --epochs=3", "arguments.0", "--epochs=3"),), ()]


def test_a_flag_that_may_mean_the_data_or_a_name_is_offered() -> None:
    script = argparse_of('"--dataset", default="mnist"')
    _, (found,) = examined(script, inputs=(DatasetInput(DATA),))
    assert (found.code, found.message) == ("unclear_flag", "--dataset may mean the data, or a name. It is not passed.")
    assert found.fixes == (Fix("--dataset is the data", "paths.data_flag", "--dataset"),)
    assert examined(script, inputs=())[1] == []
    assert examined(script, inputs=(DatasetInput(DATA),), arguments=("--dataset=cifar10",))[1] == []
    assert examined(script + "import os\nos.environ['DATA_DIR']\n", inputs=(DatasetInput(DATA),))[1] == []
    required = argparse_of('"--dataset", required=True')
    assert [one.code for one in examined(required, inputs=(DatasetInput(DATA),))[1]] == ["required_flag"]


def test_a_parser_that_requires_data_is_noticed_where_the_job_has_none() -> None:
    strict = argparse_of('"--data-dir", required=True')
    assert [one.code for one in examined(strict)[1]] == ["no_inputs"]
    assert examined(strict, inputs=(DatasetInput(DATA),))[1] == []
    assert "no_inputs" not in [one.code for one in examined(strict, arguments=("--data-dir=/mnt/points",))[1]]
    assert examined(argparse_of('"--data-dir"'))[1] == []

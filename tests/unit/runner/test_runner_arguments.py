"""Which variables are put into arguments and the values of variables, and which are left to the script."""

from __future__ import annotations

import pytest

from tests.unit.runner.test_runner_beginnings import ORDER, VARIABLES
from yardmaster_runner.exits import CannotRun
from yardmaster_runner.expansion import LONGEST, expanded, expanded_values
from yardmaster_runner.launch import Folders, command, environment
from yardmaster_runner.order import read_order
from yardmaster_runner.settings import read_settings

KNOWN = {"DATA_DIR": "/work/data", "LOG_DIR": "/logs", "SM_MODEL_DIR": "/work/$DATA_DIR"}


@pytest.mark.parametrize(
    ("argument", "given"),
    [
        ("$DATA_DIR/x.csv", "/work/data/x.csv"),
        ("--table=${DATA_DIR}/a b.csv", "--table=/work/data/a b.csv"),
        ("--table=$(DATA_DIR)/x", "--table=/work/data/x"),
        ("--a=$DATA_DIR:$LOG_DIR", "--a=/work/data:/logs"),
        ("${DATA_DIR}x", "/work/datax"),
        ("$DATA_DIR", "/work/data"),
        # What was put in is not read again.
        ("--out=$SM_MODEL_DIR", "--out=/work/$DATA_DIR"),
        # What no variable is called stays, and so does a shell's syntax.
        ("$DATA_DIRECTORY/x", "$DATA_DIRECTORY/x"),
        ("$MODEL_DIR $HOME ${HOME} $(HOME)", "$MODEL_DIR $HOME ${HOME} $(HOME)"),
        ("^loss$", "^loss$"),
        ("$(cat $DATA_DIR/x)", "$(cat /work/data/x)"),
        ("${DATA_DIR:-x} ${DATA_DIR", "${DATA_DIR:-x} ${DATA_DIR"),
        ("100$", "100$"),
        # A dollar itself.
        ("--regex=a$$b $$HOME", "--regex=a$b $HOME"),
        ("$$DATA_DIR/x", "$DATA_DIR/x"),
        ("$${DATA_DIR} $$(DATA_DIR)", "${DATA_DIR} $(DATA_DIR)"),
        ("$$$DATA_DIR", "$/work/data"),
        ("", ""),
    ],
)
def test_variables_are_put_in_by_name_and_nothing_else(argument: str, given: str) -> None:
    assert expanded(argument, KNOWN) == given


def test_the_values_of_variables_may_name_each_other_in_any_order() -> None:
    values = {"A": "$B/a", "B": "${C}", "C": "$DATA_DIR", "LOG_DIR": "mine", "D": "$LOG_DIR"}
    assert expanded_values(values, KNOWN) == {
        "A": "/work/data/a", "B": "/work/data", "C": "/work/data", "LOG_DIR": "mine", "D": "/logs",
    }  # fmt: skip


def test_variables_that_name_each_other_in_a_circle_stay_as_they_are_written() -> None:
    values = {"A": "$B $DATA_DIR", "B": "$A", "PATH": "/mine:$PATH", "C": "$A $X", "X": "x"}
    assert expanded_values(values, KNOWN) == {
        "A": "$B /work/data", "B": "$A", "PATH": "/mine:$PATH", "C": "$A x", "X": "x",
    }  # fmt: skip


@pytest.mark.parametrize(
    "values",
    [
        {"A": "x" * 1000, **{f"A{n}": "$A" * 1000 for n in range(3)}},
        {"A0": "x" * 9, **{f"A{n + 1}": f"$A{n}" * 10 for n in range(30)}},
        {"A": "x" * (LONGEST // 2), **{f"B{n}": "$A" for n in range(40)}},
    ],
)
def test_what_would_become_too_long_is_refused_and_not_made(values: dict[str, str]) -> None:
    with pytest.raises(CannotRun, match="characters"):
        expanded_values(values, {})


def order_of(**spec):
    secrets = [{"name": "KEY", "env": "KEY", "value": "secret"}, {"name": "F", "env": "F", "file": "f", "value": "x"}]
    return read_order({**ORDER, "spec": {**ORDER["spec"], "paths": {"data_flag": ""}, **spec}, "secrets": secrets})


def test_arguments_and_variables_see_the_folders_the_variables_and_the_task_but_no_secret() -> None:
    settings = read_settings({**VARIABLES, "YARDMASTER_CLUSTER": '{"worker": ["a:1", "b:2"]}'})
    order = order_of(
        strategy="multi_worker_mirrored",
        roles={"worker": {"replicas": 2}},
        environment={"RUN": "$LOG_DIR/run-$(YARDMASTER_INDEX)", "COST": "5$$"},
        arguments=["--out=$RUN", "$YARDMASTER_ROLE", "${YARDMASTER_TASKS}", "$TF_CONFIG", "$KEY", "$F", "$HOME"],
        paths={"data_flag": "", "log_flag": ""},
    )
    folders = Folders.of(settings)
    out, role, tasks, config, *rest = command(settings, order, folders)[3:]
    assert (out, role, tasks) == (f"--out=/work/log/run-{settings.index}", settings.role, "2")
    result = environment(settings, order, folders, {"HOME": "/home/x"})
    assert (result["RUN"], result["COST"]) == (f"/work/log/run-{settings.index}", "5$")
    assert config == result["TF_CONFIG"]
    assert rest == ["$KEY", "/work/secrets/f", "$HOME"]


def test_one_flag_for_logs_and_the_model_is_one_folder() -> None:
    settings = read_settings(VARIABLES)
    order = order_of(paths={"data_flag": "auto", "log_flag": "--model_dir", "model_flag": "--model_dir"})
    assert command(settings, order, Folders.of(settings))[3:] == ["--data_dir=/work/data", "--model_dir=/work/log"]
    assert environment(settings, order, Folders.of(settings), {})["MODEL_DIR"] == "/work/log"

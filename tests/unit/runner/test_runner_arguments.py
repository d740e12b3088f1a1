"""Which variables are put into an argument, and which are left to the script."""

from __future__ import annotations

import pytest

from yardmaster_runner.launch import with_folders

KNOWN = {"DATA_DIR": "/work/data", "LOG_DIR": "/logs", "SM_MODEL_DIR": "/work/$DATA_DIR"}


@pytest.mark.parametrize(
    ("argument", "given"),
    [
        ("$DATA_DIR/x.csv", "/work/data/x.csv"),
        ("--table=${DATA_DIR}/a b.csv", "--table=/work/data/a b.csv"),
        ("--a=$DATA_DIR:$LOG_DIR", "--a=/work/data:/logs"),
        ("${DATA_DIR}x", "/work/datax"),
        ("$DATA_DIR", "/work/data"),
        ("--out=$SM_MODEL_DIR", "--out=/work/$DATA_DIR"),
        # What no folder is called stays, and so does a shell's syntax.
        ("$DATA_DIRECTORY/x", "$DATA_DIRECTORY/x"),
        ("$MODEL_DIR $HOME ${HOME}", "$MODEL_DIR $HOME ${HOME}"),
        ("^loss$", "^loss$"),
        ("$(cat $DATA_DIR/x)", "$(cat /work/data/x)"),
        ("${DATA_DIR:-x} ${DATA_DIR", "${DATA_DIR:-x} ${DATA_DIR"),
        ("100$", "100$"),
        ("--regex=a$$b $$HOME", "--regex=a$$b $$HOME"),
        # The text itself.
        ("$$DATA_DIR/x", "$DATA_DIR/x"),
        ("$${DATA_DIR}", "${DATA_DIR}"),
        ("", ""),
    ],
)
def test_folders_are_put_in_by_name_and_nothing_else(argument: str, given: str) -> None:
    assert with_folders(argument, KNOWN) == given

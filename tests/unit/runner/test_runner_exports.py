"""Which model directories hold a whole export."""

from __future__ import annotations

import pytest

from yardmaster_runner.exports import half_export, is_whole, may_keep

VARIABLES = ["variables/variables.index", "variables/variables.data-00000-of-00001"]


@pytest.mark.parametrize(
    ("paths", "whole"),
    [
        (["saved_model.pb", *VARIABLES], True),
        (["saved_model.pb", *VARIABLES, "assets/vocabulary.txt", "fingerprint.pb"], True),
        (["saved_model.pb"], True),
        ([f"{version}/{path}" for version in "12" for path in ["saved_model.pb", *VARIABLES]], True),
        (VARIABLES, False),
        (["saved_model.pb", VARIABLES[1]], False),
        (["saved_model.pb", "variables/variables.index", "variables/variables.data-00000-of-00002"], False),
        (["saved_model.pb", *VARIABLES, "variables/variables_temp/part-00000"], False),
        (["1/saved_model.pb", *(f"2/{path}" for path in VARIABLES)], False),
        (["weights.h5"], False),
    ],
)
def test_a_saved_model_is_whole_once_all_of_its_parts_are_there(paths, whole):
    assert is_whole(paths) is whole


def test_only_a_script_that_was_stopped_may_leave_a_model_with_another_exit_code_than_0(tmp_path):
    assert (may_keep(0, False), may_keep(0, True), may_keep(143, True), may_keep(1, False)) == (True, True, True, False)
    assert half_export(str(tmp_path), 143) == "", "there is nothing"
    (tmp_path / "weights").write_text("42")
    assert half_export(str(tmp_path), 0) == ""
    assert "no model was saved" in half_export(str(tmp_path), 143)

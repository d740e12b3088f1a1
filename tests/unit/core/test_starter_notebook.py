"""The starter notebook: a notebook whatever the job is called, whose code names nothing but what the engine gave."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yardmaster.job.spec import Role
from yardmaster.job.starter_notebook import starter_notebook

SERVERS = {Role.WORKER: ("w-0:2222", "w-1:2222"), Role.PS: ("ps-0:2222",)}
HOSTILE = [
    '"], "cells": [], "x": ["',
    "</script><script>alert(1)</script>",
    "# head\u2028`code` $x^2$ [a](javascript:alert(1)) <img src=x onerror=y>",
    "'''\"\"\"\\",
    "{{ 7 * 7 }} ${HOME} %s %n",
]


def notebook(name: str = "servers", **options: Any) -> dict[str, Any]:
    found = json.loads(starter_notebook(name, "grpc://w-0:2222", SERVERS, **options))
    assert isinstance(found, dict)
    return found


def source(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def code_of(found: dict[str, Any]) -> list[str]:
    return [source(cell) for cell in found["cells"] if cell["cell_type"] == "code"]


def test_it_is_a_notebook_of_a_format_that_every_jupyter_reads() -> None:
    found = notebook()
    assert (found["nbformat"], found["nbformat_minor"]) == (4, 5)
    assert found["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in found["cells"]]
    assert len(ids) == len(set(ids)) == 8
    for cell in found["cells"]:
        assert cell["metadata"] == {}
        assert ("outputs" in cell) == ("execution_count" in cell) == (cell["cell_type"] == "code")


def test_its_code_connects_to_the_target_and_uses_every_server() -> None:
    cells = code_of(notebook(data_dir="/work/data"))
    for cell in cells:
        ast.parse(cell)
    said: dict[str, Any] = {}
    exec(cells[0].replace("import tensorflow.compat.v1 as tf", ""), said)
    assert said["TARGET"] == "grpc://w-0:2222"
    assert said["TASKS"] == {"worker": 2, "ps": 1}
    assert said["DATA_DIR"] == "/work/data"
    everything = "\n".join(cells)
    assert "tf.Session(TARGET" in everything
    assert '"/job:ps/task:%d"' in everything
    assert '"/job:worker/task:%d"' in everything


def test_without_inputs_there_is_no_data_directory() -> None:
    assert "DATA_DIR" not in "".join(code_of(notebook()))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_breaks_nothing_and_means_nothing(name: str) -> None:
    found = notebook(name)
    assert code_of(found) == code_of(notebook())
    first = source(found["cells"][0])
    heading = first.splitlines()[0]
    assert heading.startswith("# ")
    assert not set("<>`$[]()*_\\\"'{}") & set(heading)


@given(st.text(max_size=100), st.text(max_size=100))
def test_no_text_of_a_user_changes_anything_but_prose(name: str, reach: str) -> None:
    found = notebook(name, reach=reach)
    assert [cell["id"] for cell in found["cells"]] == [cell["id"] for cell in notebook()["cells"]]
    assert code_of(found) == code_of(notebook())


@given(st.text(max_size=60))
def test_an_odd_path_stays_one_value(path: str) -> None:
    cells = code_of(notebook(data_dir=f"/{path}"))
    said: dict[str, Any] = {}
    exec(cells[0].replace("import tensorflow.compat.v1 as tf", ""), said)
    assert said["DATA_DIR"] == f"/{path}"

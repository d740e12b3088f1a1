"""Rows of a real Ignite arrive whole and once each: of caches, tables and queries, in NumPy and in TensorFlow."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from portal.env import task_python
from tests.integration.ignite.conftest import environment_of, in_task
from tests.real.ignite import Ignite

pytestmark = [pytest.mark.ignite, pytest.mark.tensorflow, pytest.mark.slow]
WHOLE = {"lost": [], "doubled": [], "foreign": []}


@pytest.fixture(scope="module")
def rows(plain: Ignite) -> dict:
    return in_task(plain, "with_ignite.py", "rows")


@pytest.fixture(scope="module")
def shown(plain: Ignite) -> dict:
    return in_task(plain, "with_tensorflow.py", "look")


def test_objects_are_dicts_of_their_fields_with_arrays_and_objects_in_them(rows: dict) -> None:
    assert rows["row"] == {
        "key": 14, "val.name": "kitten-14.png", "val.metadata.id": 140, "val.metadata.label": "ba",
        "val.metadata.sizes": [800, 14], "val.again.id": 140, "val.again.label": "ba", "val.again.sizes": [800, 14],
        "val.pixels": [[14, 15, 16], [17, 18, 19]], "val.weights": [7.0, 7.0], "val.taken": 1_000_014,
        "val.kept": 2_000_014_000_005, "val.mark": "\0" * 7 + "\x0e".rjust(1) + "\0" * 7 + "\x0f",
        "val.tags": ["even", "n14"], "val.kind": 2, "val.votes": -1,
    }  # fmt: skip
    assert rows["pairs"] == 200


def test_every_row_comes_once_however_many_connections_and_rows_a_page(rows: dict) -> None:
    assert rows["numbers"] == {**WHOLE, "rows": 3000, "partitions": 8}
    assert rows["few rows a page"] == {**WHOLE, "rows": 3000, "partitions": 8}
    assert rows["full pages"] == {**WHOLE, "rows": 64, "partitions": 8}


def test_a_cache_that_is_on_every_node_is_divided_all_the_same(rows: dict) -> None:
    assert rows["replicated"] == {**WHOLE, "rows": 500, "partitions": 8}


def test_each_task_reads_its_own_partitions_and_local_those_of_the_node(rows: dict) -> None:
    assert rows["parts"]
    assert rows["local"] == {**WHOLE, "rows": 3000}


def test_a_table_is_a_cache_of_rows_and_a_query_gives_its_columns(rows: dict) -> None:
    assert rows["table"] == [[1, "WARM KITTY"], [2, "SOFT KITTY"], [3, "LITTLE BALL"]]
    assert rows["query"] == [[2, -1.0], [3, 1.5]]


def test_connections_that_are_cut_lose_no_row_and_double_none(plain: Ignite) -> None:
    found = in_task(plain, "with_ignite.py", "cut")
    cuts = found.pop("cuts")
    assert found == {**WHOLE, "rows": 3000}
    assert cuts > 5


def test_a_dataset_has_batches_of_fixed_and_ragged_fields(shown: dict) -> None:
    assert shown["spec"] == {
        "name": "[None]", "pixels": "[None, 2, 3]", "weights": "[None, None]", "taken": "[None]", "kept": "[None]",
        "mark": "[None]", "tags": "[None, None]", "kind": "[None]", "votes": "[None]",
    }  # fmt: skip
    assert shown["sizes"] == [32, 32, 32, 4]
    assert shown["right"]
    assert shown["keys"]
    assert shown["again"] == 100
    assert shown["dropped"] == [1000, 1000, 1000]


def test_long_rows_are_batches_too_and_bytes_may_be_strings(shown: dict) -> None:
    assert (shown["long"], shown["long row"]) == ([2, 5, 5], True)
    assert (shown["strings"], shown["string"]) == (1, [300_000])


def test_a_query_is_a_dataset_and_a_model_learns_from_a_cache(shown: dict) -> None:
    assert shown["query"] == [{"ID": 3, "WEIGHT": 1.5}]
    assert shown["trained"]


def test_a_script_of_old_runs_with_another_import(plain: Ignite) -> None:
    found = in_task(plain, "with_tensorflow.py", "old_name")
    assert found["rows"] == [{"key": key, "NAME": name} for key, name in ((1, "A"), (2, "B"), (3, "C"))]
    assert found["byte"] == "uint8"
    assert found["numbers"]
    assert 0 < found["part"] < 3000
    assert found["is a dataset"]
    assert in_task(plain, "with_tensorflow.py", "in_graph") == [[1, "A"], [2, "B"], [3, "C"]]


def test_the_last_line_of_a_script_that_fails_names_the_field(plain: Ignite) -> None:
    command = [task_python(), str(Path(__file__).with_name("with_tensorflow.py")), "failing"]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **environment_of(plain)}, timeout=100, check=False
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("yardmaster: cache 'one-pictures': the field val.votes is null in ")

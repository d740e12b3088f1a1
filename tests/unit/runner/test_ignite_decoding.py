"""Rows of Ignite become columns: every form of an object, made here byte by byte, in a Python with NumPy."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from portal.env import task_python

pytestmark = pytest.mark.tensorflow

PLATFORM = Path(__file__).resolve().parents[3] / "platform"


@pytest.fixture(scope="module")
def made() -> dict:
    source = Path(__file__).with_name("ignite_made_bytes.py")
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PLATFORM)}
    done = subprocess.run(
        [task_python(), source], capture_output=True, text=True, env=environment, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_rows_of_every_form_come_out_as_they_went_in(made: dict) -> None:
    assert made["right"] == 20 * 57
    assert made["primitive"]


def test_a_field_that_came_later_is_null_in_older_rows(made: dict) -> None:
    assert made["older"] == [True] * 30


def test_rows_with_keys_that_were_handed_out_are_passed_over(made: dict) -> None:
    assert made["handed_out"] == [True, True]


def test_what_is_no_tensor_is_named_with_its_field_and_a_remedy(made: dict) -> None:
    said = made["messages"]
    assert said["null"].startswith("ignite_null: the cache: the field val.name is null in 2 of 9 rows.")
    assert "nulls={'val.name': b''}" in said["null"]
    assert "has no field 'val.nmae'. It has: key, val, " in said["unknown field"]
    assert "the field val.items has 1 items in a row, and shapes says (7,)" in said["shape"]
    assert said["other type at first"].startswith("ignite_type: val is an object of different types")
    assert "a Map, which no tensor can hold" in said["map"]
    assert "different types in different rows (int and long)" in said["two types"]

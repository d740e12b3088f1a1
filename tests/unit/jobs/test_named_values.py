"""What a job was given by name, for the columns of a list."""

from __future__ import annotations

import uuid

import pytest

from yardmaster.job.named_values import MOST_VALUES, named_values
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.spec_json import spec_from_json
from yardmaster.job.spec_limits import SpecLimits


def spec(arguments: list[str] | None = None, **more: object) -> TrainingSpec:
    base = {"version": 1, "name": "x", "strategy": "single", "roles": {"worker": {"replicas": 1}}}
    base |= {"code": str(uuid.UUID(int=1)), "entry_point": "main.py", "arguments": arguments or []}
    return spec_from_json(base | more, SpecLimits())


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        (["--lr=0.1", "--epochs", "5"], {"lr": 0.1, "epochs": 5.0}),
        (["--fast", "--name=x y", "data.csv"], {"fast": "true", "name": "x y"}),
        (["--fast", "--slow"], {"fast": "true", "slow": "true"}),
        (["--offset", "-3", "-v"], {"offset": -3.0, "v": "true"}),
        (["--lr=0.1", "--lr=0.2"], {"lr": 0.2}),
        (["--loss=nan", "--" + "x" * 101 + "=1", "--long=" + "y" * 201], {"loss": "nan"}),
        (["plain", "--1=2"], {}),
    ],
)
def test_arguments_are_read_by_name(arguments, values):
    assert named_values(spec(arguments)) == values


def test_parameters_of_a_notebook_count_and_there_is_a_bound():
    made = spec(entry_point="train.ipynb", parameters={"lr": 0.5, "name": "small"})
    assert named_values(made) == {"lr": 0.5, "name": "small"}
    many = spec([f"--a{number}=1" for number in range(MOST_VALUES + 5)])
    assert len(named_values(many)) == MOST_VALUES

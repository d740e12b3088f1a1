"""What a Spark job publishes: which task has an output folder, and which of its files are data."""

from __future__ import annotations

import pytest

from yardmaster_runner.order import read_order
from yardmaster_runner.spark.output import is_data


@pytest.mark.parametrize(
    ("path", "is_published"),
    [
        ("predictions.jsonl", True),
        ("scores/part-00000-7c.json", True),
        ("scores/_SUCCESS", False),
        ("scores/.part-00000-7c.json.crc", False),
        ("scores/_temporary/0/task_1/part-00000", False),
        ("checksums.crc", True),
    ],
)
def test_what_spark_writes_beside_data_is_not_published(path: str, is_published: bool) -> None:
    assert is_data(path) is is_published


def test_the_driver_alone_has_an_output_folder() -> None:
    roles = {"driver": {"replicas": 1}, "executor": {"replicas": 2}}
    spec = {"strategy": "spark", "roles": roles, "publishes": {"dataset": "scores"}, "program": "predict"}
    order = read_order({"job": "j", "attempt": 1, "spec": spec})
    assert [order.of_role(role).publishes for role in ("driver", "executor")] == [True, False]

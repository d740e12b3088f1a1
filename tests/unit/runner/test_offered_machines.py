"""Which machines tasks are told of, so that they can agree on who reads what: addresses, of all that train, or none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from yardmaster_runner import offered
from yardmaster_runner.order import Limits, Order
from yardmaster_runner.settings import Settings, read_settings

A, B = "10.0.0.11", "10.0.0.12"
PAIR = {"worker": [f"{A}:2000", f"{B}:2000"]}


def settings_of(folder: Path, cluster: object, role: str = "worker", index: int = 0) -> Settings:
    return read_settings(
        {
            "YARDMASTER_WORK_DIR": str(folder),
            "YARDMASTER_URL": "http://127.0.0.1:9",
            "YARDMASTER_TOKEN_FILE": str(folder / "token"),
            "YARDMASTER_ROLE": role,
            "YARDMASTER_INDEX": str(index),
            "YARDMASTER_CLUSTER": json.dumps(cluster),
        }
    )


def order_of(agrees: bool = True, **replicas: int) -> Order:
    return Order(
        job="j", attempt=1, strategy="multi_worker_mirrored", entry_point="main.py", arguments=(), environment={},
        paths={}, replicas=replicas, grace_period=5.0, code=None, inputs=(), checkpoint=None, limits=Limits(),
        agrees=agrees,
    )  # fmt: skip


def test_every_task_that_trains_is_told_of_the_same_machines_by_their_parts(tmp_path: Path):
    cluster = {"ps": [f"{A}:1"], "chief": [f"{B}:1"], "worker": [f"{A}:2", f"{A}:3"]}
    order = order_of(chief=1, worker=2, ps=1)
    for role, index in (("chief", 0), ("worker", 0), ("worker", 1)):
        assert offered.machines(settings_of(tmp_path, cluster, role, index), order) == [B, A, A]
    assert offered.machines(settings_of(tmp_path, cluster, "ps"), order) == [], "it reads no part"


@pytest.mark.parametrize(
    ("cluster", "replicas", "why"),
    [
        ({"worker": [f"{A}:1", f"{A}:2"]}, 2, "all on one machine"),
        ({"worker": [f"{A}:1"]}, 1, "alone"),
        ({"worker": ["job-worker-0.team:1", "job-worker-1.team:1"]}, 2, "known by names, as in pods"),
        ({"worker": [f"{A}:1", "job-worker-1.team:1"]}, 2, "one of them by its name"),
        ({"worker": [f"{A}:1", f"{B}:1"]}, 3, "of one of them the machine is not known"),
        ({}, 2, "they have no servers, so no addresses"),
    ],
)
def test_no_machines_are_told_where_tasks_could_not_all_agree(tmp_path: Path, cluster, replicas: int, why: str):
    assert offered.machines(settings_of(tmp_path, cluster), order_of(worker=replicas)) == [], why


def test_tasks_of_an_attempt_from_before_an_upgrade_are_told_of_none(tmp_path: Path):
    assert offered.machines(settings_of(tmp_path, PAIR), order_of(worker=2)) == [A, B]
    assert offered.machines(settings_of(tmp_path, PAIR), order_of(agrees=False, worker=2)) == []


def test_addresses_of_version_6_are_told_without_brackets(tmp_path: Path):
    cluster = {"worker": ["[fd00::1]:2000", "[fd00::2]:2000"]}
    assert offered.machines(settings_of(tmp_path, cluster), order_of(worker=2)) == ["fd00::1", "fd00::2"]


def test_the_file_of_the_inputs_says_them_too(tmp_path: Path):
    settings = settings_of(tmp_path, PAIR, index=1)
    offered.describe_inputs(settings, order_of(worker=2), {}, "/the/socket")
    said = json.loads(Path(offered.inputs_file_in(settings.work_dir)).read_text())
    assert (said["machines"], said["part"], said["socket"]) == ([A, B], [1, 2], "/the/socket")

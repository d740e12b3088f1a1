"""A cluster of two nodes, each at an address of its own: who reads which partitions, and queries by partitions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from tests.integration.ignite.conftest import in_task
from tests.real.ignite import Ignite, ignite

pytestmark = [pytest.mark.ignite, pytest.mark.tensorflow, pytest.mark.slow]
ROWS = 300


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ignite]:
    folder = tmp_path_factory.mktemp("ignite") / "pair"
    with ignite(folder, 2, machines="127.0.0.1 127.0.0.2") as server:
        server.fill(
            f"longs few-longs 0 {ROWS}",
            'sql CREATE TABLE KITTENS (ID LONG PRIMARY KEY, NAME VARCHAR) WITH "backups=1"',
            f"sql INSERT INTO KITTENS SELECT X, CONCAT('n', X) FROM SYSTEM_RANGE(1, {ROWS})",
            'sql CREATE TABLE EVERYWHERE (ID LONG PRIMARY KEY, NAME VARCHAR) WITH "template=replicated"',
            "sql INSERT INTO EVERYWHERE VALUES (1, 'A'), (2, 'B')",
        )
        yield server


def test_a_query_of_one_table_is_divided_and_others_are_read_whole(pair: Ignite) -> None:
    def asked(text: str, partitioned: str = "") -> list[list[int]]:
        return in_task(pair, "with_ignite.py", "divided", text, partitioned)

    every = list(range(1, ROWS + 1))
    simple = asked("SELECT ID, NAME FROM KITTENS")
    assert sorted(chain.from_iterable(simple)) == every
    assert all(len(one) > ROWS // 10 for one in simple)
    assert list(chain.from_iterable(asked("SELECT ID FROM KITTENS WHERE ID = 7"))) == [7]
    assert asked("SELECT ID FROM KITTENS ORDER BY ID") == [every] * 3
    assert sorted(chain.from_iterable(asked("SELECT ID FROM KITTENS ORDER BY ID", "yes"))) == every
    assert asked("SELECT ID FROM KITTENS", "no") == [every] * 3
    assert asked("SELECT ID FROM EVERYWHERE") == [[1, 2]] * 3


def test_tasks_read_what_their_machine_holds_and_each_row_once_also_when_a_node_fails_between_starts(
    pair: Ignite, tmp_path: Path
) -> None:
    begun = in_task(pair, "with_ignite.py", "beside", "few-longs", tmp_path, 0, 1)
    assert {one for some in begun["holders"] for one in some} >= {"127.0.0.1", "127.0.0.2"}
    for index in (0, 1):
        machine = begun["machines"][index]
        assert all(machine in begun["holders"][one] for one in begun[str(index)]["partitions"])
    pair.kill(1)
    later = in_task(pair, "with_ignite.py", "beside", "few-longs", tmp_path, 2, 1)
    assert later["1"] == begun["1"], "a task that starts again reads the same"
    assert later["2"]["partitions"]
    assert sorted(begun["0"]["keys"] + begun["1"]["keys"] + later["2"]["keys"]) == list(range(ROWS))

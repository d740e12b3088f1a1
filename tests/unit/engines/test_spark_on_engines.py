"""What the launch page says of Spark on each engine, and which engines the portal's own programs find one on."""

from __future__ import annotations

import pytest

from yardmaster.engines.base import RunsSpark
from yardmaster.engines.hosts import HostsEngine
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.engines.local import LocalEngine
from yardmaster.engines.supervision import spark

MACHINES = """
[[machine]]
name = "one"
address = "10.0.0.1"
user = "train"
[[machine]]
name = "two"
address = "10.0.0.2"
user = "train"
"""


@pytest.fixture
def hosts(tmp_path):
    (tmp_path / "machines.toml").write_text(MACHINES)
    return HostsEngine(tmp_path / "engine", tmp_path / "machines.toml")


@pytest.mark.parametrize(("engine", "brings"), [(LocalEngine, True), (HostsEngine, False), (KubernetesEngine, False)])
def test_each_engine_says_whether_it_brings_one(engine, brings):
    assert engine.brings_spark is brings
    assert callable(engine.lacks_spark)


def test_machines_without_java_are_named_and_those_not_looked_at_are_not(hosts):
    assert isinstance(hosts, RunsSpark)
    assert "Java" not in hosts.lacks_spark()
    hosts.records.note_machine("one", java=True)
    hosts.records.note_machine("two", java=False)
    assert "which is missing on two: install it there" in hosts.lacks_spark()


def test_of_many_machines_the_first_are_named():
    assert "missing on a, b, c, d, e and others: " in spark.lacks_on(list("abcdefg"))

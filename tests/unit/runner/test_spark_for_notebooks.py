"""What the Spark cluster of a JupyterLab session is told."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from tests.unit.runner.test_spark_registered import FARM
from yardmaster.job.programs import JUPYTER, option_problems
from yardmaster_runner.order import Size
from yardmaster_runner.spark import task
from yardmaster_runner.spark.cluster import LEAST_HEAP, as_text, from_variable, settings, settings_in, worker_command
from yardmaster_runner.spark.for_notebooks import SHARED, cluster_at, worker_of

GIB = 1 << 30
OPTIONS = {"spark_executors": 2, "cores": 5, "memory": 16 * GIB}


def test_executors_have_whole_cores_and_a_quarter_of_the_sessions_memory_as_heaps() -> None:
    cluster = cluster_at("127.0.0.1:7077", OPTIONS, "s", "/w/spark", "/home/ada")
    found = settings(cluster, "127.0.0.1", SHARED)
    assert (found["spark.executor.cores"], found["spark.cores.max"]) == ("2", "4")
    assert (found["spark.executor.memory"], found["spark.driver.memory"]) == ("2048m", "2048m")
    assert found["spark.master"] == "spark://127.0.0.1:7077"
    assert (found["spark.authenticate"], found["spark.master.rest.enabled"]) == ("true", "false")
    assert (found["spark.ui.enabled"], found["spark.eventLog.enabled"]) == ("false", "false")
    assert found["spark.dynamicAllocation.enabled"] == "true"
    assert settings_in(as_text(found)) == found


def test_one_worker_runs_all_executors() -> None:
    worker = worker_of(cluster_at("127.0.0.1:7077", OPTIONS, "s", "/w/spark", "/home/ada"))
    command = worker_command(["spark-class"], worker, "/w")
    assert command[command.index("--cores") + 1] == "4"
    assert command[command.index("--port") + 1] == "0"
    assert command[command.index("--memory") + 1] == f"{(16 * GIB - LEAST_HEAP) >> 20}m"


def test_a_session_with_fewer_cores_than_one_for_each_has_still_one_for_each() -> None:
    small = cluster_at("h:1", {"spark_executors": 1, "cores": 1, "memory": 2 * GIB}, "s", "/w", "/h")
    assert (small.cores, settings(small, "h", SHARED)["spark.executor.memory"]) == (1, "512m")


def test_the_options_are_those_of_the_program() -> None:
    key = "0192b3c4-5d6e-7f80-8123-456789abcdef"
    assert not list(option_problems(JUPYTER, {"session": key, "owner": key, **OPTIONS}))
    assert list(option_problems(JUPYTER, {"session": key, "owner": key, "spark_executors": 0}))


def test_on_a_registered_cluster_a_notebook_has_what_is_registered_and_executors_get_no_token() -> None:
    where: Any = SimpleNamespace(
        cluster={"worker": ["127.0.0.1:9000"]}, role="worker", index=0, work_dir="/w", home_dir="/home/ada"
    )
    order: Any = SimpleNamespace(spark=replace(FARM, url="", token=""), sizes={"worker": Size(1.0, 16 * GIB)})
    cluster = from_variable(task.variables_of_session(where, order))
    found = settings(cluster, "10.0.0.10", {**SHARED, "spark.cores.max": "600"}, "/w/spark/job-code.zip")
    expected = {
        "spark.master": "spark://10.0.0.5:7077", "spark.executor.instances": "3", "spark.cores.max": "6",
        "spark.executor.memory": "2048m", "spark.driver.memory": "2048m", "spark.driver.host": "10.0.0.10",
        "spark.authenticate.secret": "swordfish", "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true", "spark.eventLog.enabled": "false",
    }  # fmt: skip
    assert expected.items() <= found.items()
    assert [name for name in found if name.startswith("spark.executorEnv.")] == []
    assert (cluster.code_dir, cluster.registered and cluster.registered.has_code) == ("/home/ada", False)
    assert task.variables_of_session(where, SimpleNamespace(spark=None)) == {}  # type: ignore[arg-type]

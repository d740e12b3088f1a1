"""A JupyterLab session with Spark, for real: its notebooks drive the session's cluster, share its executors, and leave
no process behind."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from portal.env import spark_folder
from tests.integration.workbench.jupyter_session import PATIENCE, JupyterSession, jupyter_session
from tests.integration.workbench.test_jupyter_program import _is_alive
from tests.real import scene
from yardmaster_runner.processes import descendants
from yardmaster_runner.spark.cluster import FOLDER

pytestmark = [pytest.mark.slow, pytest.mark.workbench, pytest.mark.spark, pytest.mark.timeout(400)]

NOTEBOOK = "Starter notebooks/4-spark-sql-and-mllib.ipynb"
OPTIONS = {"spark_executors": 1, "cores": 1, "memory": 3 << 30}
COUNT = "print(spark.range(1000).repartition(2).count())"
BEGIN = "from pyspark.sql import SparkSession; spark = SparkSession.builder.getOrCreate()"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[JupyterSession]:
    java = {name: os.environ[name] for name in ("JAVA_HOME",) if name in os.environ}
    variables = {FOLDER: spark_folder(), **java}
    with jupyter_session(tmp_path / "w", tmp_path / "home", OPTIONS, **variables) as session:
        yield session


def test_the_starter_notebook_runs_sql_mllib_and_tensorflow_and_leaves_no_process(session: JupyterSession):
    shown = session.run_notebook(NOTEBOOK)
    assert "spark://127.0.0.1:" in shown[0]
    said = "".join(shown)
    assert "|     CH|" in said
    (area,) = [float(line.split()[-1]) for line in said.splitlines() if line.startswith("MLlib:")]
    (accuracy,) = [float(line.split()[-1]) for line in said.splitlines() if line.startswith("Keras:")]
    assert area > 0.9
    assert accuracy > 0.8
    settings = Path(session.run("import os; print(os.environ['SPARK_CONF_DIR'])").strip(), "spark-defaults.conf")
    assert stat.S_IMODE(settings.stat().st_mode) == 0o600
    processes = [one.pid for one in descendants(session.process.pid)]
    assert sum(_is_java(pid) for pid in processes) >= 2, "a master and a worker"
    assert session.stop() == 0
    _until_all_ended(processes)


@pytest.mark.long
def test_a_second_notebook_gets_the_executor_once_the_first_does_not_compute(session: JupyterSession):
    first, second = session.start_kernel(), session.start_kernel()
    for kernel in (first, second):
        assert session.run(f"{BEGIN}\n{COUNT}", kernel).splitlines()[-1] == "1000"
    session.run("spark.range(1).foreach(lambda row: print('from an executor'))", second)
    scene.until(lambda: "from an executor" in session.said(), PATIENCE, "what the executor printed")
    processes = [one.pid for one in descendants(session.process.pid)]
    session.client.close()
    os.kill(session.process.pid, signal.SIGKILL)
    _until_all_ended(processes)


def _is_java(pid: int) -> bool:
    with suppress(OSError):  # it has ended meanwhile
        return Path(os.readlink(f"/proc/{pid}/exe")).name == "java"
    return False


def _until_all_ended(processes: list[int]) -> None:
    scene.until(lambda: not [pid for pid in processes if _is_alive(pid)], 30, "the end of its processes")

"""What the tasks of a Spark cluster are given: settings, sizes, paths, and what their executors print."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from yardmaster_runner.in_script import spark_host
from yardmaster_runner.own_programs import runner_root
from yardmaster_runner.spark import executor_java
from yardmaster_runner.spark.cluster import (
    LEAST_HEAP,
    Cluster,
    as_text,
    from_variable,
    heap,
    offered_memory,
    secret_of,
    settings,
    settings_in,
    to_variable,
    worker_command,
)
from yardmaster_runner.spark.executor_java import ERR, OUT
from yardmaster_runner.spark.executor_logs import ExecutorLogs
from yardmaster_runner.spark.installed import NotInstalled, find
from yardmaster_runner.spark.paths import without_runner

GIB = 1 << 30
CLUSTER = Cluster(
    address="10.0.0.2:7001", master="10.0.0.1:7000", executors=3, cores=2, driver_memory=GIB,
    executor_memory=8 * GIB, secret="s", work_dir="/w", code_dir="/c", log_dir="/l",
)  # fmt: skip


def test_a_task_reads_what_the_runner_wrote() -> None:
    assert from_variable(to_variable(CLUSTER)) == CLUSTER


def test_the_heap_leaves_space_for_python_and_is_never_smaller_than_spark_accepts() -> None:
    assert heap(8 * GIB) == 2 * GIB
    assert heap(GIB) == LEAST_HEAP
    assert offered_memory(8 * GIB) == 8 * GIB - LEAST_HEAP
    assert offered_memory(256 << 20) == LEAST_HEAP


def test_settings_of_the_code_win_but_for_where_things_are_and_who_may_connect() -> None:
    own = {"spark.executor.memory": "3g", "spark.master": "local", "spark.authenticate": "false"}
    found = settings(CLUSTER, "10.0.0.1", own)
    assert found["spark.executor.memory"] == "3g"
    assert found["spark.master"] == "spark://10.0.0.1:7000"
    assert found["spark.authenticate"] == "true"
    assert (found["spark.executor.instances"], found["spark.cores.max"]) == ("3", "6")
    assert "spark.task.cpus" not in found


def test_a_node_of_tensorflow_on_spark_has_all_cores_of_its_executor() -> None:
    with_library = Cluster(**{**CLUSTER.__dict__, "uses_tensorflow_on_spark": True})
    assert settings(with_library, "10.0.0.1", {})["spark.task.cpus"] == "2"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("spark.a 1", {"spark.a": "1"}),
        ("spark.a=1", {"spark.a": "1"}),
        ("spark.a : x y ", {"spark.a": "x y"}),
        ("  # spark.a 1", {}),
        ("spark.a", {"spark.a": ""}),
        ("", {}),
    ],
)
def test_a_line_of_settings_is_read_as_spark_reads_it(line: str, found: dict[str, str]) -> None:
    assert settings_in(line) == found


def test_no_value_begins_a_line_of_its_own() -> None:
    assert settings_in(as_text({"spark.a": "1\nspark.authenticate false"})).keys() == {"spark.a"}


def test_the_secret_tells_nothing_of_the_token() -> None:
    assert secret_of("token") == secret_of("token") != secret_of("another")
    assert "token" not in secret_of("token")


def test_a_worker_listens_at_its_own_address_and_offers_its_cores() -> None:
    command = " ".join(worker_command(["spark-class"], CLUSTER, "/f"))
    assert "--host 10.0.0.2 --port 7001" in command
    assert "--cores 2 --memory 7712m" in command
    assert command.endswith("spark://10.0.0.1:7000")


def test_what_executors_print_comes_line_by_line_and_once(tmp_path: Path) -> None:
    said: list[bytes] = []
    logs = ExecutorLogs(str(tmp_path), said.append)
    folder = tmp_path / "app-1" / "0"
    folder.mkdir(parents=True)
    out = folder / "stdout"
    out.write_bytes(b"one\ntw")
    assert logs.read() == 4
    with out.open("ab") as file:
        file.write(b"o\nthree")
    (folder / "other").write_bytes(b"not a log\n")
    assert (logs.read(), logs.read()) == (4, 0)
    logs.read(is_last=True)
    assert said == [b"one\n", b"two\n", b"three\n"]


def test_the_command_line_of_an_executor_is_not_shown(tmp_path: Path) -> None:
    said: list[bytes] = []
    logs = ExecutorLogs(str(tmp_path), said.append)
    folder = tmp_path / "app-1" / "0"
    folder.mkdir(parents=True)
    error = folder / "stderr"
    error.write_bytes(b'Spark Executor Command: "/usr/bin/java" "-Xmx480M"\n====\n\n')
    assert logs.read() == 0
    with error.open("ab") as file:
        file.write(b"spark: WARN one\n")
    (folder / ERR).write_bytes(b"spark: WARN two\n")
    logs.read(is_last=True)
    assert said == [b"spark: WARN two\n", b"spark: WARN one\n"]


def test_executors_write_what_they_print_to_files_and_a_worker_does_not(tmp_path: Path) -> None:
    java = tmp_path / "the java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text('#!/bin/sh\necho "$JAVA_HOME" "$@"; echo "wrong $#" >&2\n')
    java.chmod(0o755)
    home = str(java.parents[1])
    found = executor_java.for_worker({"PATH": os.environ["PATH"], "JAVA_HOME": home}, str(tmp_path))
    program = os.path.join(found["JAVA_HOME"], "bin", "java")
    worker = ["-cp", "a b", "org.apache.spark.deploy.worker.Worker", "--host", "h"]
    executor = ["-cp", "a b", "org.apache.spark.executor.CoarseGrainedExecutorBackend", "--cores", "2"]
    of_worker, of_executor = (
        subprocess.run([program, *given], env=found, cwd=tmp_path, capture_output=True, text=True, check=True)
        for given in (worker, executor)
    )
    assert of_worker.stdout == f"{home} {' '.join(worker)}\n"
    assert (of_executor.stdout, of_executor.stderr) == ("", "")
    assert (tmp_path / OUT).read_text() == f"{home} {' '.join(executor)}\n"
    assert (tmp_path / ERR).read_text() == "wrong 5\n"


def test_a_java_of_the_path_stays_that_of_what_executors_start(tmp_path: Path) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho ${JAVA_HOME-none}\n")
    java.chmod(0o755)
    found = executor_java.for_worker({"PATH": f"{java.parent}:{os.environ['PATH']}"}, str(tmp_path / "work"))
    program = os.path.join(found["JAVA_HOME"], "bin", "java")
    assert subprocess.run([program], env=found, capture_output=True, text=True, check=True).stdout == "none\n"


def test_what_is_missing_is_said_with_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(NotInstalled, match="Java 17"):
        find({"PATH": str(tmp_path)})
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    with pytest.raises(NotInstalled, match="pyspark"):
        find({"PATH": str(tmp_path)})
    program = tmp_path / "spark" / "pyspark" / "bin" / "spark-class"
    program.parent.mkdir(parents=True)
    program.touch()
    found = find({"PATH": str(tmp_path), "YARDMASTER_SPARK": str(tmp_path / "spark")})
    assert (found.home, found.path) == (str(program.parents[1]), str(tmp_path / "spark"))


def test_the_path_of_a_script_has_no_folder_of_the_runner() -> None:
    found = without_runner({"PYTHONPATH": f"{runner_root()}:/code"}, "/spark")
    assert found["PYTHONPATH"] == "/code:/spark"
    assert without_runner({}, "")["PYTHONPATH"] == ""


def test_the_library_gets_the_address_and_keeps_all_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "tensorflowonspark"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "util.py").write_text("def get_ip_address():\n    return 'far'\n\ndef kept():\n    return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    spark_host.install("10.0.0.2")
    from tensorflowonspark import util

    assert (util.get_ip_address(), util.kept()) == ("10.0.0.2", 1)
    for name in ("tensorflowonspark", "tensorflowonspark.util"):
        monkeypatch.delitem(sys.modules, name)

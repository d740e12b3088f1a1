"""A driver on a registered Spark cluster: its settings, what goes to executors, how a master is told from others,
and what is said of one that cannot be used."""

from __future__ import annotations

import json
import re
import socket
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from yardmaster_runner.data import portal_files
from yardmaster_runner.data.inputs import DataError, DataUnavailable
from yardmaster_runner.data.portal_files import Portal, opened
from yardmaster_runner.exits import Ending
from yardmaster_runner.launch import Folders
from yardmaster_runner.narrower import Listening
from yardmaster_runner.order import read_order
from yardmaster_runner.reasons import NO_CLUSTER, explain_end_of_spark
from yardmaster_runner.settings import read_settings
from yardmaster_runner.spark import driver, registered, shipped, task
from yardmaster_runner.spark.cluster import Cluster, from_variable, settings, to_variable
from yardmaster_runner.spark.installed import EVERYWHERE, address_here
from yardmaster_runner.spark.probe import Look, addresses_in, in_words, look_at
from yardmaster_runner.spark.registered import Registered, why_ended

GIB = 1 << 30
FARM = Registered(
    name="farm", master="spark://10.0.0.5:7077", driver_address="10.0.0.10", python="/opt/python3.11", executors=3,
    cores=2, memory=2 * GIB, secret="swordfish", url="http://10.0.0.10:8080", token="t0ken",
)  # fmt: skip
CLUSTER = Cluster(
    address="127.0.0.1:7001", master="127.0.0.1:7001", executors=1, cores=1, driver_memory=GIB, executor_memory=0,
    secret="of the job", work_dir="/w", code_dir="/c", log_dir="/l", registered=FARM,
)  # fmt: skip


def test_what_is_registered_is_told_whole_and_shown_without_secrets() -> None:
    assert from_variable(to_variable(CLUSTER)) == CLUSTER
    assert "swordfish" not in repr(FARM)
    assert "t0ken" not in repr(CLUSTER)
    assert (registered.URL, registered.TOKEN) == (portal_files.URL, portal_files.TOKEN)


def test_settings_keep_to_what_the_job_was_allowed() -> None:
    own = {
        "spark.cores.max": "600", "spark.executor.memory": "99g", "spark.master": "local", "spark.locality.wait": "1s",
        "spark.submit.pyFiles": "more.zip",
    }  # fmt: skip
    found = settings(CLUSTER, "10.0.0.10", own, "/w/job-code.zip")
    expected = {
        "spark.master": "spark://10.0.0.5:7077", "spark.executor.instances": "3", "spark.executor.cores": "2",
        "spark.cores.max": "6", "spark.executor.memory": "2048m", "spark.driver.host": "10.0.0.10",
        "spark.driver.bindAddress": "10.0.0.10", "spark.authenticate": "true", "spark.locality.wait": "1s",
        "spark.authenticate.secret": "swordfish", "spark.submit.pyFiles": "/w/job-code.zip,more.zip",
        "spark.pyspark.python": "/opt/python3.11", "spark.executorEnv.YARDMASTER_TASK_URL": "http://10.0.0.10:8080",
    }  # fmt: skip
    assert expected.items() <= found.items()
    hidden = [name for name, value in found.items() if value in ("swordfish", "t0ken")]
    assert all(re.search("(?i)secret|password|token", name) for name in hidden), "as Spark redacts them"
    assert len(hidden) == 2


def test_a_cluster_without_a_secret_gets_none_of_the_job() -> None:
    found = settings(replace(CLUSTER, registered=replace(FARM, secret="")), "10.0.0.10", {})
    assert found["spark.authenticate"] == "false"
    assert "spark.authenticate.secret" not in found


def test_a_node_of_tensorflow_on_spark_has_all_cores_of_an_executor_there() -> None:
    with_library = replace(CLUSTER, uses_tensorflow_on_spark=True)
    assert settings(with_library, "10.0.0.10", {})["spark.task.cpus"] == "2"


def test_the_archive_has_the_code_and_what_scripts_import_of_the_runner(tmp_path: Path) -> None:
    code, offered = tmp_path / "code", tmp_path / "offered"
    files = {
        code / "train.py": "1", code / "inner/beside.py": "2", code / "__pycache__/train.pyc": "3",
        code / "yardmaster_runner/data/frames.py": "another", offered / "yardmaster_runner/data/frames.py": "ours",
        offered / "sitecustomize.py": "4",
    }  # fmt: skip
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with zipfile.ZipFile(shipped.make(str(code), str(offered), str(tmp_path))) as archive:
        found = {name: archive.read(name).decode() for name in archive.namelist()}
    assert found == {"train.py": "1", "inner/beside.py": "2", "yardmaster_runner/data/frames.py": "ours"}


def _answering(content: bytes, *, closes: bool = True) -> Iterator[int]:
    """A server that says this to the first who connects."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(content)
                if not closes:
                    connection.recv(1000)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    ("content", "closes", "problem"),
    [
        (b"\0\0\0\0\0\0\0\x0d\x08\0\0\0\0", True, ""),
        (b"SSH-2.0-OpenSSH_9.2\r\n", True, "the server that answers is not a Spark master"),
        (b"", True, "the server that answers is not a Spark master"),
        (b"", False, "it accepts connections, but does not answer like Spark"),
        (b"\0\0\0\0\0\0\0\x0d\x04\0\0\0\0", True, "the server that answers is not a Spark master"),
    ],
)
def test_a_master_is_told_from_others_by_what_it_answers(content: bytes, closes: bool, problem: str) -> None:
    for port in _answering(content, closes=closes):
        found = look_at("127.0.0.1", port, 0.5)
        assert (found.problem, found.is_other) == (problem, bool(problem))


def test_a_master_that_is_away_is_no_other() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    found = look_at("127.0.0.1", port)
    assert found == Look(f"127.0.0.1:{port}", "Connection refused")
    assert in_words([found, Look("b:1")]) == f"127.0.0.1:{port}: Connection refused"
    assert addresses_in("spark://one:7077,[::1]:7078") == [("one", 7077), ("::1", 7078)]


def test_the_driver_waits_for_a_master_and_says_so(monkeypatch, capsys) -> None:
    answers = [[Look("10.0.0.5:7077", "Connection refused")], [Look("10.0.0.5:7077")]]
    monkeypatch.setattr(driver.probe, "look_at_all", lambda master: answers.pop(0))
    monkeypatch.setattr(driver, "PAUSE", 0.0)
    driver._wait_for(FARM)
    said = capsys.readouterr().err.splitlines()
    shown = "the Spark cluster farm (spark://10.0.0.5:7077)"
    assert said[0] == f"yardmaster: {shown} does not answer (10.0.0.5:7077: Connection refused). Trying again for 60 s."
    assert said[1].startswith(f"yardmaster: {shown} runs the executors (3, with 2 of its cores and 2048 MiB each).")


@pytest.mark.parametrize("look", [Look("a:1", "no Spark", is_other=True), Look("a:1", "Connection refused")])
def test_the_driver_gives_up_after_a_while_and_at_once_where_another_answers(monkeypatch, look: Look) -> None:
    monkeypatch.setattr(driver.probe, "look_at_all", lambda master: [look])
    monkeypatch.setattr(driver, "AWAY", 0.0)
    with pytest.raises(driver.NoCluster, match=f"The Spark cluster farm .* cannot be used: a:1: {look.problem}"):
        driver._wait_for(FARM)


KILLED = b"spark: ERROR StandaloneSchedulerBackend: Application has been killed. Reason: "


@pytest.mark.parametrize(
    ("tail", "words"),
    [
        (b"SaslException: Mismatched response.\n" + KILLED + b"All masters are unresponsive! Giving up.\n", "secret"),
        (KILLED + b"All masters are unresponsive! Giving up.\n", "did not accept the application: All masters are"),
        (KILLED + b"Master removed our application: FAILED\n", "do not reach the driver at 10.0.0.10"),
        (b"spark: WARN TaskSetManager: Lost task\n", ""),
    ],
)
def test_a_driver_that_lost_the_cluster_says_which_and_what_to_look_at(tail: bytes, words: str) -> None:
    said = why_ended(FARM, tail)
    assert words in said
    assert not words or said.startswith("The Spark cluster farm (spark://10.0.0.5:7077) ")
    ending = explain_end_of_spark(Ending(1, "ScriptFailed", "Py4JJavaError"), tail, FARM)
    assert (ending.reason, ending.message) == (
        ("SparkClusterFailed", said) if words else ("ScriptFailed", "Py4JJavaError")
    )
    assert explain_end_of_spark(Ending(1, "ScriptFailed", "x"), tail).reason == "ScriptFailed"
    assert explain_end_of_spark(Ending(0, "", ""), tail, FARM).reason == ""


def test_the_last_words_of_the_driver_are_the_message() -> None:
    ending = explain_end_of_spark(Ending(NO_CLUSTER, "ScriptFailed", "yardmaster: The Spark cluster farm …"), b"", FARM)
    assert (ending.reason, ending.message) == ("SparkClusterFailed", "The Spark cluster farm …")


def test_an_order_says_which_cluster_and_its_secret_is_in_no_log() -> None:
    spark = {"cluster": "farm", "executors": 3, "cores": 2, "memory": 2 * GIB}
    told = {"master": FARM.master, "driver_address": "10.0.0.10", "python": FARM.python, "secret": "swordfish"}
    spec = {"strategy": "spark", "roles": {"driver": {}}, "entry_point": "a.py", "spark": spark}
    answer: dict[str, Any] = {"job": "j", "attempt": 1, "spec": spec, "code": {"version": "v", "files": []}}
    order = read_order({**answer, "spark": told})
    assert order.spark == replace(FARM, url="", token="")
    assert [one.value for one in order.not_in_logs] == ["swordfish"]
    assert read_order(answer).spark is None


def test_a_driver_may_listen_where_executors_look_for_it() -> None:
    where = Listening(lambda words: None)
    for is_spark in (True, False):  # a job, and a notebook
        order: Any = type("Order", (), {"is_spark": is_spark, "spark": replace(FARM, driver_address="127.0.0.2")})
        assert task.listening(where, order) == replace(where, address=bytes([127, 0, 0, 2]))
        assert task.listening(None, order) is None
    own: Any = type("Order", (), {"is_spark": True, "spark": None})
    assert task.listening(where, own) == replace(where, every_port=True)
    other: Any = type("Order", (), {"is_spark": False, "spark": None})
    assert task.listening(where, other) is where
    assert address_here("127.0.0.1") == "127.0.0.1"
    assert address_here("192.0.2.1") == EVERYWHERE


ORDER: dict[str, Any] = {
    "job": "j", "attempt": 1, "code": {"version": "v", "files": []},
    "spec": {
        "strategy": "spark", "roles": {"driver": {}}, "entry_point": "a.py",
        "spark": {"cluster": "farm", "executors": 3, "cores": 2, "memory": 2 * GIB},
    },
    "spark": {"master": FARM.master, "driver_address": "", "python": FARM.python, "secret": "", "url": "http://p:80"},
}  # fmt: skip


def environment_of(**more: str) -> dict[str, str]:
    return {
        "YARDMASTER_URL": "http://portal.inside", "YARDMASTER_TOKEN_FILE": "/t", "YARDMASTER_ROLE": "driver",
        "YARDMASTER_INDEX": "0", "YARDMASTER_WORK_DIR": "/w", "YARDMASTER_CLUSTER": '{"driver": ["10.0.0.11:7001"]}',
        **more,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("more", "own"),
    [
        ({}, "10.0.0.11"),
        ({"YARDMASTER_LISTEN_ADDRESS": "10.0.0.12"}, "10.0.0.12"),
        ({"YARDMASTER_CLUSTER": '{"driver": ["run-driver-0.tasks:2222"]}'}, "run-driver-0.tasks"),
        ({"YARDMASTER_CLUSTER": "{}"}, ""),
    ],
)
def test_a_driver_announces_its_own_address_where_none_is_registered(more: dict[str, str], own: str) -> None:
    found = read_settings(environment_of(**more))
    assert found.own_address == own
    spark = read_order(ORDER).at(found.own_address).spark
    assert spark is not None
    assert spark.driver_address == own
    registered_here = {**ORDER, "spark": {**ORDER["spark"], "driver_address": "192.0.2.7"}}
    spark = read_order(registered_here).at(found.own_address).spark
    assert spark is not None
    assert spark.driver_address == "192.0.2.7", "that of the portal's machine"


def test_on_a_machine_of_several_a_driver_listens_on_the_private_address_alone() -> None:
    found = read_settings(environment_of(YARDMASTER_LOOPBACK_ONLY="1", YARDMASTER_LISTEN_ADDRESS="10.0.0.11"))
    order = read_order(ORDER).at(found.own_address)
    where = found.listening(print)
    assert where is not None
    assert task.listening(where, order) == where, "nothing more than other tasks there may"
    assert not where.every_port


def test_executors_ask_the_portal_where_others_reach_it(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t0ken")
    given = read_settings(environment_of(YARDMASTER_TOKEN_FILE=str(tmp_path / "token")))
    for url, expected in (("http://p:80", "http://p:80"), ("", "http://portal.inside")):
        order = read_order({**ORDER, "spark": {**ORDER["spark"], "url": url}})
        made = from_variable(task.variables(given, order, Folders.of(given), {})).registered
        assert made is not None
        assert (made.url, made.token) == (expected, "t0ken")


class _Answers(BaseHTTPRequestHandler):
    """A portal with one file, whose store fails once."""

    failures: list[int]
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        if self.path == "/content":
            body, status = b"records", self.failures.pop() if self.failures else 200
        elif self.headers["Authorization"] != "Bearer t0ken":
            body, status = b"{}", 403
        else:
            url = f"http://127.0.0.1:{self.server.server_address[1]}/content"
            files = [{"path": "a/part-1.tfrecord", "size": 7, "url": url}]
            body, status = json.dumps({"files": files, "next": None}).encode(), 200
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def portal_at(monkeypatch) -> Iterator[Callable[[str], Portal]]:
    monkeypatch.setattr(portal_files.time, "sleep", lambda seconds: None)
    _Answers.failures, _Answers.asked = [503], []
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield partial(Portal, f"http://127.0.0.1:{server.server_address[1]}/")
        server.shutdown()


def test_executors_read_a_file_of_an_input_through_the_portal(portal_at) -> None:
    with opened(portal_at("t0ken"), "v1", "a/part-1.tfrecord") as file:
        assert file.read() == b"records"
    assert _Answers.asked[0].startswith("/api/v1/task/versions/v1/files/?role=driver&index=0&after=a%2Fpart-1.tfrecor&")
    assert _Answers.asked.count("/content") == 2, "a store that fails is asked again"
    with pytest.raises(DataError, match=r"has no file a/part-2\.tfrecord"):
        opened(portal_at("t0ken"), "v1", "a/part-2.tfrecord")
    with pytest.raises(DataError, match="the job may be over"):
        opened(portal_at("wrong"), "v1", "a/part-1.tfrecord")


def test_a_portal_that_executors_do_not_reach_is_named(monkeypatch) -> None:
    monkeypatch.setattr(portal_files.time, "sleep", lambda seconds: None)
    with pytest.raises(DataUnavailable, match=r"through the portal at http://127\.0\.0\.1:9.*docs/spark\.md"):
        opened(Portal("http://127.0.0.1:9", "t"), "v1", "a.tfrecord")

"""A Spark job whose executors are on several machines, through a real portal: its Spark is that of the machines."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from portal.env import spark_folder, task_python
from tests.integration.hosts.gates import gate_at
from tests.integration.spark.spark_jobs import LONG, SHORT_LIVED, log_of
from tests.real.machines import Machines, machines
from tests.real.portal import WHOLE, real_portal
from tests.real.scene import QUICK, Scene, processes_with, until
from tests.real.spark_cluster import standalone
from yardmaster.engines.base import Address
from yardmaster_client import Job, PortalError
from yardmaster_runner.data.example_bytes import example
from yardmaster_runner.data.examples import framed

pytestmark = [pytest.mark.ssh, pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(400)]

ROWS, FILES = 30, 3
SECRET = "swordfish-of-the-cluster"
ROLES = {
    "driver": {"replicas": 1, "cpu": 0.2, "memory": "1Gi"},
    "executor": {"replicas": 2, "cpu": 0.6, "memory": "1Gi"},
}
"""A machine has space for one executor."""

WHOLE_WAY = """
import os, socket
from pyspark.sql import SparkSession
from yardmaster_runner import data

def where(number):
    return socket.gethostname(), os.environ["SPARK_LOCAL_IP"], os.path.isdir(os.environ.get("OUTPUT_DIR", "/none"))

spark = SparkSession.builder.appName("far").getOrCreate()
found = sorted(spark.sparkContext.parallelize(range(8), 8).map(where).distinct().collect())
print("executors are at", found, flush=True)
frame = data.dataframe(spark, "numbers")
print("rows", frame.count(), "sum", frame.rdd.map(lambda row: row.number).sum(), flush=True)
print("written", data.write_dataset(frame.where("number >= 10"), os.path.join(os.environ["OUTPUT_DIR"], "large")))
"""

TOGETHER = """
from pyspark import SparkContext
from tensorflowonspark import TFCluster

def work(args, context):
    import tensorflow as tf
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    mine = strategy.run(lambda: tf.constant(context.worker_num + 5.0))
    print(f"the sum of all is {float(strategy.reduce(tf.distribute.ReduceOp.SUM, mine, axis=None))}", flush=True)

reads = TFCluster.InputMode.TENSORFLOW
TFCluster.run(SparkContext(appName="together"), work, [], 2, 0, input_mode=reads, master_node="chief").shutdown()
"""
"""Each executor is a worker of one TensorFlow cluster."""

SLOW = """
import os, time
from pyspark import SparkContext

def wait(number):
    print("part", number, "begins", flush=True)
    while not os.path.exists({path!r}):
        time.sleep(0.2)
    return number

print("the sum is", SparkContext(appName="slow").parallelize(range(4), 2).map(wait).sum(), flush=True)
"""


COUNTED = """
from pyspark import SparkContext
print(SparkContext(appName="counted").range(1000).count())
"""

WHERE = """
import json, sys
import django
django.setup()
from apps.hosting.addresses import address_of
from apps.hosting.state import token_for
from apps.jobs.models import TaskFact
from apps.workbench.models import WorkbenchSession
job = WorkbenchSession.objects.select_related("job").get(pk=sys.argv[1]).job
where = address_of(job)
node = TaskFact.objects.get(job=job).node
print(json.dumps({"host": where.host, "port": where.port, "token": token_for(job), "node": node}))
"""
"""How the portal reaches a session."""


ELSEWHERE = """
import glob, os, socket, struct
from pyspark.sql import SparkSession
from yardmaster_runner import data

def told(row):
    asks = len(os.environ["YARDMASTER_TASK_TOKEN"]) > 20 and os.environ["YARDMASTER_TASK_URL"].startswith("http")
    return row.number, socket.gethostname(), asks

def listening():
    mine = set()
    for path in glob.glob("/proc/[0-9]*/fd/*"):
        try:
            mine.add(os.readlink(path))
        except OSError:
            pass
    found = set()
    for line in open("/proc/net/tcp").readlines()[1:] + open("/proc/net/tcp6").readlines()[1:]:
        _, at, _, state, *rest = line.split()
        if state == "0A" and f"socket:[{rest[5]}]" in mine and not at.endswith(":0016"):
            host = at.partition(":")[0][-8:]
            found.add(socket.inet_ntoa(struct.pack("<I", int(host, 16))))
    return found

spark = SparkSession.builder.appName("elsewhere").getOrCreate()
conf = spark.sparkContext.getConf()
print("driver at", conf.get("spark.driver.host"), "on", socket.gethostname(), flush=True)
rows = data.dataframe(spark, "numbers").rdd.map(told).collect()
print("sum", sum(one[0] for one in rows), "elsewhere", socket.gethostname() not in {one[1] for one in rows}, end=" ")
print("may ask", all(one[2] for one in rows), flush=True)
print("listens on", sorted(one for one in listening() if not one.startswith("127.")), flush=True)
"""
"""A driver here, with executors of a cluster that knows nothing of the machines."""


def numbers_in(folder: Path) -> Path:
    """The folder, made, with the numbers below `ROWS` in `FILES` TFRecord files."""
    folder.mkdir()
    for file in range(FILES):
        records = (framed(example({"number": ("int64", [number])})) for number in range(file, ROWS, FILES))
        (folder / f"part-{file}.tfrecord").write_bytes(b"".join(records))
    return folder


def install(made: Machines, number: int, digest: str = "digest") -> None:
    """Spark as `make spark` has it, as if it had been installed there."""
    python = made.home(number) / ".yardmaster" / "environments" / digest / "python"
    packages = python / "lib" / "python3.11" / "site-packages"
    packages.parent.mkdir(parents=True)
    packages.symlink_to(spark_folder())
    (python / "bin").mkdir()
    (python / "bin" / "python").symlink_to(task_python())
    (python.parents[1] / "spark").symlink_to(digest)


@pytest.fixture(scope="module")
def park(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Scene, Machines]]:
    """Three machines, of which the last has no Spark, and a portal that has them."""
    folder = tmp_path_factory.mktemp("spark")
    with machines(folder / "machines", 3, f'cores = 0.9\ntask_python = "{task_python()}"') as made:
        for number in (1, 2):
            install(made, number)
        home = folder / "home"
        shutil.copytree(made.portal, home / "hosts")
        told = {
            "YARDMASTER_HOSTS": str(made.file),
            "YARDMASTER_ALLOWED_HOSTS": f"127.0.0.1,{made.gateway}",
            "YARDMASTER_WORKBENCH_URL": "http://*.workbench.test:81",
        }
        with real_portal(home, WHOLE, {**QUICK, **told}, host=made.gateway) as portal:
            one = Scene(portal, portal.token_of("admin", is_staff=True))
            with one.client:
                yield one, made


def launched(one: Scene, script: str, **changes: Any) -> Job:
    code = one.put_code({**SHORT_LIVED, "main.py": script})
    return one.client.jobs.launch(one.spec(code, **{"strategy": "spark", "roles": ROLES, **changes}), engine="hosts")


def executors(made: Machines) -> set[int]:
    """The Java processes of executors on these machines."""
    network = f"@{made.gateway.rpartition('.')[0]}.".encode()
    found = processes_with("CoarseGrainedExecutorBackend")
    lines = {pid: Path(f"/proc/{pid}/cmdline") for pid in found}
    return {pid for pid, path in lines.items() if path.exists() and network in path.read_bytes()}


def test_executors_on_two_machines_read_a_dataset_and_what_is_written_is_published(park) -> None:
    one, made = park
    data = numbers_in(made.folder / "numbers")
    version = one.client.datasets.put("numbers", [data]).latest
    assert version is not None
    inputs = [{"dataset_version": version.id, "name": "numbers"}]
    job = one.settled(launched(one, WHOLE_WAY, inputs=inputs, publishes={"dataset": "large"}), LONG)
    driver = log_of(one, job, "driver")
    assert job.phase == "SUCCEEDED", (job.message, driver[-4000:], log_of(one, job, "executor")[-2000:])
    network = made.gateway.rpartition(".")[0]
    assert f"executors are at [('m1', '{network}.11', False), ('m2', '{network}.12', False)]" in driver
    assert {task["node"] for task in one.client.jobs.tasks(job.id)} == {"m1", "m2"}, "m3 has no Spark"
    assert f"rows {ROWS} sum {sum(range(ROWS))}" in driver
    assert "written 20" in driver
    published = one.client.jobs.published(job.id, wait=True)
    assert published is not None
    assert published["state"] == "published", published
    files = list(one.client.datasets.files(published["version"]))
    assert sorted(file.path for file in files) == [f"large/part-0000{number}.tfrecord" for number in range(FILES)]
    assert not list(made.folder.glob("*/home/.yardmaster/runs/*"))


def test_a_job_with_more_executors_than_machines_with_spark_take_is_refused_in_words(park) -> None:
    one, _ = park
    roles = {**ROLES, "executor": {**ROLES["executor"], "replicas": 3}}
    with pytest.raises(PortalError, match="It runs only on machines that have Spark: m1, m2") as refused:
        launched(one, "print('never')", roles=roles, requirements=[])
    assert "only 3 of its 4 tasks fit there at once" in str(refused.value)


@pytest.mark.long
def test_a_history_runs_on_a_machine_with_spark_and_shows_the_application_of_a_job(park) -> None:
    one, made = park
    job = one.settled(launched(one, COUNTED), LONG)
    assert job.phase == "SUCCEEDED", (job.message, log_of(one, job, "driver")[-4000:])
    asked = one.client.sessions.start("spark_history", jobs=[job.id], size="small", engine="hosts")
    session = one.client.sessions.wait(asked.id, timeout=LONG)
    assert session.state == "ready", session
    known = json.loads(one.portal.script(WHERE, session.id).splitlines()[-1])
    assert known["node"] in ("m1", "m2"), "m3 has no Spark"
    assert known["host"] in (made.address(1), made.address(2))
    with gate_at(Address(known["host"], known["port"]), known["token"]) as path:
        client = httpx2.Client(transport=httpx2.HTTPTransport(uds=path), base_url="http://a", timeout=60)
        address = f"/w/{session.id}/api/v1/applications"
        (application,) = until(lambda: client.get(address).json(), 60, "the application")
        assert application["name"] == "counted"
        (stage, *_) = client.get(f"{address}/{application['id']}/stages").json()
        assert stage["status"] == "COMPLETE"
        client.close()
    one.client.sessions.stop(session.id)
    until(lambda: not list(made.folder.glob("*/home/.yardmaster/runs/*")), 60, "nothing to be left of the session")


@pytest.mark.long
@pytest.mark.tensorflow
def test_tensorflow_on_executors_of_two_machines_is_one_cluster(park) -> None:
    one, _ = park
    larger = {role: {**wanted, "memory": "2Gi"} for role, wanted in ROLES.items()}
    job = one.settled(launched(one, TOGETHER, roles=larger), LONG)
    printed = [log_of(one, job, "executor", index) for index in range(2)]
    assert job.phase == "SUCCEEDED", (job.message, log_of(one, job, "driver")[-4000:], printed[0][-3000:])
    assert [re.findall(r"the sum of all is *[0-9.]+", text) for text in printed] == [["the sum of all is 11.0"]] * 2


@pytest.mark.long
def test_an_executor_that_is_killed_on_its_machine_is_replaced_there(park, tmp_path: Path) -> None:
    one, made = park
    job = launched(one, SLOW.format(path=str(tmp_path / "end")))
    until(lambda: all(" begins" in log_of(one, job, "executor", index) for index in range(2)), LONG, "parts")
    first = executors(made)
    assert len(first) == 2
    killed = min(first)
    os.kill(killed, signal.SIGKILL)
    until(lambda: len(executors(made) - {killed}) == 2, LONG, "another executor")
    (tmp_path / "end").touch()
    job = one.settled(job, LONG)
    driver = log_of(one, job, "driver")
    assert job.phase == "SUCCEEDED", (job.message, driver[-4000:])
    assert "the sum is 6" in driver
    assert sum(task["restarts"] for task in one.client.jobs.tasks(job.id)) == 0, "Spark itself has started it"
    assert executors(made) == set()


@pytest.mark.long
def test_a_driver_on_a_machine_is_reached_at_its_private_address_by_executors_elsewhere(park, tmp_path: Path) -> None:
    one, made = park
    data = numbers_in(tmp_path / "numbers")
    version = one.client.datasets.put("numbers-elsewhere", [data]).latest
    assert version is not None
    with standalone(tmp_path / "cluster", SECRET, host=made.gateway) as cluster:
        # What is registered is that of the portal's machine: no driver of another may announce it.
        facts = cluster.facts(secret=SECRET, driver_address="192.0.2.1")
        one.client.transport.post("spark-clusters/", {"name": "farm", **facts})
        job = launched(
            one, ELSEWHERE, roles={"driver": {"replicas": 1, "cpu": 0.2, "memory": "1Gi"}},
            spark={"cluster": "farm", "executors": 2, "cores": 1, "memory": "512Mi"},
            inputs=[{"dataset_version": version.id, "name": "numbers"}],
        )  # fmt: skip
        job = one.settled(job, LONG)
        driver = log_of(one, job, "driver")
        assert job.phase == "SUCCEEDED", (job.message, driver[-4000:], cluster.logs[-3000:])
    (machine,) = {task["node"] for task in one.client.jobs.tasks(job.id)}
    address = made.address(int(machine.removeprefix("m")))
    assert f"driver at {address} on {machine}" in driver
    assert f"sum {sum(range(ROWS))} elsewhere True may ask True" in driver
    assert f"listens on ['{address}']" in driver
    assert SECRET not in driver
    assert not list(made.folder.glob("*/home/.yardmaster/runs/*"))

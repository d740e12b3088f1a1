"""Jobs on a Spark cluster that was there before, with a real one of two workers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.spark.spark_jobs import LONG, SHORT_LIVED, log_of
from tests.integration.workbench.jupyter_session import Jupyter, socket_of_task
from tests.real.scene import Scene, until
from tests.real.spark_cluster import Standalone, standalone
from yardmaster_client import Job
from yardmaster_runner.data.example_bytes import example
from yardmaster_runner.data.examples import framed

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(400)]

SECRET = "swordfish-of-the-cluster"
ROWS, FILES = 30, 3

SCRIPT = """
import os
from pyspark.sql import SparkSession
from yardmaster_runner import data

import beside

def told(row):
    asks = len(os.environ["YARDMASTER_TASK_TOKEN"]) > 20 and os.environ["YARDMASTER_TASK_URL"].startswith("http")
    return (beside.squared(row.number), os.path.isdir({home!r}), asks, "YARDMASTER_SPARK_HOST" in os.environ)

spark = SparkSession.builder.appName("registered").getOrCreate()
conf = spark.sparkContext.getConf()
print("executors", conf.get("spark.executor.instances"), "cores", conf.get("spark.cores.max"), flush=True)
frame = data.dataframe(spark, "numbers")
found = frame.rdd.map(told).collect()
print("the sum is", sum(one[0] for one in found), "home seen:", any(one[1] for one in found), flush=True)
print("may ask:", all(one[2] for one in found), "address of the driver:", any(one[3] for one in found), flush=True)
print("streamed", data.dataframe(spark, "streamed").count(), flush=True)
print("written", data.write_dataset(frame.where("number >= 10"), os.path.join(os.environ["OUTPUT_DIR"], "large")))
"""


NODES = """
from pyspark import SparkContext
from tensorflowonspark import TFCluster

def work(args, context):
    import os
    import tensorflow as tf
    feed = context.get_data_feed(train_mode=False)
    while not feed.should_stop():
        batch = feed.next_batch(4)
        if batch:
            found = tf.square(tf.constant(batch)).numpy().tolist()
            feed.batch_results([(one, context.task_index, os.path.isdir({home!r})) for one in found])

sc = SparkContext(appName="nodes")
cluster = TFCluster.run(sc, work, [], 2, 0, input_mode=TFCluster.InputMode.SPARK)
found = cluster.inference(sc.parallelize(range(30), 6)).collect()
cluster.shutdown()
print("the sum is", sum(one[0] for one in found), "of", len(found), "home seen:", any(one[2] for one in found))
print("nodes", sorted((node["job_name"], node["task_index"]) for node in cluster.cluster_info), flush=True)
"""
"""Rows go from the driver's RDD to two nodes of TensorFlow, and their results come back."""

COUNT = "print('executors', spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1)"
NOTEBOOK = """
from pyspark.sql import SparkSession
idle = "spark.dynamicAllocation.executorIdleTimeout"
spark = SparkSession.builder.config(idle, "1s").getOrCreate()

def told(number):
    import os, sys
    return number * number, os.path.isdir({home!r}), sys.prefix

import sys
found = spark.sparkContext.parallelize(range(30), 4).map(told).collect()
print("the sum is", sum(one[0] for one in found), "home seen:", any(one[1] for one in found))
conf, theirs = spark.sparkContext.getConf(), all(one[2] != sys.prefix for one in found)
print("executors", conf.get("spark.executor.instances"), "of", conf.get("spark.cores.max"), end=" ")
print("cores, by their Python:", theirs)
"""

HOLD = """
import os, time
from pyspark import SparkContext

def hold(number):
    while not os.path.exists({path!r}):
        time.sleep(0.2)
    return number

sc = SparkContext(appName="hold")
print("it has its executors", flush=True)
print("the sum is", sc.parallelize(range(2), 2).map(hold).sum(), flush=True)
"""


@pytest.fixture(scope="module")
def cluster(one: Scene, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone(tmp_path_factory.mktemp("cluster"), SECRET, hidden=one.portal.home) as made:
        yield made


@pytest.fixture(scope="module")
def numbers(one: Scene, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A dataset of TFRecord files; the version's id."""
    folder = tmp_path_factory.mktemp("numbers")
    for file in range(FILES):
        records = (framed(example({"number": ("int64", [number])})) for number in range(file, ROWS, FILES))
        (folder / f"part-{file}.tfrecord").write_bytes(b"".join(records))
    latest = one.client.datasets.put("numbers", [folder]).latest
    assert latest is not None
    return latest.id


def registered(one: Scene, name: str, facts: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = one.client.transport.post("spark-clusters/", {"name": name, **facts})
    return made


def launched(one: Scene, name: str, script: str, **changes: Any) -> Job:
    settings = {"spark-defaults.conf": SHORT_LIVED["spark-defaults.conf"] + "spark.eventLog.compress false\n"}
    code = one.put_code({**settings, "main.py": script, "beside.py": "def squared(n):\n    return n * n\n"})
    spark = {"cluster": name, "executors": 2, "cores": 1, "memory": "512Mi"}
    roles = {"driver": {"replicas": 1, "cpu": 0.2, "memory": "1Gi"}}
    return one.client.jobs.launch(one.spec(code, **{"strategy": "spark", "roles": roles, "spark": spark, **changes}))


def test_executors_elsewhere_read_and_write_datasets_with_the_code_of_the_job(
    one: Scene, cluster: Standalone, numbers: str, tmp_path: Path
) -> None:
    registered(one, "analytics", cluster.facts(secret=SECRET))
    inputs = [{"dataset_version": numbers, "name": "numbers"}]
    inputs.append({"dataset_version": numbers, "name": "streamed", "mode": "stream"})
    script = SCRIPT.format(home=str(one.portal.home / "objects"))
    job = launched(one, "analytics", script, inputs=inputs, publishes={"dataset": "large-numbers"})
    job = one.settled(job, LONG)
    driver = log_of(one, job, "driver")
    assert job.phase == "SUCCEEDED", (job.message, driver[-4000:], cluster.logs[-3000:])
    assert f"the Spark cluster analytics ({cluster.master}) runs the executors (2, with 1 of its cores" in driver
    assert "executors 2 cores 2" in driver
    assert f"the sum is {sum(n * n for n in range(ROWS))} home seen: {not cluster.is_apart}" in driver
    assert "may ask: True address of the driver: False" in driver
    assert f"streamed {ROWS}" in driver
    assert "written 20" in driver
    published = one.client.jobs.published(job.id, wait=True)
    assert published is not None
    assert published["state"] == "published", published
    assert all(file.path.startswith("large/part-") for file in one.client.datasets.files(published["version"]))
    one.client.jobs.outputs_download(job.id, tmp_path, only=["spark-events/*"])
    log = "".join(path.read_text() for path in tmp_path.rglob("app-*"))
    assert SECRET not in log
    tokens = set(re.findall(r'"spark.executorEnv.YARDMASTER_TASK_TOKEN":"([^"]*)"', log))
    assert tokens == {"*********(redacted)"}
    one.assert_nothing_is_left(job)


@pytest.mark.tensorflow
def test_nodes_of_tensorflow_on_spark_are_fed_from_an_rdd_and_answer(one: Scene, cluster: Standalone) -> None:
    registered(one, "with-tensorflow", cluster.facts(secret=SECRET, python=cluster.python_with_tensorflow))
    script = NODES.format(home=str(one.portal.home / "objects"))
    job = one.ended(launched(one, "with-tensorflow", script), LONG)
    driver = log_of(one, job, "driver")
    assert job.phase == "SUCCEEDED", (job.message, driver[-4000:], cluster.logs[-4000:])
    assert f"the sum is {sum(n * n for n in range(30))} of 30 home seen: {not cluster.is_apart}" in driver
    assert "'worker'" in driver.partition("nodes [")[2], driver


def test_a_cluster_without_free_executors_is_named_and_the_job_can_be_stopped(
    one: Scene, cluster: Standalone, tmp_path: Path
) -> None:
    registered(one, "full", cluster.facts(secret=SECRET))
    script = HOLD.format(path=str(tmp_path / "end"))
    first = launched(one, "full", script)
    until(lambda: "it has its executors" in log_of(one, first, "driver"), LONG, "executors")
    second = launched(one, "full", script)
    said = "has given 0 of 2 executors (cores of each: 1, memory: 512 MiB): other applications have the rest of it"
    until(lambda: said in log_of(one, second, "driver"), LONG, "what the second waits for")
    why = until(lambda: _waiting(one, second), 30, "the reason")
    assert "the Spark cluster full has given 0 of 2 executors" in why["message"]
    assert "ask for fewer or smaller executors" in why["remedy"]
    one.client.jobs.stop(second.id)
    assert one.settled(second, LONG).phase == "STOPPED"
    one.assert_nothing_is_left(second)
    (tmp_path / "end").touch()
    assert one.ended(first, LONG).phase == "SUCCEEDED", log_of(one, first, "driver")[-3000:]
    assert "other applications" not in log_of(one, first, "driver")


@pytest.mark.workbench
def test_a_notebook_drives_the_cluster_and_returns_its_executors(one: Scene, cluster: Standalone) -> None:
    registered(one, "notebooks", cluster.facts(secret=SECRET, most_cores_at_once=2))
    wanted = {"spark_executors": 2, "spark_memory": "768Mi"}
    begun = one.client.sessions.start("jupyter", spark_cluster="notebooks", **wanted)
    begun = one.client.sessions.wait(begun.id, timeout=LONG)
    assert (begun.state, begun.spark_cluster, begun.job is not None) == ("ready", "notebooks", True), begun
    job = one.client.jobs.get(str(begun.job))
    session = Jupyter(socket_of_task(one.run_folders(job)[0]), one.portal.home, begun.id)
    kernel = session.start_kernel()
    said = session.run(NOTEBOOK.format(home=str(one.portal.home / "objects")), kernel)
    assert f"the sum is {sum(n * n for n in range(30))} home seen: {not cluster.is_apart}" in said, said
    assert "executors 2 of 2 cores, by their Python: True" in said
    assert session.run("print(spark.conf.get('spark.executor.memory'))", kernel) == "768m\n"
    assert (begun.spark_cores, begun.spark_memory) == (1, 768 << 20)
    until(lambda: "executors 0" in session.run(COUNT, kernel), 60, "the return of its executors")
    assert "499500" in session.run("print(spark.sql('SELECT sum(id) FROM range(1000)').collect()[0][0])", kernel)
    with pytest.raises(AssertionError, match="Another notebook of this session uses the Spark cluster notebooks"):
        session.run("from pyspark import SparkContext\nSparkContext()")
    log = log_of(one, job, "worker")
    assert f"Notebooks use the Spark cluster notebooks ({cluster.master}): 2 executors" in log
    assert SECRET not in log + said
    session.close()
    one.client.sessions.stop(begun.id)
    assert one.settled(job, LONG).phase == "STOPPED"
    one.assert_nothing_is_left(job)


def test_a_master_that_is_none_ends_the_job_with_words_that_name_it(one: Scene, cluster: Standalone) -> None:
    port = one.portal.url.rpartition(":")[2]
    registered(one, "mistaken", cluster.facts(master=f"spark://127.0.0.1:{port}"))
    job = one.ended(launched(one, "mistaken", "print('never')"))
    assert (job.phase, job.reason) == ("FAILED", "SparkClusterFailed")
    assert f"The Spark cluster mistaken (spark://127.0.0.1:{port}) cannot be used" in job.message
    assert "Administration, Spark clusters" in job.remedy
    assert "never" not in log_of(one, job, "driver")
    checked = until(lambda: _checked(one, "mistaken"), 30, "a check")
    assert checked["state"] == "unreachable"
    assert "not a Spark master" in checked["problem"] or "does not answer like Spark" in checked["problem"]


@pytest.mark.long
def test_a_secret_that_the_cluster_refuses_ends_the_job(one: Scene, cluster: Standalone) -> None:
    registered(one, "locked", cluster.facts(secret="another-secret-than-its-own"))
    script = "from pyspark import SparkContext\nprint(SparkContext(appName='x').parallelize([1]).sum())\n"
    job = one.ended(launched(one, "locked", script), LONG)
    driver = log_of(one, job, "driver")
    assert (job.phase, job.reason) == ("FAILED", "SparkClusterFailed"), driver[-3000:]
    assert f"The Spark cluster locked ({cluster.master}) refused the driver: the secret" in job.message
    assert "another-secret-than-its-own" not in driver
    assert len(driver.splitlines()) < 100, driver
    assert until(lambda: _checked(one, "locked"), 30, "a check")["state"] == "reachable"


def _waiting(one: Scene, job: Job) -> dict[str, Any] | None:
    found: dict[str, Any] = one.client.transport.get(f"jobs/{job.id}/why/")
    return found if found["reason"] == "WaitingForExecutors" else None


def _checked(one: Scene, name: str) -> dict[str, Any] | None:
    found: dict[str, Any] = one.client.transport.get(f"spark-clusters/{name}/")
    return None if found["state"] == "checking" else found

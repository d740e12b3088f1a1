"""Jobs whose script is the driver of a Spark application, on a real Spark."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.integration.spark.spark_jobs import LONG, ROLES, launched, log_of
from tests.real.scene import Scene, until
from yardmaster.engines.supervision.processes import table
from yardmaster_client import Job

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(400)]

SUM = """
import os, sys
from pyspark import SparkContext

import beside

def told(number):
    print("an executor has", number, "and its own output:", "OUTPUT_DIR" in os.environ, flush=True)
    return beside.squared(number)

sc = SparkContext(appName="sum")
conf = sc.getConf()
print("executors", conf.get("spark.executor.instances"), "locality", conf.get("spark.locality.wait"), flush=True)
print("the sum is", sc.parallelize(range(10), 4).map(told).sum(), "of", sys.argv[1:], flush=True)
output = os.environ["OUTPUT_DIR"]
sc.parallelize(range(4), 2).map(str).saveAsTextFile(output + "/n")
open(output + "/of-driver.txt", "w").write("done")
"""
"""It never stops its context, and imports a module of the code on the executors, too."""

SLOW = """
import os, time
from pyspark import SparkContext

def wait(number):
    print("part", number, "begins", flush=True)
    while not os.path.exists({path!r}):
        time.sleep(0.2)
    return number

sc = SparkContext(appName="slow")
print("the driver begins", flush=True)
print("the sum is", sc.parallelize(range(4), 2).map(wait).sum(), flush=True)
"""


PARALLEL = """
from pyspark import SparkContext
from tensorflowonspark import TFParallel

def work(args, context):
    import tensorflow as tf
    total = int(tf.reduce_sum(tf.range(context.worker_num + 3)))
    print("instance", context.worker_num, "of", context.num_workers, "has", total, flush=True)

TFParallel.run(SparkContext(appName="parallel"), work, [], 2)
"""


EXECUTOR = "CoarseGrainedExecutorBackend"


def java(one: Scene, job: Job, name: str) -> list[int]:
    """The Java processes of the job that run this class."""
    found = []
    for row in one.processes_of(job):
        command = Path(f"/proc/{row.pid}/cmdline").read_bytes() if row.pid in table() else b""
        if name.encode() in command and command.split(b"\0")[0].endswith(b"java"):
            found.append(row.pid)
    return found


def restarts(one: Scene, job: Job, role: str) -> int:
    return sum(task["restarts"] for task in one.client.jobs.tasks(job.id) if task["role"] == role)


@pytest.mark.long
def test_a_script_is_the_driver_and_its_work_is_done_by_the_executors(one: Scene) -> None:
    files = {
        "beside.py": "def squared(number):\n    return number * number\n",
        "spark-defaults.conf": "spark.locality.wait 1s\n",
    }
    publishes = {"dataset": "numbers"}
    job = one.settled(launched(one, SUM, files, arguments=["--word=a b"], publishes=publishes), LONG)
    driver = log_of(one, job, "driver")
    assert job.phase == "SUCCEEDED", driver
    assert job.message == "The driver completed successfully."
    assert "the sum is 285 of ['--word=a b']" in driver
    assert "executors 2 locality 1s" in driver
    printed = "\n".join(log_of(one, job, "executor", index) for index in range(2))
    told = re.findall(r"^an executor has (\d) and its own output: False$", printed, re.MULTILINE)
    assert sorted(map(int, told)) == list(range(10)), "each line once, and whole: " + printed
    others = [line for line in printed.splitlines() if not line.startswith(("an executor has", "WARNING: Using incub"))]
    assert others == [], "nothing of how Spark starts and ends its executors"
    (events,) = [output.path for output in one.client.jobs.outputs(job.id) if output.path.startswith("spark-events/")]
    assert re.fullmatch(r"spark-events/app-[\d-]+\.zstd", events), "and not what it was while the application ran"
    published = one.client.jobs.published(job.id, wait=True)
    assert published is not None
    assert published["state"] == "published", published
    made = {file.path for file in one.client.datasets.files(published["version"])}
    assert made == {"of-driver.txt", "n/part-00000", "n/part-00001"}, "on one disk also what executors have written"
    one.assert_nothing_is_left(job)


@pytest.mark.long
@pytest.mark.tensorflow
def test_instances_of_tensorflow_that_know_nothing_of_each_other_run_on_the_executors(one: Scene) -> None:
    larger = {role: {**wanted, "memory": "2Gi"} for role, wanted in ROLES.items()}  # each imports TensorFlow
    job = one.settled(launched(one, PARALLEL, roles=larger), LONG)
    printed = log_of(one, job, "executor") + log_of(one, job, "executor", 1)
    assert job.phase == "SUCCEEDED", (job.message, log_of(one, job, "driver"), printed)
    assert "instance 0 of 2 has 3" in printed
    assert "instance 1 of 2 has 6" in printed


@pytest.mark.long
def test_what_is_lost_of_the_executors_is_replaced_and_its_part_done_again(one: Scene, tmp_path: Path) -> None:
    job = launched(one, SLOW.format(path=str(tmp_path / "end")), retries=2)
    until(lambda: "begins" in log_of(one, job, "executor", 1) + log_of(one, job, "executor", 0), LONG, "a part")
    first = until(lambda: java(one, job, EXECUTOR), LONG, "executors")
    os.kill(first[0], signal.SIGKILL)
    until(lambda: len(set(java(one, job, EXECUTOR)) - {first[0]}) == 2, LONG, "another executor")
    assert restarts(one, job, "executor") == 0, "Spark itself has started it"
    os.kill(one.runners(job, "executor-1")[0], signal.SIGKILL)
    until(lambda: restarts(one, job, "executor") == 1, LONG, "a restart of the task")
    (tmp_path / "end").touch()
    assert one.settled(job, LONG).phase == "SUCCEEDED", log_of(one, job, "driver")
    driver = log_of(one, job, "driver")
    assert "the sum is 6" in driver
    assert driver.count("the driver begins") == 1


@pytest.mark.long
def test_a_driver_that_is_killed_begins_again_and_a_stop_ends_all_of_the_cluster(one: Scene, tmp_path: Path) -> None:
    job = launched(one, SLOW.format(path=str(tmp_path / "never")), retries=1)
    until(lambda: "begins" in log_of(one, job, "executor", 0), LONG, "a part")
    os.kill(one.runners(job, "driver-0")[0], signal.SIGKILL)
    until(lambda: log_of(one, job, "driver").count("the driver begins") == 2, LONG, "another driver")
    assert restarts(one, job, "executor") == 2, "they start again with it"
    one.client.jobs.stop(job.id)
    assert one.settled(job, LONG).phase == "STOPPED"
    one.assert_nothing_is_left(job)

